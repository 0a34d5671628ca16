"""What may be a variable; pure."""

from collections.abc import Iterable
from typing import Final

from service.vault.texts import HIDDEN

KEY_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
KEY_WORDS: Final = (
    "must consist of letters, digits, underscores, dots and hyphens, as in API_URL, and not begin"
    " with a dot or a hyphen"
)
MAX_KEY_LETTERS: Final = 255
MAX_VALUE_BYTES: Final = 128_000
"""A program can be given a variable of 128 KiB with its name; agents refuse longer ones."""
MAX_TOGETHER_BYTES: Final = 512 * 1024
"""Keys and values of one account, group or check: all three fit into a program's environment."""


def value_problem(value: str) -> str | None:
    """Why a value is too long. None: it is not."""
    size = len(value.encode())
    if size <= MAX_VALUE_BYTES:
        return None
    return f"has {size} bytes; use at most {MAX_VALUE_BYTES}"


def together_problem(size_bytes: int) -> str | None:
    """Why variables are too many for one owner. None: they are not."""
    if size_bytes <= MAX_TOGETHER_BYTES:
        return None
    return f"{size_bytes} bytes together; use at most {MAX_TOGETHER_BYTES}"


def keeping_problem(value: str, *, secret: bool, was_secret: bool | None) -> str | None:
    """Why a value cannot stay as it is: `HIDDEN` was sent, or none for a secret. None: it can.

    `was_secret`: None: there was no variable.
    """
    if not value:
        return None if was_secret else "is empty; a secret needs a value"
    if was_secret is None:
        return f"is {HIDDEN}, which keeps a stored value, and there is none. Send the value"
    if was_secret and not secret:
        return f"is {HIDDEN}, and a secret would be shown by keeping it. Send the value"
    return None


def find_repeated(keys: Iterable[str]) -> str | None:
    """The first key that came before. None: each comes once."""
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return None
