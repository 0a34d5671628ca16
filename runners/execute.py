"""Runs one check: observe, then judge, within its time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from contract.checks import CheckSpec
from contract.job import Job
from contract.result import CheckFailed, Failure, FailureKind, Outcome
from runners.judging.judge import judge
from runners.runner import Observation, RunContext, Runner, is_cpu_bound, is_huge
from runners.timing import time_limit


async def execute(job: Job, runner: Runner[Any], ctx: RunContext) -> Outcome:
    """Run the job and judge what was seen.

    Whatever is not the target's fault propagates untouched: the job is then to be released.
    """
    # A runner keeps to ctx.timeout_s by itself and says more; this only holds when it does not.
    deadline = ctx.network.deadlines.within(job.deadline_s)
    try:
        with deadline:
            seen: Observation = await runner.observe(job.spec, ctx)
    except CheckFailed as failed:
        seen = Observation(failure=failed.failure)
    except TimeoutError:
        if not deadline.expired:
            raise
        seen = Observation(failure=_out_of_time(ctx.stated_limit_s))
    try:
        return await _judge(job.spec, seen, ctx)
    finally:
        if seen.release is not None:
            seen.release()


async def _judge(spec: CheckSpec, seen: Observation, ctx: RunContext) -> Outcome:
    if not is_cpu_bound(spec, seen.facts):
        return judge(spec, seen)
    if is_huge(spec, seen.facts):
        return await ctx.network.judging.judge(spec, seen)
    return await ctx.network.aside.run(partial(judge, spec, seen))


def _out_of_time(limit_s: float) -> Failure:
    return Failure(
        kind=FailureKind.TIMEOUT,
        message=f"The check did not end within its limit of {time_limit(limit_s)}.",
        detail={"code": "DEADLINE", "limitSeconds": limit_s},
    )


AnswerT = TypeVar("AnswerT")

THREADS: Final = 2
"""How many threads judge: more would only compete for the interpreter."""


class ThreadWorkers:
    """Runs functions in threads of its own, so that the timings of other checks stay correct.

    The loop's shared pool is for name lookups: a slow judgement must not block those.
    """

    def __init__(self, *, threads: int = THREADS, name: str = "aside") -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, function: Callable[[], AnswerT]) -> AnswerT:
        """Return the function's result; it runs to its end even when nobody waits any more."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def close(self) -> None:
        """Release the threads without waiting for work in progress."""
        self._threads.shutdown(wait=False, cancel_futures=True)
