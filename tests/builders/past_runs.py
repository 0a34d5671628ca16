"""Checks of every type with days of runs behind them: for looking at the pages of checks.

`python -m tests.builders.past_runs URL API_KEY DATA_FOLDER` fills the service that listens there,
whose database lies in that folder.
"""

import argparse
import asyncio
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import aiohttp
from sqlalchemy import Connection

from contract.checks import CheckType
from contract.evidence import BrowserEvidence, PageMetrics, PageSeen
from contract.result import Failure, FailureKind, IcmpEvidence, Outcome, Status, Timings
from service.accounts import actions as accounts
from service.db.sqlite import open_sqlite
from service.heartbeats import actions as heartbeats
from service.heartbeats.actions import ReceivedPing
from service.locations import actions as locations
from service.results.model import Cause, Record, RunStatus
from service.results.recording import record
from tests.builders.stored_results import a_record

MINUTE_MS: Final = 60_000
DAYS: Final = 8
_RUN_IDS: Final = count(5_000_000_000)
_PLACES: Final = ("cellar", "attic", "harbour")
BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "url": {"name": "Home page", "request": {"url": "https://shop.example/"}, "frequency": 5,
            "tags": ["production", "team:web"], "runParallel": True},
    "api": {"name": "Checkout API", "frequency": 1, "tags": ["production", "team:pay"],
            "request": {"method": "POST", "url": "https://shop.example/api/v2/orders?dry=1"},
            "alertSettings": {"reminders": {"amount": 2, "interval": 15}},
            "useGlobalAlertSettings": False},
    "tcp": {"name": "Mail relay", "request": {"hostname": "mail.shop.example", "port": 25}},
    "dns": {"name": "Zone", "request": {"recordType": "A", "query": "shop.example"}},
    "icmp": {"name": "Router", "request": {"hostname": "10.0.0.1"}, "frequency": 5},
    "browser": {"name": "Buy a lamp", "script": "await page.goto('https://shop.example/')"},
    "multistep": {"name": "Order by API", "script": "await request.get('https://shop.example/')"},
    "heartbeat": {"name": "Nightly backup", "heartbeat": {
        "period": 1, "periodUnit": "hours", "grace": 10, "graceUnit": "minutes"}},
}  # fmt: skip
_WHY: Final = 'JSON_BODY $.status should equal "ok", but it is "degraded"'
_WHY_OF: Final = {
    CheckType.URL: "The response status is 503; anything below 400 passes.",
    CheckType.BROWSER: "Error: page.goto: net::ERR_CONNECTION_REFUSED (script.js:3:14)",
}


def outcome_of(kind: CheckType, at_ms: int, chance: random.Random, *, trouble: float) -> Outcome:
    """What a run sees: slower by day, and worse the higher `trouble` is, from 0 to 1."""
    day = 1 + 0.35 * math.sin(at_ms / (24 * 60 * MINUTE_MS) * 2 * math.pi)
    slow = day * (1 + 4 * trouble) * chance.lognormvariate(0, 0.12)
    phases = {
        "dns": 3 * slow, "tcp": 8 * slow, "tls": 21 * slow, "first_byte": 90 * slow,
        "download": 9 * slow, "data": 24 * slow,
    }  # fmt: skip
    total = sum(phases.values())
    if kind in {CheckType.BROWSER, CheckType.MULTI_STEP}:
        total = 2_900 * slow
    elif kind is CheckType.ICMP:
        total = 12 * slow
    if chance.random() < trouble:
        failure = Failure(kind=FailureKind.ASSERTION, message=_WHY_OF.get(kind, _WHY))
        return Outcome(status=Status.FAILED, failure=failure, timings=Timings(total=total))
    because = f"It took {total / 1000:.1f} s; above 0.5 s it is degraded."
    is_slow = kind in {CheckType.API, CheckType.URL} and total > 500
    return Outcome(
        status=Status.DEGRADED if is_slow else Status.PASSED,
        degraded_because=because if is_slow else None,
        response_time_ms=total,
        timings=Timings(**phases, total=total),
        evidence=_evidence(kind, slow, chance),
    )


def _evidence(kind: CheckType, slow: float, chance: random.Random) -> Any:
    if kind is CheckType.ICMP:
        lost = chance.choice((0,) * 12 + (10, 20))
        latency = {"avg": 12 * slow, "min": 9 * slow, "max": 17 * slow, "stdDev": 2.0}
        return IcmpEvidence(
            hostname="10.0.0.1", ip_family="IPv4", packets_sent=10,
            packets_received=10 - lost // 10, packet_loss=lost, latency=latency,
        )  # fmt: skip
    if kind is CheckType.BROWSER:
        metrics = PageMetrics(
            ttfb_ms=180 * slow, fcp_ms=640 * slow, lcp_ms=1_450 * slow, tbt_ms=90 * slow,
            cls=0.04 * slow,
        )  # fmt: skip
        page = PageSeen(index=0, url="https://shop.example/", metrics=metrics)
        return BrowserEvidence(runtime_id="2026.04", pages=(page,))
    return None


def trouble_at(at_ms: int, now_ms: int, *, goes_on: bool) -> float:
    """An outage of 40 minutes, one three days ago, and perhaps one for the last 12 minutes."""
    ago_min = (now_ms - at_ms) / MINUTE_MS
    if ago_min < 12:
        return 1.0 if goes_on else 0.0
    return 0.85 if 400 < ago_min < 440 or 4_300 < ago_min < 4_360 else 0.0


def runs_of(
    check: Mapping[str, Any],
    places: Sequence[str],
    *,
    now_ms: int,
    is_in_trouble: bool,
    every_min: int,
    goes_on: bool,
) -> Iterator[Record]:
    """The runs of a check, the oldest first; some are missed."""
    kind, chance = CheckType(check["checkType"]), random.Random(check["name"])
    step_ms = every_min * MINUTE_MS
    for at_ms in range(now_ms - DAYS * 1_440 * MINUTE_MS, now_ms, step_ms):
        for number, place in enumerate(places if check.get("runParallel") else places[:1]):
            started_ms = at_ms + chance.randrange(3_000)
            if 900 < (now_ms - at_ms) / MINUTE_MS < 915:
                yield a_record(
                    dict(check), location_id=place, run_id=next(_RUN_IDS),
                    started_ms=started_ms, scheduled_ms=at_ms,
                    status=RunStatus.MISSED, cause=Cause.NO_AGENT,
                )  # fmt: skip
                continue
            is_troubled = is_in_trouble and number == 0
            trouble = trouble_at(at_ms, now_ms, goes_on=goes_on) if is_troubled else 0
            outcome = outcome_of(kind, at_ms, chance, trouble=trouble)
            yield a_record(
                dict(check), location_id=place, outcome=outcome, run_id=next(_RUN_IDS),
                started_ms=started_ms, scheduled_ms=at_ms,
            )  # fmt: skip


def pings_of(token: str) -> Iterator[ReceivedPing]:
    """Two days of hourly pings, one of which did not come."""
    chance = random.Random(token)
    for hours_ago in range(48, 0, -1):
        if hours_ago != 20:
            yield ReceivedPing(
                ping_id=None, token=token, age_s=hours_ago * 3_600 - chance.randrange(400),
                method="GET", source="", user_agent="curl",
            )  # fmt: skip


async def fill(url: str, api_key: str, folder: Path) -> dict[str, str]:
    """Make the checks and their past; their ids by type."""
    headers = {"authorization": f"Bearer {api_key}"}
    async with aiohttp.ClientSession(url, headers=headers) as http:
        for name in _PLACES:
            body = {"name": name.capitalize(), "slugName": name}
            async with http.post("/v1/private-locations", json=body) as answer:
                await answer.read()
        made = [await _make(http, kind, body) for kind, body in BODIES.items()]
    database = open_sqlite(folder / "picket.db")
    now_ms = time.time_ns() // 1_000_000
    try:
        for check in made:
            await database.write(lambda c, check=check: _fill(c, check, now_ms))
    finally:
        await database.close()
    return {check["checkType"]: check["id"] for check in made}


async def _make(http: aiohttp.ClientSession, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    places = list(_PLACES) if kind == "url" else [_PLACES[0]]
    async with http.post(f"/v1/checks/{kind}", json={**body, "privateLocations": places}) as answer:
        answer.raise_for_status()
        made: dict[str, Any] = await answer.json()
        return made


def _fill(connection: Connection, check: Mapping[str, Any], now_ms: int) -> None:
    if check["checkType"] == "HEARTBEAT":
        token = check["heartbeat"]["pingToken"]
        heartbeats.take_pings(connection, pings_of(token), now_ms=now_ms)
        return
    is_in_trouble = check["checkType"] in {"API", "URL", "BROWSER"}
    every_min = check["frequency"]
    add_runs(
        connection, check, now_ms=now_ms, is_in_trouble=is_in_trouble, every_min=every_min,
        goes_on=True,
    )  # fmt: skip


def add_runs(
    connection: Connection,
    check: Mapping[str, Any],
    *,
    now_ms: int,
    is_in_trouble: bool,
    every_min: int,
    goes_on: bool,
) -> None:
    """Store the past runs of a check."""
    ids = _location_ids(connection)
    places = [ids[name] for name in check["privateLocations"]]
    runs = list(
        runs_of(
            check, places, now_ms=now_ms, is_in_trouble=is_in_trouble, every_min=every_min,
            goes_on=goes_on,
        )
    )  # fmt: skip
    for start in range(0, len(runs), 30):
        some = runs[start : start + 30]
        record(connection, some, now_ms=some[-1].stopped_ms)


def _location_ids(connection: Connection) -> dict[str, str]:
    found = {}
    for account in _accounts(connection):
        found |= locations.list_ids_by_slug(connection, account)
    return found


def _accounts(connection: Connection) -> list[str]:

    return [one.id for one in accounts.list_accounts(connection)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("api_key")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    print(asyncio.run(fill(given.url, given.api_key, given.folder)))  # noqa: T201 - for whoever looks at them
