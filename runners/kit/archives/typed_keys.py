"""What keys type, as Playwright's layout of a US keyboard has it; `keys.cjs` is its twin."""

import re
from typing import Final

BACKSPACE: Final = "\b"
_SIGNS: Final = {
    "Backquote": "`~",
    "Minus": "-_",
    "Equal": "=+",
    "BracketLeft": "[{",
    "BracketRight": "]}",
    "Backslash": "\\|",
    "Semicolon": ";:",
    "Quote": "'\"",
    "Comma": ",<",
    "Period": ".>",
    "Slash": "/?",
    "Space": "  ",
    "Enter": "\n\n",
    "NumpadEnter": "\n\n",
    "NumpadAdd": "++",
    "NumpadSubtract": "--",
    "NumpadMultiply": "**",
    "NumpadDivide": "//",
    "Backspace": BACKSPACE * 2,
}
"""By their code, what they type without Shift and with it."""
_ABOVE_DIGITS: Final = ")!@#$%^&*("
_CODE: Final = re.compile(r"Key([A-Z])|Digit([0-9])|Numpad([0-9]|Decimal)")
_OTHER_MODIFIERS: Final = ("Control+", "Alt+", "Meta+", "ControlOrMeta+")


def letter_of(key: str, *, is_shifted: bool) -> str:
    """What a key types, or takes off (`BACKSPACE`). Nothing: it does neither.

    `is_shifted`: whether Shift is held beside those that the key's name tells.
    """
    if len(key) == 1:
        return key
    held, plus, name = key.rpartition("+")
    if any(one in held + plus for one in _OTHER_MODIFIERS):
        return ""
    return _by_name(name or plus, is_shifted=is_shifted or "Shift" in held)


def _by_name(name: str, *, is_shifted: bool) -> str:
    if len(name) == 1:
        return name
    if name == "Tab":
        return "" if is_shifted else "\t"
    code = _CODE.fullmatch(name)
    if code is None:
        return _SIGNS[name][is_shifted] if name in _SIGNS else ""
    letter, digit, keypad = code.groups()
    if letter is not None:
        return str(letter) if is_shifted else str(letter).lower()
    if digit is not None:
        return _ABOVE_DIGITS[int(digit)] if is_shifted else str(digit)
    return str(keypad).replace("Decimal", ".") if is_shifted else ""
