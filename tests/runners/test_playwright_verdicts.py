"""Scripts have the verdict, the errors and the places that plain `playwright test` gives them."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from runners.runner import RunContext
from sandbox.workspace import Workspace
from tests.builders.playwright_verdicts import Script, Verdict, read_scripts, run_here, run_plainly
from tests.builders.scripts import a_scripted_context, runtimes_here
from tests.servers.slow_site import slow_site

AT_ONCE = 2
OFTEN = 6
"""Each sixth script is compared in every run of the tests; all are with `--every-playwright`."""
LIMIT_S = 240.0
"""As checks have it: a machine may stand still for seconds."""


@pytest.mark.timeout(1800)
async def test_a_script_has_the_verdict_of_plain_playwright(request: pytest.FixtureRequest) -> None:
    runtimes = runtimes_here()
    runtime = runtimes.get(None)
    free = asyncio.Semaphore(AT_ONCE)

    async def run(script: Script, shared: RunContext) -> Verdict:
        async with free:
            workspace = Workspace()
            try:
                ctx = msgspec.structs.replace(shared, workspace=workspace)
                return (await run_here(script, ctx, runtime.id))[0]
            finally:
                workspace.remove()

    # One sandbox for all: as a user, a second one would end the first one's processes.
    async with slow_site() as site, a_scripted_context(timeout_s=LIMIT_S) as ctx:
        every = request.config.getoption("every_playwright")
        scripts = read_scripts(site)[:: 1 if every else OFTEN]
        with TemporaryDirectory() as folder:
            plain = await run_plainly(scripts, Path(folder), runtimes, runtime)
        found = await asyncio.gather(*(run(script, ctx) for script in scripts))
    ours = {script.name: verdict for script, verdict in zip(scripts, found, strict=True)}
    assert {name: (ours[name], plain[name]) for name in ours if ours[name] != plain[name]} == {}
