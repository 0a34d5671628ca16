"""Standard output as the commands print to it."""

from typing import NoReturn

from rich.console import Console


class Terminal(Console):
    """A console that leaves it to the command line how a command ends."""

    def on_broken_pipe(self) -> NoReturn:
        """Whoever read our output has enough; rich would exit in the middle of our tasks."""
        raise BrokenPipeError
