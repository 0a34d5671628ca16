"""Limits of the runners are far, unless a test is about one."""

import pytest

from tests.builders.patience import LONG_S, RUNNERS_LIMITS, hasty_pings, patient_pings

__all__ = ("hasty_pings", "patient_pings")


@pytest.fixture(autouse=True)
def _far_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in RUNNERS_LIMITS:
        monkeypatch.setattr(limit, LONG_S)
