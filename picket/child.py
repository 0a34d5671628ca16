"""A program of ours as a child process: its own process group, its output in a file."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_INHERITED: Final = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LOG_LEVEL"),
    *("PICKET_RUNTIMES", "CHROMIUM_PATH"),
)
"""All that every child gets of our environment: no proxy, no key, no database of somebody's."""
_TAIL_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to start: `python -P -m module` with these settings and no others."""

    module: str
    settings: Mapping[str, str]
    log: Path
    """Where standard output and error go, after what is there."""


class Child:
    """A running program; stopped with everything that it started."""

    def __init__(
        self, program: Program, process: asyncio.subprocess.Process, *, log_begins_at: int
    ) -> None:
        self._program = program
        self._process = process
        self._log_begins_at = log_begins_at
        """Bytes; what stands before is of earlier starts."""

    def __repr__(self) -> str:
        return f"Child({self.name}, pid={self._process.pid}, exit_code={self.exit_code})"

    @classmethod
    async def start(cls, program: Program) -> "Child":
        """Start it in a new process group, so that Ctrl-C at the terminal reaches us alone."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        with program.log.open("ab") as log:
            log_begins_at = log.tell()
            process = await asyncio.create_subprocess_exec(
                *_dies_with_us(),
                sys.executable,
                "-P",  # a folder `agent` in the working directory is not ours
                "-m",
                program.module,
                env={**inherited, **program.settings},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return cls(program, process, log_begins_at=log_begins_at)

    @property
    def name(self) -> str:
        """The module that runs."""
        return self._program.module

    @property
    def exit_code(self) -> int | None:
        """Negative: killed by that signal. None: it runs."""
        return self._process.returncode

    @property
    def log(self) -> Path:
        """Where its output is."""
        return self._program.log

    async def ended(self) -> int:
        """Wait for its end; gives the exit code."""
        return await self._process.wait()

    async def stop(self, *, limit_s: float) -> None:
        """Ask it to end, wait that long, then kill its whole group."""
        try:
            if self.exit_code is None:
                self._signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), limit_s)
        finally:
            # Even when it ended politely, something that it started may be left.
            self._signal(signal.SIGKILL)
        await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def last_lines(self, count: int) -> list[str]:
        """The end of its log, as far as it is of this start."""
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_begins_at, size - _TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
        return text.splitlines()[-count:]


def _dies_with_us() -> tuple[str, ...]:
    """Have the kernel end the child when we are killed, where util-linux can arrange that."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return (setpriv, "--pdeathsig", "TERM", "--") if setpriv else ()
