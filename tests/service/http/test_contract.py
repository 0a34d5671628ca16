"""The running API held against its own OpenAPI document by a generator of requests."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.servers.public_api import PublicApi

_RUN = Path(sys.executable).with_name("schemathesis")


@pytest.mark.timeout(600)
async def test_answers_fit_the_document_whatever_is_asked(api: PublicApi, tmp_path: Path) -> None:
    run = await asyncio.create_subprocess_exec(
        _RUN,
        "run",
        f"{api.url}/openapi.json",
        "--header",
        f"Authorization: Bearer {api.alice.secrets.api_key}",
        "--phases=fuzzing",
        "--max-examples=3",
        "--generation-deterministic",
        "--no-shrink",
        "--no-color",
        "--warnings=off",
        "--request-timeout=60",
        "--suppress-health-check=all",  # a slow machine is no fault of ours
        # Rules that span fields (offsets, locations that exist) are no part of a JSON Schema.
        "--exclude-checks=positive_data_acceptance",
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await run.communicate()
    assert run.returncode == 0, told.decode()
