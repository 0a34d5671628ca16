"""Standard output as the commands print to it."""

import os
from typing import Final, NoReturn

from rich.console import Console

_PIPE_COLUMNS: Final = 160
"""Of logs of builds, where people search for words of a line; rich takes 80."""


class Terminal(Console):
    """A console that leaves it to the command line how a command ends."""

    def __init__(self) -> None:
        super().__init__()
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _PIPE_COLUMNS

    def on_broken_pipe(self) -> NoReturn:
        """Whoever read our output has enough; rich would exit in the middle of our tasks."""
        raise BrokenPipeError
