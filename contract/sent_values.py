"""How a value that was sent stands in the sentence that refuses it: short, never a secret. Pure."""

import math
import re
from collections.abc import Mapping
from typing import Final

_MOST_LETTERS: Final = 60
_LARGEST: Final = 1e300
"""What is larger is not written out."""
_KINDS: Final = (
    (bool, "a boolean"),
    (int | float, "a number"),
    (str, "a text"),
    (Mapping, "an object"),
    (list | tuple, "an array"),
)
_MAY_HOLD_A_SECRET: Final = re.compile(r"^(cu|sv|pl)_|://|@", re.IGNORECASE)
"""A key that was put into the wrong field; an address, of which any part may be one."""


def told(value: object) -> str:
    """The value itself, or of which kind it is: `80`, `mars-1`, `empty`, `an array`.

    For fields that hold words of ours, names, numbers and times. A text of another field may be a
    secret, and is not to be told.
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str):
        return _text(value)
    return kind_of(value)


def kind_of(value: object) -> str:
    """Of which kind a value is, and no more."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "null")


def _number(value: float) -> str:
    if not abs(value) < _LARGEST:
        is_finite = isinstance(value, int) or math.isfinite(value)
        return "too large a number" if is_finite else "no finite number"
    return str(value) if abs(value) < 1e15 else f"{value:g}"


def _text(text: str) -> str:
    if not text.strip():
        return "blank" if text else "empty"
    if len(text) > _MOST_LETTERS:
        return f"a text of {len(text)} characters"
    if not text.isprintable() or _MAY_HOLD_A_SECRET.search(text):
        return "a text"
    return text
