"""Text of a target as a terminal may show it. Pure."""

import re
from typing import Final

from runners.kit.time_words import duration as span

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str, *, limit: int = 2000) -> str:
    """The text without control codes, which could rewrite the terminal, and cut to the limit."""
    cleaned = _CONTROL.sub("·", text.replace("\r\n", "\n"))
    return cleaned if len(cleaned) <= limit else f"{cleaned[:limit]}… ({len(cleaned)} characters)"


def one_line(text: str, *, limit: int = 200) -> str:
    """The text on one line."""
    return printable(" ".join(text.split()), limit=limit)


def duration(milliseconds: float | None) -> str:
    """A time for the reader: `3.2 ms`, `420 ms`, `3.8 s`, `2 min 5 s`; a dash for none.

    The public API cuts times to whole milliseconds, so 0 there is anything below one.
    """
    if milliseconds is None:
        return "-"
    if milliseconds == 0:
        return "<1 ms"
    if milliseconds < 99.95:
        return f"{milliseconds:.{2 if milliseconds < 0.995 else 1}f} ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 59.95 else span(seconds)
