"""Heavy work beside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

AnswerT = TypeVar("AnswerT")

THREADS: Final = 2
"""More would only fight over the interpreter; what waits is a check that has seen its target."""


class Aside:
    """Runs functions in threads of its own, so that other checks' clocks stay true meanwhile.

    The loop's shared pool is for name lookups: a slow judgement must not stop those.
    """

    def __init__(self, *, threads: int = THREADS, name: str = "aside") -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, function: Callable[[], AnswerT]) -> AnswerT:
        """What the function says; it runs to its end even when nobody waits any more."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def close(self) -> None:
        """Let the threads go; work under way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
