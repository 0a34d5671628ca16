"""One job under its deadline: look, then judge."""

from functools import partial
from typing import Any

from contract.job import Job
from contract.result import Failure, FailureKind, Outcome
from runners.kit.failures import CheckFailed
from runners.kit.judge import judge
from runners.kit.observation import Observation
from runners.kit.runner import RunContext, Runner
from runners.kit.time_words import time_limit
from runners.kit.weight import is_heavy


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
        seen = Observation(failure=_out_of_time(ctx.told_limit_s))
    if is_heavy(job.spec, seen.facts):
        return await ctx.network.aside.run(partial(judge, job.spec, seen))
    return judge(job.spec, seen)


def _out_of_time(limit_s: float) -> Failure:
    return Failure(
        kind=FailureKind.TIMEOUT,
        message=f"The check did not end within its limit of {time_limit(limit_s)}.",
        detail={"code": "DEADLINE", "limitSeconds": limit_s},
    )
