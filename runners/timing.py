"""Measured time, time limits, and durations in words."""

import time
from typing import Final, Protocol

from contract.result import CheckFailed, Failure, FailureKind
from runners.runner import RunContext


def ms_since(began_s: float) -> float:
    """Milliseconds since a reading of `time.perf_counter()`, whole microseconds."""
    return in_ms(time.perf_counter() - began_s)


def in_ms(span_s: float) -> float:
    """The span in milliseconds; what is below a microsecond is noise to its reader."""
    return round(span_s * 1000, 3)


class Probe(Protocol):
    """One run of a check on its own sockets; what it has observed survives a failure."""

    @property
    def waiting_for(self) -> str:
        """What the current step waits for, as the end of `Waited 30 s for …`."""

    async def run(self) -> None:
        """Take all steps.

        Raises:
            CheckFailed: the target is at fault.
        """


async def probe_within(probe: Probe, ctx: RunContext) -> Failure | None:
    """Run the probe within the run's time, and return its failure. None: there was none."""
    limit = ctx.network.deadlines.within(ctx.timeout_s)
    try:
        with limit:
            await probe.run()
    except CheckFailed as failed:
        return failed.failure
    except TimeoutError:
        if not limit.expired:
            raise
        return Failure(
            kind=FailureKind.TIMEOUT,
            message=f"Waited {ctx.timeout_s:g} s for {probe.waiting_for}.",
            detail={"code": "ETIMEDOUT", "timeoutSeconds": ctx.timeout_s},
        )
    return None


def milliseconds(value: float) -> str:
    """A number of milliseconds, whole or with one digit, as in `1.5`."""
    return f"{value:.1f}".removesuffix(".0")


def duration(seconds: float) -> str:
    """A span of time in its two largest units, as in `2 h 5 min`."""
    left, parts = round(seconds), []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        amount, left = divmod(left, length)
        if amount:
            parts.append(f"{amount} {unit}")
    return " ".join(parts[:2]) or "0 s"


_WHOLE_SECONDS_FROM_S: Final = 10


def stopped_early(after_s: float, limit_s: float) -> str:
    """How something ended that was stopped shortly before its limit."""
    after = time_limit(round(after_s, None if after_s >= _WHOLE_SECONDS_FROM_S else 1))
    return f"was stopped after {after} to keep its files within its limit of {time_limit(limit_s)}"


def time_limit(seconds: float) -> str:
    """A limit as somebody set it, as in `10 s`, `2.5 s` or `4 min`."""
    return duration(seconds) if seconds == round(seconds) else f"{round(seconds, 3):g} s"
