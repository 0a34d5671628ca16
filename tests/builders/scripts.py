"""Builders of what scripted checks run with: real Node, real Chromium, a folder of their own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from runners.net.egress.rules import EgressRules
from runners.runner import RunContext
from runners.scripting.harness import open_harness
from runners.scripting.node.runtimes import Runtimes, find_runtimes
from sandbox.workspace import Workspace
from tests.builders.context import a_context


@contextlib.asynccontextmanager
async def a_scripted_context(
    *,
    runtimes: Runtimes | None = None,
    egress: EgressRules | None = None,
    extra_roots: Path | None = None,
    names: Mapping[str, tuple[str, ...]] | None = None,
    loads_ahead: bool = False,
    **changes: Any,
) -> AsyncIterator[RunContext]:
    """A machine without a runtime fails the test.

    `loads_ahead`: after a run a Playwright is loaded for the next one, a second's work, for which
    there is no memory else. `changes`: fields of the context.
    """
    pem = None if extra_roots is None else await asyncio.to_thread(extra_roots.read_text)
    async with (
        open_harness(runtimes or runtimes_here(), extra_roots=extra_roots) as harness,
        a_context(egress=egress, extra_ca_pem=pem, names=names) as ctx,
    ):
        assert harness is not None, "no runtime is installed: run `make test`"
        if not loads_ahead:
            harness.warm_pool._free_mb = lambda: 0.0
        network = ctx.network
        object.__setattr__(network, "harness", harness)
        workspace = Workspace()
        try:
            yield msgspec.structs.replace(ctx, workspace=workspace, **changes)
        finally:
            workspace.remove()


@cache
def runtimes_here() -> Runtimes:
    """This machine's. Looked for once: the browser is started for it, and 30 MB are read."""
    return find_runtimes()


def names(folder: Path) -> set[str]:
    """Of the files at the top of a folder."""
    return {path.name for path in folder.iterdir() if path.is_file()}
