"""Status codes that a check accepts: a code, a range or a class, such as 429, 200-299 or 4xx."""

import re
from collections.abc import Iterable
from typing import Final

from contract.targets import format_value

LOWEST_ERROR: Final = 400
"""Without a list, what is below passes."""
_PATTERN: Final = re.compile(r"([1-9])xx|([1-9]\d\d)(?:-([1-9]\d\d))?", re.IGNORECASE)


def status_codes_problem(text: str) -> str | None:
    """Return what is wrong with an entry of the list. None: it can be used."""
    codes = _read(text)
    if codes is None:
        return f"is {format_value(text)}; use a code, a range or a class, as in 429, 200-299 or 4xx"
    if not codes:
        return f"is {text}, which holds no code; write the lower one first"
    return None


def is_accepted(status: int, accepted: Iterable[str | int]) -> bool:
    """Whether the status is on the list."""
    return any(status in (_read(str(entry)) or ()) for entry in accepted)


def _read(text: str) -> range | None:
    found = _PATTERN.fullmatch(text.strip())
    if found is None:
        return None
    first_digit, low, high = found.groups()
    if first_digit is not None:
        return range(int(first_digit) * 100, int(first_digit) * 100 + 100)
    return range(int(low), int(high or low) + 1)
