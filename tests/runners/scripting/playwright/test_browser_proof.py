"""A launch that failed is ours where the browser does not start for us either, or was very slow."""

import asyncio
from pathlib import Path

import pytest

from runners.scripting.playwright.chromium import LaunchTest, is_our_fault
from runners.scripting.playwright.reporter import LostLaunch
from sandbox.sandbox import Sandbox
from tests.builders.browser_programs import hanging_browser
from tests.builders.patience import LONG_S
from tests.builders.scripts import runtimes_here

FOUND = runtimes_here()
LOST = LostLaunch(message="browserType.launch: mkdtemp ENOENT", is_slow=False)
SLOW = LostLaunch(message="browserType.launch: Timeout 30000ms exceeded.", is_slow=True)


async def ours(browser: Path, lost: LostLaunch = LOST, *, within_s: float = 60) -> bool:
    sandbox = Sandbox()
    proof = LaunchTest(
        sandbox=sandbox,
        browser=browser,
        environment=lambda home: {"HOME": str(home), "PATH": "/usr/bin:/bin"},
    )
    try:
        return await is_our_fault(lost, proof, within_s=within_s)
    finally:
        await sandbox.close()


async def test_a_launch_that_works_for_us_was_spoilt_by_the_script() -> None:
    assert FOUND.browser is not None
    assert not await ours(FOUND.browser)
    assert await ours(FOUND.browser, SLOW), "the machine was slow"


@pytest.mark.parametrize("browser", ["/bin/false", "/bin/true"])
async def test_a_browser_that_does_not_answer_is_ours(browser: str) -> None:
    assert await ours(Path(browser))


async def test_the_proof_ends_with_the_time_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.scripting.playwright.chromium._LIMIT_S", 10 * LONG_S)
    with hanging_browser() as browser:
        async with asyncio.timeout(LONG_S):
            assert await ours(browser, within_s=0.5)
