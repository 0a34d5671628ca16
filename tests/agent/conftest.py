"""Limits of the agent are far, unless a test is about one."""

import pytest

from tests.builders.memory_folder import tmp_path
from tests.builders.patience import AGENT_LIMITS, LONG_S

__all__ = ("tmp_path",)


@pytest.fixture(autouse=True)
def _far_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in AGENT_LIMITS:
        monkeypatch.setattr(limit, LONG_S)
