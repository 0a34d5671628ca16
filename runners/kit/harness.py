"""What scripts run with on this machine: a sandbox, runtimes, and Node processes kept warm."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from contract.checks import CheckType
from runners.kit.isolation.sandbox import Limits, Sandbox
from runners.kit.playwright.spare import Spare, start_spare
from runners.kit.playwright.spares import PlaywrightSpares
from runners.kit.scripts.node import ScriptNode, start_node
from runners.kit.scripts.runtimes import MissingRuntimeError, Runtime, Runtimes
from runners.kit.scripts.spares import EACH, Spares
from runners.kit.suites.places import SuitePlaces, Suites, suites_of
from runners.kit.trust.roots import Roots, Trust, open_trust

NO_RUNTIME: Final = "There is no Node runtime for scripts on this machine."
_NO_BROWSER: Final = "There is no Chromium on this machine (the package chromium-headless-shell)."
_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_NEED_NODE: Final = frozenset({CheckType.BROWSER, CheckType.MULTI_STEP, CheckType.PLAYWRIGHT})
_NEED_BROWSER: Final = frozenset({CheckType.BROWSER, CheckType.PLAYWRIGHT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """Made once per process, where there is a runtime; shared by all runs."""

    sandbox: Sandbox
    runtimes: Runtimes
    spares: Spares
    """Of setup and teardown scripts."""
    playwrights: PlaywrightSpares
    """Of BROWSER and MULTI_STEP checks."""
    trust: Trust
    """Further roots of scripts and browsers."""
    suites: Suites | None = None
    """What check suites need beside. None: nobody has said where bundles come from."""

    def required_suites(self) -> Suites:
        """What check suites need.

        Raises:
            MissingRuntimeError: nobody has said where bundles come from.
        """
        if self.suites is None:
            raise MissingRuntimeError("There is no place here that code bundles come from.")
        return self.suites

    def environment(self, runtime: Runtime, folder: Path) -> dict[str, str]:
        """What a child starts with, before the variables of its check."""
        return _environment(runtime, self.trust.plain, folder)


@asynccontextmanager
async def open_harness(
    runtimes: Runtimes,
    *,
    extra_roots: Path | None = None,
    suites: SuitePlaces | None = None,
    spares: int = EACH,
) -> AsyncIterator[Harness | None]:
    """For as long as the block lasts. None: this machine has no runtime.

    `spares`: how many processes to keep waiting for scripts, of each runtime that is in use.

    Raises:
        OSError: the machine lacks what keeps scripts apart; the sentence names it.
    """
    if not runtimes.installed:
        yield None
        return
    async with AsyncExitStack() as stack:
        trust = stack.enter_context(open_trust(extra_roots))
        yield _harness(stack, runtimes, trust, suites=suites, spares=spares)


def missing_for(kind: CheckType, harness: Harness | None) -> str | None:
    """What a check type needs and this machine has not got, as a sentence. None: nothing."""
    if kind not in _NEED_NODE:
        return None
    if harness is None:
        return NO_RUNTIME
    if kind in _NEED_BROWSER and harness.runtimes.browser is None:
        return _NO_BROWSER
    return None


def _harness(
    stack: AsyncExitStack,
    runtimes: Runtimes,
    trust: Trust,
    *,
    suites: SuitePlaces | None,
    spares: int,
) -> Harness:
    """With its processes, which the stack ends."""
    sandbox = Sandbox()
    stack.push_async_callback(sandbox.close)
    own = _spares(sandbox, trust.plain, each=spares)
    stack.push_async_callback(own.close)
    playwrights = _playwrights(sandbox, trust.plain)
    stack.push_async_callback(playwrights.close)
    return Harness(
        sandbox=sandbox,
        runtimes=runtimes,
        spares=own,
        playwrights=playwrights,
        trust=trust,
        suites=None if suites is None else suites_of(suites, sandbox),
    )


def _spares(sandbox: Sandbox, roots: Roots, *, each: int) -> Spares:
    async def start(runtime: Runtime) -> ScriptNode:
        return await start_node(sandbox, runtime, partial(_environment, runtime, roots))

    return Spares(start, each=each)


def _playwrights(sandbox: Sandbox, roots: Roots) -> PlaywrightSpares:
    async def start(runtime: Runtime, limits: Limits) -> Spare:
        return await start_spare(sandbox, runtime, limits, partial(_environment, runtime, roots))

    return PlaywrightSpares(start, free_mb=lambda: sandbox.free_mb)


def _environment(runtime: Runtime, roots: Roots, folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{runtime.node.parent}:{_SYSTEM_PATH}",
        "LANG": "C.UTF-8",
        "RUNTIME_VERSION": runtime.id,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        **roots.environment,
    }
