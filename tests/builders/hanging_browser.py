"""A browser that never answers, as one whose display, bus or disk hangs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_HANGS = "#!/bin/sh\nexec sleep 600\n"


@contextmanager
def hanging_browser() -> Iterator[Path]:
    """Its program, which any user may run."""
    with TemporaryDirectory(prefix="picket-test-") as folder:
        program = Path(folder) / "chromium"
        program.write_text(_HANGS)
        program.parent.chmod(0o755)
        program.chmod(0o755)
        yield program
