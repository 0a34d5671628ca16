"""Text that is safe to print, and what the terminal can show."""

import os
import re
from pathlib import Path
from typing import Any, Final, NoReturn

from rich.console import Console

from runners.timing import duration as span

_PIPE_COLUMNS: Final = 10_000
"""More than any line has: people search logs of builds for words of a line; rich takes 80."""


def near_path(path: Path) -> Path:
    """The path as somebody in this folder writes it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


class Terminal(Console):
    """A console that leaves it to the command line how a command ends."""

    def __init__(self) -> None:
        super().__init__()
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _PIPE_COLUMNS

    def print(self, *objects: Any, **options: Any) -> None:
        """Print them; where no terminal needs blanks at the ends of lines, without."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as captured:
            super().print(*objects, **options)
        lines = captured.get().split("\n")
        try:
            self.file.write("\n".join(line.rstrip(" ") for line in lines))
            self.file.flush()
        except BrokenPipeError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> NoReturn:
        """Whoever read our output has enough; rich would exit in the middle of our tasks.

        The error has no number: by that of the system click would know it, and exit with 1.
        """
        raise BrokenPipeError from None


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
