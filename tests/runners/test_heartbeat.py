"""Heartbeat checks: whose ping counts, and when the timer has not started."""

import pytest

from contract.result import FailureKind, HeartbeatEvidence, Status
from runners.heartbeat import HeartbeatRunner
from runners.judging.judge import judge
from tests.builders.context import a_context
from tests.builders.specs import a_heartbeat_spec


@pytest.mark.parametrize(
    ("service_s", "agent_s", "silent_for_s"),
    [
        (None, None, None),
        (40.0, None, 40.0),
        (40.0, 5.0, 5.0),
        (5.0, 40.0, 5.0),
        (None, 5.0, 5.0),
        (None, 91.0, None),
    ],
    ids=[
        "the timer has not started",
        "the service received it",
        "we received a newer one",
        "the service received a newer one",
        "only we know of it yet",
        "ours is from before the activation",
    ],
)
async def test_the_newest_ping_counts(
    service_s: float | None, agent_s: float | None, silent_for_s: float | None
) -> None:
    spec = a_heartbeat_spec(silent_for_s=service_s)
    ours = {} if agent_s is None else {spec.ping_token: agent_s}
    async with a_context(silences_s=ours) as ctx:
        seen = await HeartbeatRunner().observe(spec, ctx)
    assert isinstance(seen.evidence, HeartbeatEvidence)
    assert seen.evidence.silent_for_s == silent_for_s
    assert (seen.evidence.period_s, seen.evidence.grace_s) == (spec.period_s, spec.grace_s)


@pytest.mark.parametrize(("silent_for_s", "status"), [(90.0, Status.PASSED), (91.0, Status.FAILED)])
async def test_a_job_is_overdue_after_period_and_grace(silent_for_s: float, status: Status) -> None:
    spec = a_heartbeat_spec(silent_for_s=silent_for_s)
    async with a_context() as ctx:
        outcome = judge(spec, await HeartbeatRunner().observe(spec, ctx))
    assert outcome.status is status
    assert (outcome.failure is None) == (status is Status.PASSED)
    assert outcome.failure is None or outcome.failure.kind is FailureKind.OVERDUE
