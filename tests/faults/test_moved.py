"""An installation moves to PostgreSQL and back: its agent goes on, and nothing counts twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.commands import picket
from tests.faults.ledger import read_ledger
from tests.faults.scene import Scene
from tests.servers.postgresql import postgres_server

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


@pytest.fixture
def url() -> Iterator[str]:
    """An empty PostgreSQL database."""
    with postgres_server() as server, server.database() as empty:
        yield empty


async def test_an_agent_goes_on_while_the_database_moves_to_postgresql_and_back(
    scene: Scene, url: str
) -> None:
    await scene.start_agent()
    first = await scene.check("/first", count=2)
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await scene.until(lambda: scene.ledger().final == 2)
    folder = {"SERVICE_DATA_DIR": str(scene.folder / "service")}

    assert await scene.service.stop() == 0
    await picket("migrate-store", "--to", url, **folder)
    move_away(scene.database)
    scene.quick = {**scene.quick, "DATABASE_URL": url}
    await scene.start_service()
    scene.target.release()
    await scene.trigger(first)
    await scene.until(lambda: read_ledger(url).final == 7)

    assert await scene.service.stop() == 0
    await picket("migrate-store", "--to", "sqlite", DATABASE_URL=url, **folder)
    scene.quick = {name: value for name, value in scene.quick.items() if name != "DATABASE_URL"}
    await scene.start_service()
    await scene.trigger(first)
    await scene.until(lambda: scene.ledger().final == 9)
    ledger = await scene.settle()
    assert (ledger.final, ledger.late, ledger.most_claims) == (9, 0, 1)
    assert scene.target.seen == {"/first": 6, "/held": 3}


def move_away(database: Path) -> None:
    """As an operator does who wants no second database lying about."""
    database.rename(database.with_name("before-postgresql.db"))
