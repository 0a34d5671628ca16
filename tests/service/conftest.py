"""What tests of the service share."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.builders.memory_folder import tmp_path
from tests.builders.world import World, a_world
from tests.servers.postgresql import PostgresServer, postgres_server
from tests.servers.public_api import ApiUser, PublicApi, serve_public_api
from tests.servers.service import RunningService, serve_service

__all__ = ("tmp_path",)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; the test is skipped where there is none."""
    with postgres_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def postgresql_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """A database of its own with the newest schema. None: the test is to use SQLite."""
    if request.param == "sqlite":
        yield None
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    with server.database(template=server.template()) as url:
        yield url


@pytest.fixture
async def api(tmp_path: Path, postgresql_url: str | None) -> AsyncIterator[PublicApi]:
    """The public API on a database of its own."""
    async with serve_public_api(tmp_path, postgresql_url=postgresql_url) as running:
        yield running


@pytest.fixture
async def alice(api: PublicApi) -> ApiUser:
    """The owner of the first account."""
    return api.alice


@pytest.fixture
async def charlie(api: PublicApi) -> ApiUser:
    """Somebody else, with an account of his own."""
    return await api.another_user("Charlie")


@pytest.fixture
async def world(tmp_path: Path, postgresql_url: str | None) -> AsyncIterator[World]:
    """An account with a location, on a clock that stands still."""
    async with a_world(tmp_path, postgresql_url=postgresql_url) as made:
        yield made


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    """The whole service on a real socket, on a database of its own."""
    async with serve_service(tmp_path) as running:
        yield running
