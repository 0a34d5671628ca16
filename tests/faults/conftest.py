"""A scene per test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.scene import Scene, set_scene


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with set_scene(tmp_path) as made:
        yield made
