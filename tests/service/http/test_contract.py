"""The running API held against its own OpenAPI document by a generator of requests.

`make test-api` runs it whole and prints as it goes: API_EXAMPLES says how many requests each
operation gets at random, after those that its document's limits and examples suggest.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from service.jobs import endings
from service.locations import actions as locations
from tests.servers.public_api import PublicApi

_RUN = Path(sys.executable).with_name("schemathesis")
_CONFIG = Path(__file__).with_name("schemathesis.toml")
_EXAMPLES = os.environ.get("API_EXAMPLES", "")
_QUICK = ("--phases=fuzzing", "--max-examples=3")
_WHOLE = ("--phases=examples,coverage,fuzzing,stateful", f"--max-examples={_EXAMPLES}")
_LOOK_S = 0.5


@asynccontextmanager
async def a_reaper(api: PublicApi) -> AsyncIterator[None]:
    """Runs end as missed soon after they are asked for, and so do waits of up to 30 s for them."""

    def reap(connection: Connection) -> None:
        now_ms = api.backend.clock.now_ms(connection)
        for location_id in locations.all_ids(connection):
            endings.end_at(connection, location_id, now_ms=now_ms)

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
async def test_answers_fit_the_document_whatever_is_asked(api: PublicApi, tmp_path: Path) -> None:
    # The first one is made of everything there is, which on a busy machine takes seconds.
    assert (await api.alice.get("/openapi.json")).status == 200
    async with a_reaper(api):
        run = await asyncio.create_subprocess_exec(
            _RUN,
            f"--config-file={_CONFIG}",
            "run",
            f"{api.url}/openapi.json",
            "--header",
            f"Authorization: Bearer {api.alice.secrets.api_key}",
            *(_WHOLE if _EXAMPLES else _QUICK),
            "--generation-deterministic",
            "--no-shrink",
            "--no-color",
            "--continue-on-failure",
            "--warnings=off",
            "--request-timeout=60",
            "--suppress-health-check=all",  # a slow machine is no fault of ours
            cwd=tmp_path,
            stdout=None if _EXAMPLES else asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            told, _ = await run.communicate()
        finally:
            if run.returncode is None:
                run.kill()
                await run.wait()
    assert run.returncode == 0, (told or b"").decode()
