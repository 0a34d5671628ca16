"""What the page of a check tells."""

import html
import json
import re
import time
from typing import Any

import pytest

from contract.result import IcmpEvidence, Outcome, Status, Timings
from service.accounts.model import Role
from service.db.tables.checks import check_
from service.heartbeats import actions as heartbeats
from service.heartbeats.actions import ReceivedPing
from service.results.model import Cause, RunStatus
from service.web.words import NOTHING
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import a_record, failed, passed, store, store_all
from tests.servers.public_api import PublicApi
from tests.service.web.conftest import WebUser, sign_in

MINUTE_MS = 60_000
WHY = 'JSON_BODY $.status should equal "ok", but it is "degraded"'


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def a_check(api: PublicApi, kind: str = "url", **fields: Any) -> dict[str, Any]:
    answer = await api.alice.post(f"/v1/checks/{kind}", check_body(kind, **fields))
    assert answer.status == 201, answer.body
    made: dict[str, Any] = answer.body
    return made


def words(text: str) -> str:
    """What a person reads of a page."""
    body = text.partition("<main")[2] or text
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body.replace("<wbr>", ""))).split())


async def test_a_failing_check_says_so_with_the_reason_and_the_way_to_its_run(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api, name="Checkout")
    await store(api, check, passed(), started_ms=now_ms() - 12 * MINUTE_MS)
    await store(api, check, failed(WHY), started_ms=now_ms() - 11 * MINUTE_MS)

    page = await web.get(f"/checks/{check['id']}")

    said = words(page.text)
    assert "Checkout Failing for 11 min" in said
    assert WHY.replace("JSON_BODY", "JSON body") in said
    assert "URL monitor http://127.0.0.1/ every 10 min at location default" in said
    (listed,) = (await api.alice.get(f"/v1/check-results/{check['id']}?hasFailures=true")).body
    assert f"/checks/{check['id']}/results/{listed['id']}" in page.text


async def test_a_check_that_nobody_looked_at_says_why_and_counts_its_causes(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api)
    for minutes, cause in ((3, Cause.NO_AGENT), (2, Cause.NO_AGENT), (1, Cause.QUEUE_EXPIRED)):
        await store(api, check, started_ms=now_ms() - minutes * MINUTE_MS, cause=cause)
    fresh = words((await web.get(f"/checks/{check['id']}")).text)
    long_ago = {"created_ms": now_ms() - 60 * MINUTE_MS, "updated_ms": None}
    await api.database.write(lambda c: c.execute(check_.update().values(**long_ago)))

    said = words((await web.get(f"/checks/{check['id']}")).text)

    assert "Missed for" not in fresh  # its next run may still come
    assert "Missed for 1 h" in said
    assert "No agent took the run in time" in said
    assert "Missed 3 no agent 2, not taken in time 1" in said


async def test_a_check_without_runs_says_what_comes(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)

    said = words((await web.get(f"/checks/{check['id']}")).text)

    assert "No run has ended yet" in said
    assert f"Availability {NOTHING}" in said


async def test_figures_count_what_is_in_the_range_alone(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)
    await store(api, check, failed(), started_ms=now_ms() - 90 * MINUTE_MS)
    for number in range(4):
        await store(api, check, passed(100), started_ms=now_ms() - (number + 2) * MINUTE_MS)

    hour = words((await web.get(f"/checks/{check['id']}?range=1h")).text)
    day = words((await web.get(f"/checks/{check['id']}?range=24h")).text)

    assert "Availability 100 % p50 100 ms p95 100 ms p99 100 ms Runs 4 Failed 0" in hour
    assert "Availability 80 %" in day
    assert "Runs 5 Failed 1" in day


async def test_runs_are_narrowed_by_status_and_put_in_order(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)
    await store(api, check, failed("It broke."), started_ms=now_ms() - 9 * MINUTE_MS)
    await store(api, check, passed(77), started_ms=now_ms() - 3 * MINUTE_MS)
    path = f"/checks/{check['id']}"

    newest = await listed(web, path)
    first = await listed(web, path + "?first=failures")
    bad = await listed(web, path + "?status=failed")
    elsewhere = await web.get(path + "?location=attic")

    assert [row[-1] for row in newest] == ["77 ms", NOTHING]
    assert [row[-1] for row in first] == [NOTHING, "77 ms"]
    assert ["It broke." in row[1] for row in bad] == [True]
    assert "No run of this range is listed under this filter." in words(elsewhere.text)


async def listed(web: WebUser, path: str) -> list[list[str]]:
    """The cells of the list of runs."""
    text = (await web.get(path)).text.partition('<table class="runs">')[2].partition("</table>")[0]
    rows = text.partition("<tbody>")[2].split("</tr>")[:-1]
    return [
        [words(one) for one in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)] for row in rows
    ]


async def test_runs_that_were_missed_in_a_row_for_one_cause_are_one_row(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api)
    await store(api, check, passed(7), started_ms=now_ms() - 9 * MINUTE_MS)
    for minutes, cause in ((5, Cause.NO_AGENT), (4, Cause.NO_AGENT), (3, Cause.QUEUE_EXPIRED)):
        await store(api, check, started_ms=now_ms() - minutes * MINUTE_MS, cause=cause)

    rows = await listed(web, f"/checks/{check['id']}")

    assert [" 2 runs since " in row[1] for row in rows] == [False, True, False]
    assert len(await listed(web, f"/checks/{check['id']}?status=missed")) == 3


async def test_the_latest_runs_stand_above_the_charts_whatever_is_listed_below(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api)
    for minutes in range(20, 10, -1):
        await store(api, check, passed(minutes), started_ms=now_ms() - minutes * MINUTE_MS)
    for minutes in (3, 2):
        await store(api, check, started_ms=now_ms() - minutes * MINUTE_MS, cause=Cause.NO_AGENT)

    text = (await web.get(f"/checks/{check['id']}?tab=settings&range=1h")).text

    before, _, after = text.partition('<nav class="latest"')
    latest, _, below = after.partition("</nav>")
    assert 'id="charts"' not in before
    assert 'id="charts"' in below
    times = re.findall(r"</time> ([^<]+)</a>", latest)
    assert times == ["2 runs missed", *(f"{one} ms" for one in range(11, 17))]
    newest = (await api.alice.get(f"/v1/check-results/{check['id']}?limit=1")).body[0]["id"]
    assert re.findall(r'href="([^"]*)"', latest)[0] == f"/checks/{check['id']}/results/{newest}"


async def test_runs_beyond_fifty_are_on_further_pages(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)
    place = api.alice.secrets.location_id
    runs = [
        a_record(
            check, location_id=place, outcome=passed(), started_ms=now_ms() - (n + 1) * MINUTE_MS
        )
        for n in range(53)
    ]
    await store_all(api, runs)

    assert len(await listed(web, f"/checks/{check['id']}")) == 50
    assert len(await listed(web, f"/checks/{check['id']}?page=2")) == 3
    assert len(await listed(web, f"/checks/{check['id']}?page=x")) == 50


async def test_failures_that_are_alike_are_one_error_that_can_be_hidden(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api)
    await store(api, check, failed("Timed out after 5001 ms."))
    await store(api, check, failed("Timed out after 5002 ms."))
    page = await web.get(f"/checks/{check['id']}?tab=errors")
    assert words(page.text.partition("<table")[2]).count("Timed out after") == 1
    (action,) = re.findall(r'action="(/checks/[^"]*/hide)"', page.text)

    assert (await web.post(action, {})).status == 303

    hidden = await web.get(f"/checks/{check['id']}?tab=errors")
    assert "All failures on record are hidden. 1 hidden error" in words(hidden.text)
    (action,) = re.findall(r'action="(/checks/[^"]*/show)"', hidden.text)
    assert (await web.post(action, {})).status == 303
    assert "hidden" not in words((await web.get(f"/checks/{check['id']}?tab=errors")).text)


async def test_alerts_tell_whom_they_reached(api: PublicApi, web: WebUser) -> None:
    channel = await api.alice.post(
        "/v1/alert-channels",
        {"type": "EMAIL", "config": {"address": "duty@shop.example"}, "autoSubscribe": True},
    )
    assert channel.status == 201, channel.body
    check = await a_check(
        api,
        alertChannelSubscriptions=[{"alertChannelId": channel.body["id"], "activated": True}],
    )
    await store(api, check, failed("It broke."), started_ms=now_ms() - MINUTE_MS)

    said = words((await web.get(f"/checks/{check['id']}?tab=alerts")).text)

    assert "Email duty@shop.example : on its way" in said
    assert "Alerts now go to Email duty@shop.example ." in said


async def test_settings_tell_where_they_come_from(api: PublicApi, web: WebUser) -> None:
    group = await api.alice.post("/v1/check-groups", {"name": "Shop", "concurrency": 1})
    assert group.status == 201, group.body
    changed = await api.alice.put(
        f"/v1/check-groups/{group.body['id']}",
        {
            "name": "Shop",
            "concurrency": 1,
            "runParallel": True,
            "useGlobalAlertSettings": False,
            "alertSettings": {
                "escalationType": "TIME_BASED",
                "timeBasedEscalation": {"minutesFailingThreshold": 10},
            },
        },
    )
    assert changed.status == 200, changed.body
    check = await a_check(api, groupId=group.body["id"], frequency=5)

    said = words((await web.get(f"/checks/{check['id']}?tab=settings")).text)

    assert "Schedule every 5 min this check" in said
    assert "Locations default this check" in said
    assert "At each time at all locations group Shop" in said
    assert "Alerts after 10 min without a pass group Shop" in said
    assert "Degraded above 3.0 s built in" in said


async def test_checks_of_others_are_not_there(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)
    stranger = await sign_in(api, (await api.another_user("Mallory")).secrets.api_key)

    for part in ("", "/series.json", "/numbers", "/delete", "/sessions/1"):
        assert (await stranger.get(f"/checks/{check['id']}{part}")).status == 404
    for part in ("run", "pause", "mute"):
        assert (await stranger.post(f"/checks/{check['id']}/{part}", {})).status == 404
    assert (await web.get(f"/checks/{check['id']}")).status == 200


async def test_whoever_may_only_read_sees_no_buttons(api: PublicApi) -> None:
    check = await a_check(api)
    reader = await sign_in(api, (await api.colleague("Bob", role=Role.READ_ONLY)).secrets.api_key)

    page = await reader.get(f"/checks/{check['id']}")

    assert page.status == 200
    assert "Run now" not in page.text
    assert (await reader.post(f"/checks/{check['id']}/pause", {})).status == 403


async def series(web: WebUser, check: dict[str, Any], query: str = "") -> Any:
    answer = await web.get(f"/checks/{check['id']}/series.json{query}")
    assert answer.status == 200
    return json.loads(answer.text)


def http_run(total_ms: float) -> Outcome:
    phases = Timings(dns=5, tcp=10, tls=15, first_byte=total_ms - 40, download=10, total=total_ms)
    return Outcome(status=Status.PASSED, response_time_ms=total_ms, timings=phases)


async def test_phases_stand_on_each_other_up_to_the_mean_run(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api, frequency=1)
    at_ms = now_ms() // MINUTE_MS * MINUTE_MS - 5 * MINUTE_MS
    await store(api, check, http_run(100), started_ms=at_ms + 1_000)
    await store(api, check, http_run(200), started_ms=at_ms + 2_000)

    drawn = await series(web, check, "?range=1h")

    (chart,) = drawn["charts"]
    times, *lines = chart["columns"]
    at = times.index(at_ms / 1000 + 30)  # the middle of its minute
    assert drawn["step"] == 60
    assert [one[at] for one in lines[:5]] == [5, 10, 15, 110, 10]
    assert [one["label"] for one in chart["lines"]][:4] == ["DNS", "Connect", "TLS", "First byte"]


@pytest.mark.parametrize(
    ("kind", "timings", "shown"),
    [
        ("tcp", Timings(dns=5, tcp=10, data=20, total=35), [5, 10, 20, 35]),
        ("dns", Timings(total=35), [35, 35]),
    ],
)
async def test_each_type_shows_what_it_measures(
    api: PublicApi, web: WebUser, kind: str, timings: Timings, shown: list[float]
) -> None:
    check = await a_check(api, kind)
    seen = Outcome(status=Status.PASSED, response_time_ms=35, timings=timings)
    await store(api, check, seen, started_ms=now_ms() - 5 * MINUTE_MS)

    (chart,) = (await series(web, check))["charts"]

    assert [[one for one in line if one is not None] for line in chart["columns"][1:]] == [
        [value] for value in shown
    ]


async def test_pings_show_latency_and_loss(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api, "icmp")
    seen = IcmpEvidence(
        hostname="10.0.0.1",
        ip_family="IPv4",
        packet_loss=10,
        latency={"avg": 12, "min": 9, "max": 17, "stdDev": 2},
    )
    outcome = Outcome(status=Status.PASSED, response_time_ms=12, evidence=seen)
    await store(api, check, outcome, started_ms=now_ms() - 5 * MINUTE_MS)

    latency, loss = (await series(web, check))["charts"]
    said = words((await web.get(f"/checks/{check['id']}")).text)

    assert [max(filter(None, line)) for line in latency["columns"][1:]] == [12, 17]
    assert [max(filter(None, line)) for line in loss["columns"][1:]] == [10]
    assert "p50 12 ms" in said
    assert "Packet loss 10 %" in said


async def test_failing_times_are_told_from_holes(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api, frequency=1)
    begin_ms = now_ms() // MINUTE_MS * MINUTE_MS - 30 * MINUTE_MS
    for minute in (0, 1, 2, 12, 13):
        outcome = failed() if minute in {1, 2} else passed()
        await store(api, check, outcome, started_ms=begin_ms + minute * MINUTE_MS + 500)

    drawn = await series(web, check, "?range=1h")

    begin = begin_ms / 1000
    assert drawn["failing"] == [[begin + 60, begin + 180]]
    assert drawn["unseen"] == [[begin + 180, begin + 720]]


async def test_each_location_has_its_numbers_at_the_same_times(
    api: PublicApi, web: WebUser
) -> None:
    made = await api.alice.post("/v1/private-locations", {"name": "Attic", "slugName": "attic"})
    check = await a_check(api, privateLocations=["default", "attic"])
    for place, ms in ((api.alice.secrets.location_id, 40), (made.body["id"], 90)):
        run = a_record(
            check, location_id=place, outcome=passed(ms), started_ms=now_ms() - 5 * MINUTE_MS
        )
        await store_all(api, [run])

    drawn = await series(web, check)

    times = drawn["charts"][0]["columns"][0]
    assert {name: [one for one in column if one] for name, column in drawn["places"].items()} == {
        "default": [40],
        "attic": [90],
    }
    assert {len(column) for column in drawn["places"].values()} == {len(times)}


async def test_a_chart_has_at_most_a_thousand_points_whatever_the_range(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api, frequency=1)

    for query in ("?range=1h", "", "?range=7d", "?range=30d", "?from=1700000000&to=1780000000"):
        times = (await series(web, check, query))["charts"][0]["columns"][0]
        assert 1 < len(times) <= 1_000


async def test_a_heartbeat_shows_the_time_between_pings(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api, "heartbeat")
    token = check["heartbeat"]["pingToken"]
    pings = [
        ReceivedPing(ping_id=None, token=token, age_s=age_s, method="GET", source="", user_agent="")
        for age_s in (7_200, 3_600, 60)
    ]
    await api.database.write(lambda c: heartbeats.take_pings(c, pings, now_ms=now_ms()))

    drawn = await series(web, check, "?range=24h")
    said = words((await web.get(f"/checks/{check['id']}?range=24h")).text)

    times, gaps, limits = drawn["charts"][0]["columns"]
    assert len(times) == 2
    assert [round(gap) for gap in gaps] == [3_600, 3_540]
    assert set(limits) == {88_200}
    assert "Passing last ping" in said
    assert f"Availability {NOTHING} not judged yet Pings 3 Overdue never Failed 0" in said
    assert "expects a ping every 1 d, at most 30 min late" in said
    assert f"curl -fsS --retry 3 {check['heartbeat']['pingUrl']}" in said


async def test_a_heartbeat_says_what_it_counts_and_an_outage_is_overdue_once(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api, "heartbeat", frequency=5)
    ping = ReceivedPing(
        ping_id=None,
        token=check["heartbeat"]["pingToken"],
        age_s=3_000,
        method="GET",
        source="",
        user_agent="",
    )
    await api.database.write(lambda c: heartbeats.take_pings(c, [ping], now_ms=now_ms()))
    for minutes in (15, 10, 5):
        at_ms = now_ms() - minutes * MINUTE_MS
        await store(api, check, failed("No ping came in time."), started_ms=at_ms)
        await api.database.write(
            lambda c, at_ms=at_ms: heartbeats.mark_failing(c, check["id"], now_ms=at_ms)
        )

    said = words((await web.get(f"/checks/{check['id']}?range=1h")).text)
    of_url = words((await web.get(f"/checks/{(await a_check(api))['id']}")).text)

    assert "Pings 1 Overdue 1 time Runs 3 Failed 3" in said
    assert "Picket looks every 5 min whether a ping is overdue, and each look is a run" in said
    assert "an hour without a ping is overdue once, with 12 failed runs" in said
    assert "each look is a run" not in of_url


async def test_a_ping_address_is_shown_to_nobody_who_only_reads(api: PublicApi) -> None:
    check = await a_check(api, "heartbeat")
    reader = await sign_in(api, (await api.colleague("Bob", role=Role.READ_ONLY)).secrets.api_key)

    page = await reader.get(f"/checks/{check['id']}")

    assert "Only whoever may write sees its ping address." in words(page.text)
    assert check["heartbeat"]["pingToken"] not in page.text


async def test_the_table_has_the_numbers_of_the_chart(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api, frequency=1)
    await store(api, check, http_run(640), started_ms=now_ms() - 5 * MINUTE_MS)

    page = await web.get(f"/checks/{check['id']}/numbers?range=1h")
    part = await web.get(f"/checks/{check['id']}/numbers?range=1h", headers={"hx-request": "true"})

    assert "5 ms 10 ms 15 ms 600 ms 10 ms 640 ms" in words(page.text)
    assert "5 ms 10 ms 15 ms 600 ms 10 ms 640 ms" in words(part.text)
    assert "<html" not in part.text


async def test_every_type_has_a_page(api: PublicApi, web: WebUser) -> None:
    for kind in ("url", "api", "tcp", "dns", "icmp", "heartbeat"):
        check = await a_check(api, kind)
        for tab in ("runs", "errors", "alerts", "settings"):
            page = await web.get(f"/checks/{check['id']}?tab={tab}")
            assert page.status == 200
        assert (await web.get(f"/checks/{check['id']}/series.json")).status == 200


async def test_degraded_runs_say_why(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)
    slow = Outcome(
        status=Status.DEGRADED,
        response_time_ms=3_100,
        degraded_because="It took 3.1 s; above 3 s it is degraded.",
    )
    await store(api, check, slow, started_ms=now_ms() - MINUTE_MS, status=RunStatus.DEGRADED)

    said = words((await web.get(f"/checks/{check['id']}")).text)

    assert "Degraded for 1 min" in said
    assert said.count("It took 3.1 s; above 3 s it is degraded.") == 2
    assert "Degraded 1" in said


async def test_a_check_in_maintenance_says_so_and_until_when(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api, tags=["shop"])
    await a_check(api, name="Elsewhere", tags=["mail"])
    window = {
        "name": "Database upgrade",
        "tags": ["shop"],
        "startsAt": "2020-01-01T00:00:00Z",
        "endsAt": "2090-01-01T03:00:00Z",
    }
    made = await api.alice.post("/v1/maintenance-windows", window)
    assert made.status == 201, made.body

    page = await web.get(f"/checks/{check['id']}")
    overview = (await web.get("/")).text
    listed = words((await web.get("/?status=maintenance")).text)

    until = "until 2090-01-01 03:00 : Database upgrade"
    assert f"In maintenance {until} ; nobody is notified" in words(page.text)
    assert f'href="/maintenance/{made.body["id"]}/edit"' in page.text
    assert "1 in maintenance" in words(overview)
    assert words(overview).count(until) == 1
    assert "1 check matches" in listed
    assert "Elsewhere" not in listed
