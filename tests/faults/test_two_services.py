"""Several services that share one PostgreSQL, and four agents: killed and cut off."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.faults.nursery import Nursery
from tests.faults.replicas import Replicas, set_replicas
from tests.servers.postgresql import (
    LocalPostgres,
    PostgresServer,
    postgres_server,
    require_programs,
)

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

_AWAY_S: Final = 25.0
"""Longer than a change waits for the database (QUICK_GIVE_UP_S)."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as running:
        yield running


@pytest.fixture
async def pair(
    tmp_path: Path, postgres: PostgresServer, nurseries: Mapping[str, Nursery]
) -> AsyncIterator[Replicas]:
    with postgres.database() as url:
        async with set_replicas(tmp_path, url, nurseries) as made:
            yield made


async def test_every_run_ends_once_whichever_service_dies_or_is_cut_off(pair: Replicas) -> None:
    checks = [await pair.check(at, frequency_s=10) for at in ("one", "two") for _ in range(4)]
    for number in range(6):
        await pair.trigger("one" if number % 2 else "two", checks)
        await asyncio.to_thread(pair.cut_all_off) if number % 3 == 1 else None
        await asyncio.sleep(1)
        if number == 2:
            await pair.services["two"].kill()
            await pair.start_service("two")
    await pair.until(lambda: all(len(times) >= 4 for times in pair.due_times().values()))
    await pair.assert_balanced("one", checks)


async def test_every_run_ends_once_when_the_database_is_away_for_a_while(
    tmp_path: Path, nurseries: Mapping[str, Nursery]
) -> None:
    with (
        TemporaryDirectory(prefix="picket-postgres-") as folder,
        (server := LocalPostgres(require_programs(), Path(folder))).running() as postgres,
        postgres.database() as url,
    ):
        async with set_replicas(tmp_path, url, nurseries) as pair:
            checks = [await pair.check(at, frequency_s=10) for at in ("one", "two")]
            await pair.trigger("one", checks)
            await pair.until(lambda: all(map(pair.due_times().get, checks)))
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(_AWAY_S)
            assert all(one.is_alive for one in pair.services.values())
            await asyncio.to_thread(server.start)
            await pair.until(lambda: all(len(times) >= 4 for times in pair.due_times().values()))
            await pair.assert_balanced("one", checks)


async def test_agents_of_either_service_hear_at_once_of_runs_that_the_other_one_queued(
    pair: Replicas,
) -> None:
    check = await pair.check("one", frequency_s=0)
    await pair.until(lambda: pair.ledger().final == 1)
    for agent in pair.agents[::2]:  # those of the first service
        await agent.stop()
    session = await pair.trigger("one", [check])
    awaited = await pair.ask("one", "GET", f"/v1/check-sessions/{session}/completion")
    assert awaited["status"] == "PASSED"
