"""A run gets from its job what it may use."""

from typing import Any

import pytest

from agent.jobs.running import JobRunner
from contract.checks import CheckType, Lane, lane
from contract.job import Job, RunSource
from contract.result import Outcome, Status
from runners.registry import RUNNABLE, RUNNERS
from runners.runner import RunContext
from sandbox.workspace import Workspace
from tests.builders.context import PingTable, a_network
from tests.builders.specs import a_job, a_spec_of


async def given_to(job: Job, **changes: Any) -> RunContext:
    """What the runner of this job gets."""
    given: list[RunContext] = []

    async def execute(_job: Any, _runner: Any, ctx: RunContext) -> Outcome:
        given.append(ctx)
        return Outcome(status=Status.PASSED)

    async with a_network() as network:
        runs = JobRunner(RUNNERS, network=network, pings=PingTable(), execute=execute, **changes)
        await runs.run(job, Workspace())
    return given[0]


@pytest.mark.parametrize("source", RunSource)
async def test_files_of_a_run_that_passed_are_kept_when_somebody_asked_for_it(
    source: RunSource,
) -> None:
    ctx = await given_to(a_job(run_source=source))
    assert ctx.keeps_files is (source is not RunSource.SCHEDULER)


@pytest.mark.parametrize("kind", sorted(RUNNABLE))
async def test_the_locations_secrets_are_for_checks_that_run_in_the_slots_of_scripts(
    kind: CheckType,
) -> None:
    secrets = {"SERVICE_SECRET_DB": "hunter2"}
    job = a_job(a_spec_of(kind))
    ctx = await given_to(job, location_secrets=secrets)
    assert ctx.location_secrets == ({} if lane(job.spec) is Lane.UPTIME else secrets)
    assert "SERVICE_SECRET_DB" not in ctx.environment
