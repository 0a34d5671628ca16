"""Standard output as the commands print to it."""

import os
from pathlib import Path
from typing import Any, Final, NoReturn

from rich.console import Console

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
