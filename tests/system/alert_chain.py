"""The whole way of an alert, with `picket up`: the demo shop closes, and opens again.

`make demo-alerts` prints when each of these came: a mail at a local SMTP server, a signed request
at a local receiver, and the incident in the JSON of a status page.
"""

import asyncio
import hashlib
import hmac
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web

from tests.servers.smtp import MailBox, serve_smtp
from tests.system.waiting import until

SECRET: Final = "demo-webhook-secret"
ADDRESS: Final = "night@shop.example"
PAGE: Final = "demo-shop"
EVERY_S: Final = 10
_NEWEST_S: Final = 300
"""How old a signed request may be."""
_LIMIT_S: Final = 120.0
_START_S: Final = 200.0
"""`picket up` gives up by itself before."""
_STOP_S: Final = 60.0


@dataclass(slots=True)
class Receiver:
    """Takes requests on loopback; those that are not signed as they should be are refused."""

    url: str = ""
    taken: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0

    async def take(self, request: web.Request) -> web.Response:
        """Take a request."""
        body = await request.read()
        if not is_signed(request.headers, body):
            self.refused += 1
            return web.Response(status=401)
        self.taken.append(await request.json())
        return web.Response()


def is_signed(headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a request has a fresh time, and the signature of it and the body."""
    sent_s = headers.get("x-picket-timestamp", "0")
    wanted = hmac.digest(SECRET.encode(), sent_s.encode() + b"." + body, hashlib.sha256).hex()
    fresh = abs(time.time() - float(sent_s)) < _NEWEST_S
    return fresh and hmac.compare_digest(wanted, headers.get("x-picket-signature", ""))


@asynccontextmanager
async def serve_receiver() -> AsyncIterator[Receiver]:
    """Serve it until the block ends."""
    receiver, app = Receiver(), web.Application()
    app.add_routes([web.post("/alerts", receiver.take)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/alerts"
        yield receiver
    finally:
        await runner.cleanup()


@asynccontextmanager
async def picket_up(folder: Path, environ: Mapping[str, str]) -> AsyncIterator[str]:
    """`picket up` in a folder; the address of its service.

    It has no runtime, which is quicker, unless `environ` names some.
    """
    empty = folder / "no-runtimes"
    empty.mkdir()
    with (folder / "up.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "picket", "up", "--data-dir", str(folder / "data")),
            env={**os.environ, "PICKET_RUNTIMES": str(empty), **environ},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:

        async def address() -> str | None:
            if process.returncode is not None:
                raise RuntimeError((folder / "up.log").read_text())
            told = (folder / "up.log").read_text()
            found = re.search(r"^API +(http://\S+)/v1", told, re.MULTILINE)
            return found[1] if found else None

        yield await until(address, limit_s=_START_S) or ""
    finally:
        process.send_signal(signal.SIGINT)
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise


@dataclass(frozen=True, slots=True)
class Chain:
    """A running Picket, and what its alerts reach."""

    http: aiohttp.ClientSession
    service: str
    shop: str
    """The address of the demo shop."""
    box: MailBox
    receiver: Receiver

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the service."""
        async with self.http.request(method, self.service + path, json=body) as answer:
            told = await answer.json()
            if answer.status >= 400:
                raise RuntimeError(f"{method} {path}: {answer.status} {told['message']}")
            return told

    async def set_up(self) -> str:
        """Make the channels, the page and the check; its id."""
        flags = {"sendFailure": True, "sendRecovery": True, "sendDegraded": True}
        for kind, config in (
            ("EMAIL", {"address": ADDRESS}),
            ("WEBHOOK", {"url": self.receiver.url, "name": "demo", "webhookSecret": SECRET}),
        ):
            await self.ask("POST", "/v1/alert-channels", {"type": kind, "config": config, **flags})
        service = await self.ask("POST", "/v1/status-pages/services", {"name": "Front door"})
        card = {"name": "Shop", "services": [{"id": service["id"]}]}
        page = {"name": "Corner shop", "url": PAGE, "cards": [card]}
        await self.ask("POST", "/v1/status-pages", page)
        incident = {
            "serviceId": service["id"],
            "severity": "CRITICAL",
            "name": "The shop is closed",
            "description": "We are looking into it.",
            "notifySubscribers": False,
        }
        check = {
            "name": "Demo shop is open",
            "request": {"method": "GET", "url": f"{self.shop}/"},
            "privateLocations": ["default"],
            "frequency": 0,
            "frequencyOffset": EVERY_S,
            "useGlobalAlertSettings": False,
            "alertSettings": {
                "escalationType": "RUN_BASED",
                "runBasedEscalation": {"failedRunThreshold": 1},
            },
            "triggerIncident": incident,
        }
        return str((await self.ask("POST", "/v1/checks/api", check))["id"])

    async def page(self) -> Mapping[str, Any]:
        """What visitors see of the status page."""
        found: Mapping[str, Any] = await self.ask("GET", f"/status-pages/{PAGE}.json")
        return found

    async def has_passed(self, check_id: str) -> bool:
        """Whether the check has a result that says so."""
        return any(
            not one["hasFailures"] and not one["hasErrors"]
            for one in await self.ask("GET", f"/v1/check-results/{check_id}")
        )

    async def turn(self, what: str) -> None:
        """`close` or `open` the shop."""
        async with self.http.post(f"{self.shop}/{what}") as answer:
            answer.raise_for_status()

    async def mail(self, number: int) -> str:
        """The subject of the mail of this number; empty until it comes."""
        mails = self.box.to(ADDRESS)
        return str(mails[number - 1]["Subject"]) if len(mails) >= number else ""

    async def webhook(self, number: int) -> str:
        """The title of the request of this number; empty until it comes."""
        taken = self.receiver.taken
        return str(taken[number - 1]["alertTitle"]) if len(taken) >= number else ""

    async def incident(self, key: str) -> str:
        """The name and status of the incident among those of the page that are there."""
        found = (await self.page())[key]
        return f"{found[0]['name']}: {found[0]['status']}" if found else ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Something that reached somebody."""

    after_s: float
    """Since the shop was closed or opened."""
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.after_s:6.1f} s  {self.where:16} {self.what}"


async def arrivals(
    began_s: float, waits: Mapping[str, Callable[[], Awaitable[str]]]
) -> list[Arrival]:
    """What comes, in the order in which it comes."""

    async def arrive(where: str, look: Callable[[], Awaitable[str]]) -> Arrival:
        what = await until(look, limit_s=_LIMIT_S)
        return Arrival(time.monotonic() - began_s, where, what)

    found = await asyncio.gather(*(arrive(*one) for one in waits.items()))
    return sorted(found, key=lambda one: one.after_s)


async def close_and_open(
    chain: Chain, check_id: str, say: Callable[[object], None]
) -> tuple[list[Arrival], list[Arrival]]:
    """Close the shop, wait for all three, open it, wait for all three."""
    await until(lambda: chain.has_passed(check_id), limit_s=_LIMIT_S)
    told = []
    for number, (what, key) in enumerate(
        (("close", "currentIncidents"), ("open", "pastIncidents")), start=1
    ):
        say(f"the shop is told to {what}; its check runs every {EVERY_S} s")
        await chain.turn(what)
        waits = {
            "mail": lambda number=number: chain.mail(number),
            "signed webhook": lambda number=number: chain.webhook(number),
            "status page": lambda key=key: chain.incident(key),
        }
        told.append(await arrivals(time.monotonic(), waits))
        for one in told[-1]:
            say(one)
    return told[0], told[1]


@asynccontextmanager
async def a_chain(folder: Path) -> AsyncIterator[Chain]:
    """Everything that it takes, on loopback."""
    async with serve_smtp() as box, serve_receiver() as receiver:
        environ = {
            "SMTP_URL": box.url,
            "SMTP_FROM": "picket@shop.example",
            "ALERT_EGRESS_ALLOW": "127.0.0.0/8",
        }
        async with picket_up(folder, environ) as service:
            key = (folder / "data" / "api-key").read_text().strip()
            headers = {"authorization": f"Bearer {key}"}
            async with aiohttp.ClientSession(headers=headers) as http:
                shop = await find_shop(http, service)
                yield Chain(http, service, shop, box, receiver)


async def find_shop(http: aiohttp.ClientSession, service: str) -> str:
    """The address of the demo shop, by a starter check that looks at it."""

    async def look() -> str | None:
        async with http.get(f"{service}/v1/checks?checkType=URL") as answer:
            urls = [one["request"]["url"] for one in await answer.json()]
        found = [match[0] for url in urls if (match := re.match(r"http://[\d.]+:\d+(?=/$)", url))]
        return found[0] if found else None

    return await until(look, limit_s=_LIMIT_S) or ""


async def main() -> None:
    """Print the whole way once."""
    with tempfile.TemporaryDirectory(prefix="picket-alerts-") as name:
        async with a_chain(Path(name)) as chain:
            print(f"service {chain.service}, demo shop {chain.shop}")  # noqa: T201
            await close_and_open(chain, await chain.set_up(), print)


if __name__ == "__main__":
    asyncio.run(main())
