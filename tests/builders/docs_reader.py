"""A person at the API's page, in a real browser that reaches the service and nothing else."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from tests.builders.scripts import runtimes_here

_READ: Final = Path(__file__).with_name("docs_reader.cjs")


class Reading(msgspec.Struct, frozen=True):
    """What the page showed and did."""

    shown: str
    found: list[str]
    """What a search for "heartbeat" found."""
    answer: str
    """The status of GET /v1/checks, sent from the page with the key."""
    stored: str
    """What the page stored in the browser."""
    problems: list[str]
    """Errors and warnings of the console, violations of the policy among them."""
    foreign: list[str]
    """Requests to other origins."""


async def read_docs(url: str, *, key: str) -> Reading:
    """Open the page, search, and send a request."""
    runtimes = runtimes_here()
    runtime = runtimes.get(None)
    assert runtimes.browser is not None
    reading = await asyncio.create_subprocess_exec(
        runtime.node,
        _READ,
        runtime.modules / "playwright-core",
        runtimes.browser,
        url,
        key,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complained = await reading.communicate()
    assert reading.returncode == 0, complained.decode()
    return msgspec.json.decode(said, type=Reading)
