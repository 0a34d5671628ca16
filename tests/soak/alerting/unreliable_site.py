"""Pages that fail and recover, and a receiver that takes only some of its alerts; by a seed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import Final

from aiohttp import web

PAGES: Final = 5
GOING: Final = "going"
"""The channel whose receiver is gone for good some day."""
SLOW_S: Final = 0.6
_MOST_TAKEN_BY_GOING: Final = 8
_SPELLS_S: Final = ((2.0, 15.0), (5.0, 45.0), (40.0, 150.0))
"""How long a page stays as it is: one of these spans."""
_LATE_S: Final = (0.5, 3.0)
_ANSWERS: Final = {
    "200": 10,
    "late": 2,
    "429": 2,
    "500": 2,
    "503": 2,
    "cut": 2,
    "never": 1,
}
"""What the receiver does with a request, and how often."""


@dataclass(slots=True)
class Arrival:
    """A notification that came to the receiver."""

    channel: str
    id: str
    sender: int
    """The incarnation of the service that sent it."""
    is_taken: bool = False
    """Whether it was answered with 200."""


class UnreliableSite:
    """Made by `unreliable_site`."""

    def __init__(self, *, seed: object, find_sender: Callable[[], int]) -> None:
        self.url = ""
        self.arrivals: list[Arrival] = []
        """In the order in which they came."""
        self.pages = dict.fromkeys(range(PAGES), "200")
        """How each answers: 200, 503 or slow."""
        self._seed = seed
        self._find_sender = find_sender
        self._dice = Random(f"{seed} receiver")
        self._calm = asyncio.Event()
        self._calm.set()

    async def fail_at_times(self) -> None:
        """Let pages and the receiver fail until `calm_down`."""
        self._calm.clear()
        async with asyncio.TaskGroup() as group:
            for page in self.pages:
                group.create_task(self._vary(page), name=f"page-{page}")

    def calm_down(self) -> None:
        """All pages are well, and everything is taken."""
        self._calm.set()

    async def _vary(self, page: int) -> None:
        dice = Random(f"{self._seed} page {page}")
        while not self._calm.is_set():
            self.pages[page] = dice.choice(("200", "503", "slow"))
            with suppress(TimeoutError):
                async with asyncio.timeout(dice.uniform(*dice.choice(_SPELLS_S))):
                    await self._calm.wait()
        self.pages[page] = "200"

    async def show(self, request: web.Request) -> web.Response:
        """A page."""
        status = self.pages[int(request.match_info["page"])]
        if status == "slow":
            await asyncio.sleep(SLOW_S)
        return web.Response(status=503 if status == "503" else 200)

    async def receive(self, request: web.Request) -> web.Response:
        """Take a notification, or do not."""
        channel = request.match_info["channel"]
        arrival = Arrival(channel, request.headers["x-picket-delivery"], self._find_sender())
        self.arrivals.append(arrival)
        if channel == GOING and self._count_taken(channel) >= _MOST_TAKEN_BY_GOING:
            return web.Response(status=410)
        status = await self._treat(request)
        arrival.is_taken = status == 200
        return web.Response(status=status, headers={"retry-after": "1"} if status == 429 else {})

    def _count_taken(self, channel: str) -> int:
        return sum(one.is_taken for one in self.arrivals if one.channel == channel)

    async def _treat(self, request: web.Request) -> int:
        """The status to answer with."""
        [treatment] = self._dice.choices([*_ANSWERS], [*_ANSWERS.values()])
        if self._calm.is_set():
            return 200
        match treatment:
            case "late":
                await asyncio.sleep(self._dice.uniform(*_LATE_S))
                return 200
            case "never":
                await self._calm.wait()  # the service goes away before
                return 200
            case "cut" if request.transport is not None:
                request.transport.abort()
                return 500
            case _:
                return int(treatment)


@asynccontextmanager
async def unreliable_site(
    *, seed: object, find_sender: Callable[[], int]
) -> AsyncIterator[UnreliableSite]:
    """Serve it for as long as the block lasts; `find_sender`: the sender's incarnation by now."""
    site = UnreliableSite(seed=seed, find_sender=find_sender)
    app = web.Application()
    app.router.add_get("/page/{page}", site.show)
    app.router.add_post("/channel/{channel}", site.receive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        site.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield site
    finally:
        await runner.cleanup()
