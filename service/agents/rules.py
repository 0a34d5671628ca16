"""Which agents may work here: pure."""

import re
from typing import Final

MIN_AGENT_VERSION: Final = "0.1.0"
"""The oldest agent that speaks this service's language."""
_NUMBERS: Final = re.compile(r"\d{1,9}", re.ASCII)


def is_too_old(version: str, *, minimum: str = MIN_AGENT_VERSION) -> bool:
    """Whether a version comes before the minimum; one without any number does."""
    return _order(version) < _order(minimum)


def _order(version: str) -> tuple[int, ...]:
    """What stands after a plus or a minus (a build, a pre-release) does not count."""
    core = re.split(r"[+-]", version, maxsplit=1)[0]
    return tuple(int(number) for number in _NUMBERS.findall(core)[:4])
