"""Showing results as they come: a live table on a terminal, plain lines anywhere else."""

import asyncio
import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from rich.console import Console
from rich.live import Live

from picket.board import Board, NewResult
from picket.table import LEAST_WIDTH, live_table, plain_line

_REFRESH_S: Final = 0.5


class Display(Protocol):
    """What a person sees while `picket up` runs."""

    def show(self, results: list[NewResult]) -> None:
        """New results have come in; the board has them already."""

    async def keep_fresh(self) -> None:
        """Redraw now and then, until cancelled."""


class PlainLines:
    """One line per result."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, results: list[NewResult]) -> None:
        """Print them, oldest first."""
        for result in results:
            self._console.out(plain_line(result), highlight=False)

    async def keep_fresh(self) -> None:
        """Lines stay as they are."""
        await asyncio.Event().wait()


class LiveTable:
    """One row per check, redrawn in place."""

    def __init__(self, live: Live, board: Board, title: str) -> None:
        self._live = live
        self._board = board
        self._title = title

    def show(self, results: list[NewResult]) -> None:  # noqa: ARG002 - the board has them
        """Redraw."""
        now = datetime.now(UTC)
        # The console asks its terminal each time: people change its size.
        table = live_table(self._board, now=now, title=self._title, console=self._live.console)
        self._live.update(table, refresh=True)

    async def keep_fresh(self) -> None:
        """Redraw twice a second: ages grow."""
        while True:
            self.show([])
            await asyncio.sleep(_REFRESH_S)


@contextmanager
def open_display(console: Console, board: Board, *, title: str) -> Iterator[Display]:
    """The display that fits the console; the last table stays on the screen."""
    if not console.is_terminal or console.width < LEAST_WIDTH:
        yield PlainLines(console)
        return
    with _silent_keys(), Live(console=console, auto_refresh=False) as live:
        yield LiveTable(live, board, title)


@contextmanager
def _silent_keys() -> Iterator[None]:
    """Keys such as Ctrl-C print nothing: a `^C` in the table would move every line after it."""
    before = _settings_of_stdin()
    if before is None:
        yield
        return
    silent = [*before]
    silent[3] = before[3] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _settings_of_stdin() -> list[Any] | None:
    """The terminal's settings. None: there is no terminal, or it listens to another job."""
    try:
        # Who changes them from the background is stopped by the system.
        in_foreground = os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        return termios.tcgetattr(sys.stdin) if in_foreground else None
    except (AttributeError, OSError, ValueError, termios.error):
        return None
