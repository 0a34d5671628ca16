"""A scene per test, whose processes come from one that has loaded them before."""

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from tests.builders.memory_folder import tmp_path
from tests.faults.nursery import Nursery
from tests.faults.scene import AGENT, LEASE_S, SERVICE, Scene, set_scene

__all__ = ("tmp_path",)


@pytest.fixture
def lease_s() -> float:
    """How long a lease lasts; a test that is about its length chooses with `leases_of`."""
    return LEASE_S


@pytest.fixture(scope="session")
def nurseries() -> Iterator[Mapping[str, Nursery]]:
    with Nursery(SERVICE) as services, Nursery(AGENT) as agents:
        yield {SERVICE: services, AGENT: agents}


@pytest.fixture
async def scene(
    tmp_path: Path, lease_s: float, nurseries: Mapping[str, Nursery]
) -> AsyncIterator[Scene]:
    async with set_scene(tmp_path, lease_s=lease_s, nurseries=nurseries) as made:
        yield made
