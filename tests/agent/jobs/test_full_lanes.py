"""A lane that is full for long is in the agent's log, with the checks that fill it."""

import asyncio

from structlog.testing import capture_logs

from agent.jobs.dispatcher import warn_when_saturated
from agent.jobs.running import Run, RunningJobs
from contract.checks import Lane
from sandbox.workspace import Workspace
from tests.builders.specs import a_job


def running(**lanes: Lane) -> RunningJobs:
    jobs = RunningJobs()
    for check_id, on in lanes.items():
        job = a_job(check_id=check_id)
        jobs.add(Run(job=job, lane=on, claimed_at=0, workspace=Workspace()))
    return jobs


async def test_a_long_wait_for_a_slot_names_the_checks_that_hold_them_all() -> None:
    held = running(shop=Lane.MAIN, ping=Lane.UPTIME, tea=Lane.MAIN)
    with capture_logs() as said, warn_when_saturated(Lane.MAIN, held, after_s=0.01):
        await asyncio.sleep(0.05)
    full, free = said
    assert (full["event"], full["log_level"], full["lane"]) == ("slots.full", "warning", "main")
    assert (full["slots"], full["checks"]) == (2, ["shop", "tea"])
    assert full["setting"] == "JOB_CONCURRENCY"
    assert (free["event"], free["log_level"]) == ("slots.free_again", "info")


async def test_a_short_wait_is_no_news() -> None:
    with capture_logs() as said:
        with warn_when_saturated(Lane.UPTIME, running(), after_s=60):
            await asyncio.sleep(0)
        await asyncio.sleep(0.03)
    assert said == []
