"""Playwright's own time limits, as its errors tell of them. Pure."""

import re
from typing import Final

_TIME_UP: Final = re.compile(r"(?:Test|.* hook|Fixture .*) timeout of \d+ms exceeded")
_NO_MORE: Final = re.compile(
    r"(?:Error: )?(?:[\w.]+: )?(?P<time>Test timeout of \d+ms exceeded)\.?\s*(?:Browser logs:.*)?",
    re.DOTALL,
)
_SAYS: Final = re.compile(r"timeout of \d+ms exceeded")


def is_time_up(error: str) -> bool:
    """Whether it says that a test's, a hook's or a fixture's time was up, and little more."""
    return _TIME_UP.match(error) is not None


def no_more_than_time_up(error: str) -> str | None:
    """The words that a test's time was up, where it says nothing of what it was in. None: else."""
    found = _NO_MORE.fullmatch(error)
    return None if found is None else found["time"]


def with_time_up(time_up: str, cause: str, *, step: str | None = None) -> str:
    """That time was up, with the error that came of it, which alone names another reason.

    `step`: what it was in. None: nobody knows.
    """
    if _SAYS.search(cause.split("\n", 1)[0]):
        return cause
    first = time_up.split("\n", 1)[0].rstrip(".")
    return f"{first}{f' in “{step}”' if step else ''}: {cause}"
