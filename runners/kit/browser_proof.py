"""Whether a launch of Chromium that failed in a run is our fault: by starting it once ourselves."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runners.kit.playwright_ground import BROWSER_ARGUMENTS
from runners.kit.program import Limits, Program
from runners.kit.sandbox import Sandbox
from runners.kit.workspace import Workspace

_LIMIT_S: Final = 10.0
"""It takes a tenth of a second."""
_LIMITS: Final = Limits(memory_mb=1500)
_WAITED: Final = re.compile(r"Timeout (\d+)ms exceeded")
_PLAYWRIGHTS_LIMIT_MS: Final = 30_000
"""Of a launch, where the script sets no other."""


def waited_long(message: str) -> bool:
    """Whether Playwright waited for the browser as long as it does: the machine was slow. Pure."""
    waited = _WAITED.search(message)
    return waited is not None and int(waited[1]) >= _PLAYWRIGHTS_LIMIT_MS


async def is_our_fault(
    message: str, *, sandbox: Sandbox, browser: Path, environment: Callable[[Path], dict[str, str]]
) -> bool:
    """Whether what a launch failed with, as it says, was none of its script's doing.

    `environment`: of a process with such a home.

    Raises:
        OSError: our fault.
    """
    return waited_long(message) or not await _starts(sandbox, browser, environment)


async def _starts(
    sandbox: Sandbox, browser: Path, environment: Callable[[Path], dict[str, str]]
) -> bool:
    """Whether it starts and answers, where no script has had a hand in anything."""
    workspace = Workspace()
    home = workspace.folder / "home"
    home.mkdir()
    arguments = ("--no-sandbox", "--headless", *BROWSER_ARGUMENTS, "--dump-dom", "about:blank")
    program = Program(
        argv=(str(browser), *arguments),
        folder=home,
        env=environment(home),
        limits=_LIMITS,
        facts_fd=False,
    )
    try:
        child = await sandbox.start(program, owner=workspace)
        ended = await child.ended(timeout_s=_LIMIT_S, on_fact=lambda _: None)
    finally:
        await asyncio.to_thread(workspace.remove)
    return ended.exit_code == 0 and any("<html>" in line.message for line in ended.log)
