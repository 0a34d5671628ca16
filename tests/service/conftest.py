"""What tests of the service share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.builders.memory_folder import tmp_path
from tests.builders.world import World, a_world
from tests.servers.public_api import ApiUser, PublicApi, serve_public_api
from tests.servers.service import RunningService, serve_service

__all__ = ("tmp_path",)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[PublicApi]:
    """The public API on a database of its own."""
    async with serve_public_api(tmp_path) as running:
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
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """An account with a location, on a clock that stands still."""
    async with a_world(tmp_path) as made:
        yield made


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    """The whole service on a real socket, on a database of its own."""
    async with serve_service(tmp_path) as running:
        yield running
