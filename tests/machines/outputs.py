"""The commands of the README, and what they wrote, read back as facts. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from contract.checks import CheckType

_RESULT: Final = re.compile(r"\d\d:\d\d:\d\d  ([A-Z_]+) +([A-Z_]+)  ")
_FOR_ROOT: Final = re.compile(r"as root(?: once)?: (.+)$", re.MULTILINE)
_PYTEST_END: Final = re.compile(
    r"^=* ?(\d+ (?:passed|failed|error|skipped).* in [\d.]+s.*?) ?=*$", re.MULTILINE
)
_PYTEST_FAILURE: Final = re.compile(r"^(?:FAILED|ERROR) tests/.*$", re.MULTILINE)
_INSTALL: Final = re.compile(r"^## Install$.*?^```$\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_UV: Final = re.compile(r"`(uv tool install [^`]+)`")
_COMMENT: Final = re.compile(r"\s+#.*$")

Results = Counter[tuple[str, str]]
"""How often each type had each status."""


def install_commands(readme: str) -> list[str]:
    """The commands of the block below `## Install`, without comments."""
    (block,) = _INSTALL.findall(readme)
    return [_COMMENT.sub("", line) for line in block.splitlines()]


def uv_command(readme: str) -> str:
    """The command that installs with uv."""
    (command,) = _UV.findall(readme)
    return str(command)


def results(lines: Sequence[str]) -> Results:
    """Count the results that `picket up` printed."""
    found = (_RESULT.match(line) for line in lines)
    return Counter((each[2], each[1]) for each in found if each)


def first_result(lines: Sequence[str]) -> int | None:
    """Give the index of the first line with a result."""
    return next((at for at, line in enumerate(lines) if _RESULT.match(line)), None)


def results_line(counts: Results) -> str:
    """All counts on one line, by type."""
    kinds = sorted({kind for kind, _ in counts})
    return ", ".join(
        f"{kind} "
        + " ".join(
            f"{count} {status}" for (of, status), count in sorted(counts.items()) if of == kind
        )
        for kind in kinds
    )


def commands_for_root(text: str) -> list[str]:
    """Each command that the reader was asked to have run by an administrator."""
    return [command.strip() for command in _FOR_ROOT.findall(text)]


def problems(
    counts: Results, text: str, *, wanted: Sequence[CheckType], excusable: Sequence[CheckType] = ()
) -> list[str]:
    """Say what is wrong with a `make run` that ended; `excusable` types may be missing if named."""
    seen = {kind for kind, _ in counts}
    unexcused = [
        kind
        for kind in wanted
        if kind not in seen and not (kind in excusable and _is_named(kind, text))
    ]
    bad = sorted({f"{kind} {status}" for kind, status in counts if status in {"ERROR", "MISSED"}})
    return [
        *(f"no {kind} result, and no line says why" for kind in unexcused if kind in excusable),
        *(f"no {kind} result" for kind in unexcused if kind not in excusable),
        *(f"a result was {each}" for each in bad),
        *(["a traceback was printed"] if "Traceback (most recent" in text else []),
    ]


def _is_named(kind: CheckType, text: str) -> bool:
    """Whether a line that is no result speaks of the type."""
    return any(kind in line and not _RESULT.match(line) for line in text.splitlines())


def pytest_end(lines: Sequence[str]) -> str:
    """Give the line that pytest ends with, or else the last that was written."""
    found = _PYTEST_END.findall("\n".join(lines))
    return (
        str(found[-1])
        if found
        else next((line for line in reversed(lines) if line), "nothing was written")
    )


def pytest_failures(text: str) -> list[str]:
    """Each test that failed."""
    return _PYTEST_FAILURE.findall(text)
