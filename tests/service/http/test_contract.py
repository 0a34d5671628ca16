"""The running API held against its own OpenAPI document by a generator of requests.

`make test-api` runs it whole, as many parts at a time as there are processors, and prints as it
goes: API_EXAMPLES says how many requests each operation gets at random, after those that its
document's limits and examples suggest.
"""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from service.jobs import settle
from service.locations import actions as locations
from tests.servers.public_api import PublicApi

_RUN = Path(sys.executable).with_name("schemathesis")
_CONFIG = Path(__file__).with_name("schemathesis.toml")
_ROOT = Path(__file__).parents[3]
_EXAMPLES = os.environ.get("API_EXAMPLES", "")
_QUICK = ("--phases=fuzzing", "--max-examples=3")
_EACH = "--phases=examples,coverage,fuzzing"
_SHARES: Mapping[str, tuple[str, ...]] = {
    "checks of a type": (_EACH, "--include-path-regex=^/v1/checks/[a-z]"),
    "checks of any type": (_EACH, "--include-path-regex=^/v1/checks(/[{]|$)"),
    "all else": (_EACH, "--exclude-path-regex=^/v1/checks(/|$)"),
    "stories": ("--phases=stateful",),
}
"""All operations in parts, which run beside each other. What makes a thing and what asks for it are
in one part, so that there is something to ask for; stories go across all of them."""
_ALWAYS = (
    "--generation-deterministic",
    "--no-shrink",
    "--no-color",
    "--continue-on-failure",
    "--warnings=off",
    "--request-timeout=60",
    "--suppress-health-check=all",  # a slow machine is no fault of ours
)
_LOOK_S = 0.5


@asynccontextmanager
async def a_reaper(api: PublicApi) -> AsyncIterator[None]:
    """Runs end as missed soon after they are asked for, and so do waits of up to 30 s for them."""

    def reap(connection: Connection) -> None:
        now_ms = api.backend.clock.now_ms(connection)
        for location_id in locations.list_all_ids(connection):
            settle.end_all_at(connection, location_id, now_ms=now_ms)

    async def again_and_again() -> None:
        while True:
            await api.database.write(reap)
            await asyncio.sleep(_LOOK_S)

    task = asyncio.create_task(again_and_again(), name="reaper")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.timeout(4 * 3600 if _EXAMPLES else 600)
@pytest.mark.parametrize("share", _SHARES if _EXAMPLES else {"all": ()})
async def test_answers_fit_the_document_whatever_is_asked(
    api: PublicApi, tmp_path: Path, share: str
) -> None:
    # The first one is made of everything there is, which on a busy machine takes seconds.
    assert (await api.alice.get("/openapi.json")).status == 200
    async with a_reaper(api), a_generator(api, share, tmp_path) as run:
        told, _ = await run.communicate()
    assert run.returncode == 0, (told or b"").decode()


@asynccontextmanager
async def a_generator(api: PublicApi, share: str, directory: Path) -> AsyncIterator[Process]:
    """It asks, and ends with what is within."""
    run = await asyncio.create_subprocess_exec(
        _RUN,
        f"--config-file={_CONFIG}",
        "run",
        f"{api.url}/openapi.json",
        "--header",
        f"Authorization: Bearer {api.alice.secrets.api_key}",
        *((*_SHARES[share], f"--max-examples={_EXAMPLES}") if _EXAMPLES else _QUICK),
        *_ALWAYS,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONUNBUFFERED": "1"},
        # With several workers of pytest, what they print is not shown; what goes to 2 is.
        stdout=sys.__stderr__ if _EXAMPLES else asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield run
    finally:
        if run.returncode is None:
            run.kill()
            await run.wait()
