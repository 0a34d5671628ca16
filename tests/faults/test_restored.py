"""The service's machine is lost; a backup is restored on another one, and agents go on."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.builders.commands import picket
from tests.faults.scene import Scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


async def lose_machine(scene: Scene) -> None:
    """SIGKILL, and nothing on its disk can be reached any more."""
    await scene.service.kill()
    folder = scene.folder / "service"
    folder.rename(folder.with_name("lost"))


async def test_agents_go_on_with_a_restored_service_and_nothing_counts_twice(
    scene: Scene, tmp_path: Path
) -> None:
    agent = await scene.start_agent()
    [busy] = await scene.check("/busy")
    await scene.check("/held/known", count=3)
    await scene.target.held(3, path="/held/known")
    backup = str(tmp_path / "backup.tar")
    folder = {"SERVICE_DATA_DIR": str(scene.folder / "service")}
    async with stirred(scene, busy):
        await picket("backup", backup, **folder)

    # What the backup does not know of: how these three ended, and two checks that run.
    scene.target.release()
    await scene.until(lambda: scene.ledger().open_runs == 0)
    scene.target.hold()
    await scene.check("/held/lost", count=2)
    await scene.target.held(2, path="/held/lost")
    before = scene.ledger()
    await lose_machine(scene)
    await picket("restore", backup, **folder)
    restored = scene.ledger()
    assert 0 < restored.final < before.final
    assert restored.leased >= 3, "the jobs that the agent held at the backup"
    scene.triggered = triggered(scene.database)

    await scene.start_service()
    scene.leases_run_out()
    # Runs that have the numbers of lost ones, whose results the agent brings now.
    await scene.check("/after", count=5)
    scene.target.release()
    ledger = await scene.settle(may_drop=True)
    assert ledger.runs == restored.runs + 5
    assert scene.target.seen["/after"] == 5
    assert scene.target.seen["/held/known"] == 6, "before the loss, and once more after it"
    assert await agent.metric("results_dropped_total") == 2, "of the runs that were lost"


def triggered(database: Path) -> int:
    """How many runs were asked for in these books, ended or not."""
    statement = """
        SELECT (SELECT count(*) FROM job WHERE source = 'TRIGGER_API') + (SELECT count(*)
        FROM result WHERE source = 'TRIGGER_API' AND result_type = 'FINAL')
    """
    with closing(sqlite3.connect(database)) as file:
        return int(file.execute(statement).fetchone()[0])


@asynccontextmanager
async def stirred(scene: Scene, check: str) -> AsyncIterator[None]:
    """The service writes all the time."""
    stirring = asyncio.create_task(_stir(scene, check), name="stir")
    try:
        await scene.until(lambda: scene.target.seen["/busy"] > 3)
        yield
        assert not stirring.done()
    finally:
        stirring.cancel()
        await asyncio.wait([stirring])


async def _stir(scene: Scene, check: str) -> None:
    while True:
        await scene.trigger([check], times=3)
        await asyncio.sleep(0.02)
