"""Whether a launch of Chromium that failed in a run is our fault: by starting it once ourselves."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from runners.kit.isolation.program import Limits, Program
from runners.kit.isolation.sandbox import Sandbox
from runners.kit.isolation.workspace import Workspace
from runners.kit.playwright.ground import BROWSER_ARGUMENTS
from runners.kit.playwright.launches import LostLaunch

_LIMIT_S: Final = 10.0
"""It takes a tenth of a second."""
_LIMITS: Final = Limits(memory_mb=1500)


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Where a browser can be started as it was for a run."""

    sandbox: Sandbox
    browser: Path
    environment: Callable[[Path], dict[str, str]]
    """Of a process with such a home."""


async def is_our_fault(lost: LostLaunch, proof: Proof, *, within_s: float) -> bool:
    """Whether a browser did not start by none of its script's doing.

    `within_s`: so much of the run's time is left for it; what does not answer then does not start.

    Raises:
        OSError: our fault.
    """
    return lost.is_slow or not await _starts(proof, min(_LIMIT_S, within_s))


async def _starts(proof: Proof, limit_s: float) -> bool:
    """Whether it starts and answers, where no script has had a hand in anything."""
    workspace = Workspace()
    home = workspace.folder / "home"
    home.mkdir()
    arguments = ("--no-sandbox", "--headless", *BROWSER_ARGUMENTS, "--dump-dom", "about:blank")
    program = Program(
        argv=(str(proof.browser), *arguments),
        folder=home,
        env=proof.environment(home),
        limits=_LIMITS,
        facts_fd=False,
    )
    try:
        child = await proof.sandbox.start(program, owner=workspace)
        ended = await child.ended(timeout_s=limit_s, grace_s=0, on_fact=lambda _: None)
    finally:
        await asyncio.to_thread(workspace.remove)
    return ended.exit_code == 0 and any("<html>" in line.message for line in ended.log)
