"""Waiting for what another process does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp

from picket.api_client import ApiUnreachableError
from tests.builders.patience import LONG_S

T = TypeVar("T")


async def until(holds: Callable[[], Awaitable[T]], *, limit_s: float = LONG_S) -> T:
    """What `holds` gives as soon as it is true; an unreachable service is asked again."""
    async with asyncio.timeout(limit_s):
        while True:
            try:
                found = await holds()
            except (ApiUnreachableError, aiohttp.ClientError):
                found = None  # type: ignore[assignment]  # as good as false
            if found:
                return found
            await asyncio.sleep(0.1)
