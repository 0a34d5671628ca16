"""A run gets from its job what it may use."""

from typing import Any

import pytest

from agent.runs import Runs
from contract.job import RunSource
from contract.result import Outcome, Status
from runners.kit.runner import RunContext
from runners.kit.workspace import Workspace
from runners.registry import RUNNERS
from tests.builders.context import PingTable, a_network
from tests.builders.specs import a_job


@pytest.mark.parametrize("source", RunSource)
async def test_files_of_a_run_that_passed_are_kept_when_somebody_asked_for_it(
    source: RunSource,
) -> None:
    given: list[RunContext] = []

    async def execute(_job: Any, _runner: Any, ctx: RunContext) -> Outcome:
        given.append(ctx)
        return Outcome(status=Status.PASSED)

    async with a_network() as network:
        runs = Runs(RUNNERS, network=network, pings=PingTable(), execute=execute)
        await runs.run(a_job(run_source=source), Workspace())
    assert given[0].keeps_files is (source is not RunSource.SCHEDULER)
