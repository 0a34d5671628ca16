"""The delivery of a service under test, without waits between tries."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

from service.alert_channels.delivery import Delivery
from service.clock import Clock
from tests.builders.outgoing import tools
from tests.servers.public_api import PublicApi

NOTIFICATIONS: Final = "/v1/alert-notifications"


class Chance(Random):
    """Chance that is always the same."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


@asynccontextmanager
async def delivering(
    api: PublicApi,
    *,
    clock: Clock | None = None,
    limit_s: float = 5.0,
    chance: float = 0.0,
    **sending: Any,
) -> AsyncIterator[None]:
    """Deliver what is queued for as long as the context lasts; `chance`: 0 makes each wait none.

    `sending`: fields of the tools.
    """
    delivery = Delivery(
        api.database,
        clock or api.backend.clock,
        api.backend.vault,
        tools(limit_s=limit_s, **sending),
        random=Chance(chance),
    )
    task = asyncio.create_task(delivery.run(), name="delivery")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def settled(api: PublicApi, count: int) -> list[dict[str, Any]]:
    """As soon as so many notifications are settled, all of them, oldest first."""
    async with asyncio.timeout(30):
        while True:
            found = (await api.alice.get(f"{NOTIFICATIONS}?limit=100")).body
            if sum(one["status"] != "IN_PROGRESS" for one in found) >= count:
                return list(reversed(found))
            await asyncio.sleep(0.02)
