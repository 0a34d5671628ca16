"""Heartbeat checks: did the job that should ping us do so in time?"""

from contract.checks import HeartbeatSpec
from contract.result import HeartbeatEvidence
from runners.runner import LastPings, Observation, RunContext


class HeartbeatRunner:
    """Measures how long a job has not pinged."""

    spec = HeartbeatSpec

    async def observe(self, spec: HeartbeatSpec, ctx: RunContext) -> Observation:
        """Find the newest ping's age, whether the service or this agent received it."""
        evidence = HeartbeatEvidence(
            silent_for_s=_measure_silence_s(spec, ctx.pings),
            period_s=spec.period_s,
            grace_s=spec.grace_s,
        )
        return Observation(evidence=evidence)


def _measure_silence_s(spec: HeartbeatSpec, pings: LastPings) -> float | None:
    """Seconds since the newest ping. None: the timer has not started."""
    ours_s = pings.silent_for_s(spec.ping_token)
    if ours_s is None:
        return spec.silent_for_s
    if spec.silent_for_s is not None:
        return min(ours_s, spec.silent_for_s)
    # The timer has not started for the service: a fresh ping of ours is on its way there, but an
    # old one is from before the check was activated and must not make it overdue.
    return ours_s if ours_s <= spec.period_s + spec.grace_s else None
