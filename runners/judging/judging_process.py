"""The process that judges large bodies, as the agent sees it.

Reading 25 MB of JSON takes an interpreter for half a second, and threads share one.
"""

import asyncio
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from contract.checks import CheckSpec
from contract.result import Outcome
from runners.runner import Observation

_COMMAND: Final = (sys.executable, "-P", "-m", "runners.judging.judge_child")
_ROOT: Final = str(Path(__file__).parents[2])
IDLE_S: Final = 2.0
"""How long the process waits for another body; a start takes 0.2 s of CPU time."""


class JudgingBrokeError(RuntimeError):
    """The process that judges large bodies ended before it had judged one."""


class JudgingProcess:
    """Judges large bodies one after the other, in a process that ends soon after the last one.

    It ends because what it has taken for a body may stay taken.
    """

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judging")
        """Only this thread starts, asks and ends the process."""
        self._open = 0
        """How many bodies wait or are judged."""
        self._timer: asyncio.TimerHandle | None = None
        """When the process ends. None: it is asked, or there is none."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process. None: there is none."""
        process = self._process
        return None if process is None else process.pid

    async def judge(self, spec: CheckSpec, seen: Observation) -> Outcome:
        """Return the outcome; the work goes on to its end even when nobody waits any more.

        Raises:
            JudgingBrokeError: the process ended; never the target's fault.
            OSError: it does not start.
        """
        self._open += 1
        if self._timer is not None:
            self._timer.cancel()
        order = (spec, msgspec.structs.replace(seen, release=None))
        try:
            return await asyncio.wrap_future(self._thread.submit(self._ask, order))
        finally:
            self._open -= 1
            if not self._open:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._idle_s, self._thread.submit, self._end)

    def kill(self) -> None:
        """Kill the process, whatever it is at."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process and the thread that asks it."""
        if self._timer is not None:
            self._timer.cancel()
        self.kill()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._end()

    def _ask(self, order: tuple[CheckSpec, Observation]) -> Outcome:
        process = self._process or self._start()
        try:
            return _exchange(process, order)
        except (EOFError, OSError, pickle.UnpicklingError) as problem:
            raise JudgingBrokeError(f"The judging process ended with {self._end()}.") from problem
        except BaseException:
            self._end()  # it has a part of the order
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join((_ROOT, *filter(None, sys.path)))
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            _COMMAND,
            env={"PATH": os.defpath, "PYTHONPATH": path, "LANG": "C.UTF-8"},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self._process

    def _end(self) -> int | None:
        """End the process; return its exit code. None: there was none."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                _require(pipe).close()
        return process.wait()


def _exchange(process: subprocess.Popen[bytes], order: object) -> Outcome:
    """Write the order and read the outcome; long bytes go into the pipe without a copy."""
    to_it, from_it = _require(process.stdin), _require(process.stdout)
    pickle.dump(order, to_it, pickle.HIGHEST_PROTOCOL)
    to_it.flush()
    outcome: Outcome = pickle.load(from_it)  # noqa: S301 - our own process writes it
    return outcome


def _require(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise JudgingBrokeError("The judging process has no pipes.")
    return pipe
