from typing import Any

import pytest
from sqlalchemy import insert, select

from contract.result import Failure, FailureKind, Outcome, Status
from service.db.tables.checks import heartbeat_correction, ping
from service.heartbeats.actions import ReceivedPing, forget_corrections, take_pings
from service.results.actions import remove_before
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import passed, store
from tests.servers.public_api import ApiUser, PublicApi

HOUR_MS = 3_600_000
OVERDUE = Outcome(
    status=Status.FAILED, failure=Failure(kind=FailureKind.OVERDUE, message="no ping")
)


async def a_heartbeat(user: ApiUser) -> dict[str, Any]:
    answer = await user.post("/v1/checks/heartbeat", check_body("heartbeat"))
    assert answer.status == 201, answer.body
    check: dict[str, Any] = answer.body
    return check


async def add(api: PublicApi, check: dict[str, Any], state: str, hours_ago: float) -> None:
    """An event as it is stored."""

    def change(connection: Any) -> None:
        at_ms = api.backend.clock.now_ms(connection) - round(hours_ago * HOUR_MS)
        row = {
            "id": f"{state}-{hours_ago}",
            "check_id": check["id"],
            "received_ms": at_ms,
            "state": state,
            "method": "GET",
            "source": "",
            "user_agent": "curl/8",
        }
        connection.execute(insert(ping), row)

    await api.database.write(change)


async def events(user: ApiUser, check: dict[str, Any], query: str = "") -> dict[str, Any]:
    answer = await user.get(f"/v1/checks/heartbeats/{check['id']}/events{query}")
    assert answer.status == 200, answer.body
    (whole,) = answer.body
    return dict(whole)


async def test_events_come_newest_first_with_who_pinged(api: PublicApi, alice: ApiUser) -> None:
    check = await a_heartbeat(alice)
    await add(api, check, "RECEIVED", 2)
    await add(api, check, "FAILING", 1)
    first, second = (await events(alice, check))["events"]
    assert (first["id"], first["state"]) == ("FAILING-1", "FAILING")
    assert (second["source"], second["userAgent"]) == (None, "curl/8")
    path = f"/v1/checks/heartbeats/{check['id']}/events/FAILING-1"
    assert (await alice.get(path)).body == first


async def test_stats_compare_a_period_with_the_one_before_it(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_heartbeat(alice)
    for state, hours_ago in (("RECEIVED", 1), ("EARLY", 2), ("GRACE", 3), ("LATE", 4)):
        await add(api, check, state, hours_ago)
    await add(api, check, "FAILING", 25)
    stats = (await events(alice, check))["stats"]
    assert stats["last24Hours"] == {
        "successRatio": {"previousPeriod": 0, "currentPeriod": 75},
        "totalEntitiesCurrentPeriod": 4,
    }
    assert stats["last7Days"] == {
        "successRatio": {"previousPeriod": None, "currentPeriod": 60},
        "totalEntitiesCurrentPeriod": 5,
    }


async def test_a_window_and_a_limit_choose_events(api: PublicApi, alice: ApiUser) -> None:
    check = await a_heartbeat(alice)
    for hours_ago in range(1, 13):
        await add(api, check, "RECEIVED", hours_ago)
    assert len((await events(alice, check))["events"]) == 10
    assert len((await events(alice, check, "?limit=1"))["events"]) == 1
    now_s = await api.database.read(api.backend.clock.now_ms) // 1000
    window = f"?startTime={now_s - 4 * 3600 - 60}&endTime={now_s - 2 * 3600 - 60}"
    found = (await events(alice, check, window))["events"]
    assert [one["id"] for one in found] == ["RECEIVED-3", "RECEIVED-4"]


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("limit=0", "limit"),
        ("limit=11", "limit"),
        ("startTime=x", "startTime"),
        ("startTime=2&endTime=1", "startTime"),
    ],
)
async def test_a_wrong_query_is_named(alice: ApiUser, query: str, key: str) -> None:
    check = await a_heartbeat(alice)
    answer = await alice.get(f"/v1/checks/heartbeats/{check['id']}/events?{query}")
    assert answer.status == 400
    assert answer.body["validation"]["keys"][0] == key


async def test_availability_is_the_share_of_looks_that_passed(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_heartbeat(alice)
    path = f"/v1/checks/heartbeats/{check['id']}/availability"
    assert (await alice.get(path)).body["availability"] is None
    now_ms = await api.database.read(api.backend.clock.now_ms)
    for hours_ago, outcome in ((1, passed()), (2, passed()), (3, OVERDUE), (4, None), (25, None)):
        await store(api, check, outcome, started_ms=now_ms - hours_ago * HOUR_MS)
    assert (await alice.get(path)).body["availability"] == 66.67
    since = now_ms // 1000 - 2 * 3600 - 60
    shown = (await alice.get(f"{path}?startTime={since}")).body
    assert (shown["checkId"], shown["availability"]) == (check["id"], 100)


async def test_only_a_heartbeat_has_events(alice: ApiUser) -> None:
    check = (await alice.post("/v1/checks/url", check_body("url"))).body
    answer = await alice.get(f"/v1/checks/heartbeats/{check['id']}/events")
    assert (answer.status, answer.body["message"]) == (
        404,
        f"The check {check['id']} is not a heartbeat.",
    )
    beat = await a_heartbeat(alice)
    missing = await alice.get(f"/v1/checks/heartbeats/{beat['id']}/events/nope")
    assert missing.status == 404


async def test_a_heartbeat_that_was_never_pinged_says_so(api: PublicApi, alice: ApiUser) -> None:
    check = await a_heartbeat(alice)
    assert (await events(alice, check))["state"] == "NEVER_PINGED"
    await ping_late(api, check, age_s=0)
    assert (await events(alice, check))["state"] == "RECEIVED"


async def test_a_ping_that_was_cut_off_corrects_events_and_availability(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_heartbeat(alice)
    path = f"/v1/checks/heartbeats/{check['id']}/availability"
    now_ms = await api.database.read(api.backend.clock.now_ms)
    await store(api, check, OVERDUE, started_ms=now_ms - HOUR_MS)
    await store(api, check, passed(), started_ms=now_ms)
    assert (await alice.get(path)).body["availability"] == 50
    await ping_late(api, check, age_s=3_610)
    assert (await alice.get(path)).body["availability"] == 100
    ratio = (await events(alice, check))["stats"]["last24Hours"]["successRatio"]
    assert ratio["currentPeriod"] == 100


async def test_a_correction_goes_with_its_result_and_counts_no_more(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_heartbeat(alice)
    now_ms = await api.database.read(api.backend.clock.now_ms)
    await store(api, check, OVERDUE, started_ms=now_ms - HOUR_MS)
    await store(api, check, passed(), started_ms=now_ms)
    await ping_late(api, check, age_s=3_610)

    async def availability() -> float:
        path = f"/v1/checks/heartbeats/{check['id']}/availability"
        return float((await alice.get(path)).body["availability"])

    removed = await api.database.write(
        lambda c: remove_before(c, check["id"], before_ms=now_ms, most=5)
    )
    assert await availability() == 100
    await api.database.write(
        lambda c: forget_corrections(c, check["id"], removed.ids, last_ms=removed.last_ms)
    )
    rows = await api.database.read(lambda c: c.execute(select(heartbeat_correction)).all())
    assert rows == []
    assert await availability() == 100


async def ping_late(api: PublicApi, check: dict[str, Any], *, age_s: float) -> None:
    """A ping that was received some time ago."""
    one = ReceivedPing(
        ping_id=None,
        token=check["heartbeat"]["pingToken"],
        age_s=age_s,
        method="GET",
        source="",
        user_agent="curl/8",
    )
    await api.database.write(lambda c: take_pings(c, [one], now_ms=api.backend.clock.now_ms(c)))
