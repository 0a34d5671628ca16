"""A scene per test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.builders.memory_folder import tmp_path
from tests.faults.scene import LEASE_S, Scene, set_scene

__all__ = ("tmp_path",)


@pytest.fixture
def lease_s() -> float:
    """How long a lease lasts; a test that is about its length chooses with `leases_of`."""
    return LEASE_S


@pytest.fixture
async def scene(tmp_path: Path, lease_s: float) -> AsyncIterator[Scene]:
    async with set_scene(tmp_path, lease_s=lease_s) as made:
        yield made
