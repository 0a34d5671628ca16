"""What tests of the runners share: limits are far, unless a test is about one."""

from collections.abc import AsyncIterator

import pytest

from tests.builders.patience import LONG_S, RUNNERS_LIMITS, hasty_pings, patient_pings
from tests.builders.suites import FURTHER_VERSIONS, VERSIONS
from tests.servers.measured_site import measured_site

__all__ = ("hasty_pings", "patient_pings")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that ask for a `playwright_version` run with several."""
    if "playwright_version" in metafunc.fixturenames:
        further = FURTHER_VERSIONS if metafunc.config.getoption("every_playwright") else ()
        metafunc.parametrize("playwright_version", (*VERSIONS, *further))


@pytest.fixture(autouse=True)
def _far_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in RUNNERS_LIMITS:
        monkeypatch.setattr(limit, LONG_S)


@pytest.fixture
async def site() -> AsyncIterator[str]:
    """The address of a site whose pages are measured."""
    async with measured_site() as url:
        yield url
