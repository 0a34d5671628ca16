"""Text of a target as a terminal may show it. Pure."""

import re
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str, *, limit: int = 2000) -> str:
    """The text without control codes, which could rewrite the terminal, and cut to the limit."""
    cleaned = _CONTROL.sub("·", text.replace("\r\n", "\n"))
    return cleaned if len(cleaned) <= limit else f"{cleaned[:limit]}… ({len(cleaned)} characters)"


def one_line(text: str, *, limit: int = 200) -> str:
    """The text on one line."""
    return printable(" ".join(text.split()), limit=limit)


def duration(milliseconds: float | None) -> str:
    """A time for the reader, as in `3.2 ms` or `1.25 s`; a dash when it was not measured.

    The public API cuts times to whole milliseconds, so 0 there is anything below one.
    """
    if milliseconds is None:
        return "-"
    if milliseconds == 0:
        return "<1 ms"
    if milliseconds < 100:
        return f"{milliseconds:.{2 if milliseconds < 1 else 1}f} ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:.2f} s"
