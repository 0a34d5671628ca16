"""The agent's calendar is wrong; only the database's clock decides."""

import json
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.faults.scene import RENEW, Scene, leases_of
from tests.servers.fault_proxy import OPEN

_FOUND = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not _FOUND, reason="libfaketime is not installed"),
    pytest.mark.parametrize("offset", ["+1h", "-1h"]),
]


def wrong_clock(offset: str) -> dict[str, str]:
    """The environment of a process whose calendar is off; its intervals are right."""
    return {
        "LD_PRELOAD": str(_FOUND[0]),
        "FAKETIME": offset,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


def times(scene: Scene) -> list[tuple[int, int]]:
    """Start and end of every FINAL result, Unix time in ms."""
    with closing(sqlite3.connect(scene.database)) as file:
        return file.execute("SELECT ts, stopped_ms FROM result").fetchall()


async def test_runs_are_stored_by_the_services_clock(scene: Scene, offset: str) -> None:
    began_ms = time.time() * 1000 - 1
    agent = await scene.start_agent(**wrong_clock(offset))
    told = datetime.fromisoformat(json.loads(agent.lines[-1])["ts"])
    assert abs(told - datetime.now(UTC)) > timedelta(minutes=30), "the agent's clock is wrong"
    await scene.check(count=5)
    await scene.until(lambda: scene.ledger().final == 5)
    ended_ms = time.time() * 1000 + 1
    assert all(began_ms <= start <= end <= ended_ms for start, end in times(scene))
    ledger = await scene.settle()
    assert ledger.most_claims == 1


@leases_of(18)
async def test_leases_and_waiting_results_do_not_mind_the_calendar(
    scene: Scene, offset: str
) -> None:
    agent = await scene.start_agent(**wrong_clock(offset), SPOOL_MAX_AGE_S="600")
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await scene.proxy.struck(scene.proxy.arm(OPEN, when=RENEW))
    assert agent.events("lease.ran_out") == []
    await scene.proxy.refuse()
    scene.target.release()
    await scene.on_disk(3)
    ledger = await scene.settle()
    assert ledger.final == 3


async def test_results_of_an_agent_with_another_calendar_are_taken_over(
    scene: Scene, offset: str
) -> None:
    wrong = await scene.start_agent(**wrong_clock(offset))
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await scene.proxy.refuse()
    scene.target.release()
    await scene.on_disk(3)
    await wrong.kill()
    await scene.proxy.accept()
    await scene.start_agent()
    await scene.until(lambda: scene.ledger().final == 3)
    await scene.settle()
    assert scene.target.seen["/held"] == 3
