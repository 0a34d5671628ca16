"""A look that ends in time and says what it was waiting for when it had to stop."""

from typing import Protocol

from contract.result import Failure, FailureKind
from runners.kit.failures import CheckFailed
from runners.kit.runner import RunContext


class Look(Protocol):
    """One look at a target, step by step; what it has seen survives a failure."""

    @property
    def waiting_for(self) -> str:
        """What the present step waits for, as the end of `waited 30 s for …`."""

    async def go(self) -> None:
        """Take all steps.

        Raises:
            CheckFailed: the target stood in the way.
        """


async def look_in_time(look: Look, ctx: RunContext) -> Failure | None:
    """Go through with the look; what stood in the way of it, or None when nothing did."""
    limit = ctx.network.deadlines.within(ctx.timeout_s)
    try:
        with limit:
            await look.go()
    except CheckFailed as failed:
        return failed.failure
    except TimeoutError:
        if not limit.expired:
            raise
        return Failure(
            kind=FailureKind.TIMEOUT,
            message=f"Waited {ctx.timeout_s:g} s for {look.waiting_for}.",
            detail={"code": "ETIMEDOUT", "timeoutSeconds": ctx.timeout_s},
        )
    return None
