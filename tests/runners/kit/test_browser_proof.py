"""A launch that failed is ours where the browser does not start for us either, or was very slow."""

from pathlib import Path

import pytest

from runners.kit.browser_proof import is_our_fault, waited_long
from runners.kit.runtimes import find_runtimes
from runners.kit.sandbox import Sandbox

FOUND = find_runtimes()
SLOW = "browserType.launch: Timeout 30000ms exceeded."


async def ours(message: str, browser: Path) -> bool:
    sandbox = Sandbox()
    try:
        return await is_our_fault(
            message,
            sandbox=sandbox,
            browser=browser,
            environment=lambda home: {"HOME": str(home), "PATH": "/usr/bin:/bin"},
        )
    finally:
        await sandbox.close()


async def test_a_launch_that_works_for_us_was_spoilt_by_the_script() -> None:
    assert FOUND.browser is not None
    assert not await ours("browserType.launch: mkdtemp ENOENT", FOUND.browser)
    assert await ours(SLOW, FOUND.browser), "the machine was slow"


@pytest.mark.parametrize("browser", ["/bin/false", "/bin/true"])
async def test_a_browser_that_does_not_answer_is_ours(browser: str) -> None:
    assert await ours("browserType.launch: closed", Path(browser))


def test_only_as_long_as_playwright_itself_waits_is_long() -> None:
    assert waited_long(SLOW)
    assert not waited_long("Timeout 250ms exceeded.")
    assert not waited_long("closed")
