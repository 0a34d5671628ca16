"""Browsers that do not work, as those whose display, bus or disk hangs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

LACKS_A_LIBRARY = """#!/bin/sh
[ "$1" = --version ] && exec echo "Chromium 140.0.7000.1"
echo "chromium: error while loading shared libraries: libnss3.so: cannot open shared object file;\
 No such file" >&2
exit 127
"""
"""One that can say its version and nothing more."""
_HANGS = "#!/bin/sh\nexec sleep 600\n"


@contextmanager
def a_program(name: str, text: str) -> Iterator[Path]:
    """A program in a folder of its own, which any user may run."""
    with TemporaryDirectory(prefix="picket-test-") as folder:
        program = Path(folder) / name
        program.write_text(text)
        program.parent.chmod(0o755)
        program.chmod(0o755)
        yield program


def hanging_browser() -> AbstractContextManager[Path]:
    """One that never answers."""
    return a_program("chromium", _HANGS)
