"""`/v1/analytics`: series of each type, exact and from roll-ups."""

from typing import Any

import numpy as np
import pytest

from contract.evidence import BrowserEvidence, PageMetrics, PageSeen
from contract.result import (
    Failure,
    FailureKind,
    HeartbeatEvidence,
    IcmpEvidence,
    Outcome,
    Status,
    Timings,
)
from service.accounts.model import Role
from service.analytics.store import move_horizon
from service.analytics.windows import DAY_MS, HOUR_MS
from service.checks.types.registry import DEFINITIONS
from service.http.times import format_time
from service.results.model import ResultType
from tests.builders.check_bodies import check_body
from tests.builders.made_checks import made
from tests.builders.runs import (
    BEGIN,
    BEGIN_MS,
    MINUTE_MS,
    answered,
    query,
    roll_up_all,
    run_each_minute,
    store_outcomes,
)
from tests.builders.stored_results import passed, store
from tests.servers.public_api import ApiUser, PublicApi

URL = "/v1/analytics/url-monitors"
PATHS = {one.kind.value: one.analytics for one in DEFINITIONS if one.analytics}


def failed(**fields: Any) -> Outcome:
    failure = Failure(kind=FailureKind.HTTP_STATUS, message="The status is 500.")
    return Outcome(status=Status.FAILED, failure=failure, **fields)


async def made_like_its_example(user: ApiUser, kind: str) -> dict[str, Any]:
    example = next(one.example for one in DEFINITIONS if one.kind.value == kind)
    path = f"/v1/checks/{kind.lower().replace('_', '')}"
    answer = await user.post(path, dict(example))
    assert answer.status == 201, answer.body
    check: dict[str, Any] = answer.body
    return check


async def data_of(user: ApiUser, path: str) -> list[dict[str, Any]]:
    answer = await user.get(path)
    assert answer.status == 200, answer.body
    [line] = answer.body["series"]
    rows: list[dict[str, Any]] = line["data"]
    return rows


async def test_a_series_has_the_fields_of_the_specification(api: PublicApi) -> None:
    check = await made(api.alice, "url", tags=["shop"], frequency=5, name="Front")
    await run_each_minute(api, check, [10, 20, 30])
    metrics = "responseTime_p95,availability,retries"
    path = f"{URL}/{check['id']}?{query(hours=2, interval=60, metrics=metrics)}"
    body = (await api.alice.get(path)).body
    assert body == {
        "checkId": check["id"],
        "name": "Front",
        "checkType": "URL",
        "activated": True,
        "muted": False,
        "frequency": 5,
        "from": BEGIN,
        "to": "2026-09-22T02:00:00.000Z",
        "tags": ["shop"],
        "aggregationInterval": 60,
        "source": "results",
        "series": [
            {
                "data": [
                    {"time": BEGIN, "responseTime_p95": 29.0, "availability": 100.0, "retries": 0},
                    {
                        "time": "2026-09-22T01:00:00.000Z",
                        "responseTime_p95": None,
                        "availability": None,
                        "retries": None,
                    },
                ]
            }
        ],
        "pagination": {"page": 1, "limit": 10},
        "metadata": {
            "responseTime_p95": {
                "unit": "milliseconds",
                "label": "Response Time",
                "aggregation": "p95",
            },
            "availability": {
                "unit": "percentage",
                "label": "Availability",
                "aggregation": "avg",
            },
            "retries": {"unit": "count", "label": "Retries", "aggregation": "sum"},
        },
    }


async def test_numbers_are_those_of_numpy_whether_rolled_up_or_not(api: PublicApi) -> None:
    check = await made(api.alice)
    times = [float((7 * number) % 61 + number / 8) for number in range(120)]
    await run_each_minute(api, check, times)
    names = ("min", "p50", "median", "p90", "p95", "p99", "max", "avg", "stddev", "sum")
    metrics = ",".join(f"responseTime_{name}" for name in names)
    path = f"{URL}/{check['id']}?{query(hours=2, interval=60, metrics=metrics)}"
    fresh = await data_of(api.alice, path)
    await roll_up_all(api)
    assert await data_of(api.alice, path) == fresh
    for row, part in zip(fresh, (times[:60], times[60:]), strict=True):
        assert row["responseTime_p95"] == pytest.approx(np.percentile(part, 95))
        assert row["responseTime_p99"] == pytest.approx(np.percentile(part, 99))
        assert row["responseTime_median"] == row["responseTime_p50"]
        assert row["responseTime_stddev"] == pytest.approx(np.std(part))
        assert row["responseTime_sum"] == pytest.approx(sum(part))
    await api.database.write(lambda c: move_horizon(c, before_ms=BEGIN_MS + DAY_MS))
    rough = await data_of(api.alice, path)
    for row, exact in zip(rough, fresh, strict=True):
        assert row.pop("time") == exact.pop("time")
        assert row == pytest.approx(exact, rel=0.01)


async def test_each_metric_of_each_type_can_be_asked_for(api: PublicApi) -> None:
    for kind, analytics in PATHS.items():
        path = f"/v1/analytics/{analytics.path}"
        listed = (await api.alice.get(f"/v1/analytics/metrics?checkType={kind}")).body
        assert [one["name"] for one in listed] == list(analytics.public_metrics)
        if kind == "PLAYWRIGHT":
            continue  # needs a bundle; the others' paths are the same
        check = await made_like_its_example(api.alice, kind)
        names = ",".join(analytics.public_metrics)
        answer = await api.alice.get(f"{path}/{check['id']}?{query(metrics=names)}")
        assert answer.status == 200, answer.body
        assert set(answer.body["metadata"]) == set(analytics.public_metrics)
        for group in analytics.groups:
            grouped = f"{path}/{check['id']}?{query(metrics=names, group=group.value)}"
            assert (await api.alice.get(grouped)).body["series"] == []


async def test_an_agentic_check_has_no_metrics(alice: ApiUser) -> None:
    assert (await alice.get("/v1/analytics/metrics?checkType=AGENTIC")).body == []
    assert (await alice.get("/v1/analytics/metrics")).status == 400


async def test_a_check_of_another_type_or_account_is_not_found(
    api: PublicApi, charlie: ApiUser
) -> None:
    check = await made(api.alice)
    metrics = "?metrics=availability"
    assert (await api.alice.get(f"{URL}/{check['id']}{metrics}")).status == 200
    other = await api.alice.get(f"/v1/analytics/api-checks/{check['id']}{metrics}")
    assert (other.status, other.body["message"]) == (
        404,
        f"There is no API check {check['id']}.",
    )
    assert (await charlie.get(f"{URL}/{check['id']}{metrics}")).status == 404


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("", '"metrics" is missing.'),
        ("metrics=responseTime_p42", '"metrics" names responseTime_p42; use responseTime,'),
        ("metrics=availability_avg", '"metrics" names availability_avg; use responseTime,'),
        ("metrics=TTFB", '"metrics" names TTFB; use responseTime,'),
        ("metrics=wait&filterByStatus=ok", '"filterByStatus" names ok; use success, failure.'),
        ("metrics=wait&groupBy=pageIndex", '"groupBy" is pageIndex; use one of'),
        ("metrics=wait&aggregationInterval=0", '"aggregationInterval" is 0; use at least 1.'),
        ("metrics=wait&aggregationInterval=43201", '"aggregationInterval" is 43201;'),
        ("metrics=wait&quickRange=today", '"quickRange" is today; use one of'),
        ("metrics=wait&limit=101", '"limit" is 101;'),
        ("metrics=wait&from=9&to=8", '"from" is later than "to"; swap them.'),
    ],
)
async def test_a_wrong_request_is_refused(api: PublicApi, asked: str, told: str) -> None:
    check = await made(api.alice)
    answer = await api.alice.get(f"{URL}/{check['id']}?{asked}")
    assert answer.status == 400
    assert answer.body["message"].startswith(told)


async def test_phases_are_told_as_results_tell_them(api: PublicApi) -> None:
    check = await made(api.alice)
    await store_outcomes(api, check, [answered(100), answered(200)])
    metrics = "metrics=wait_avg&metrics=dns_max,tcp_min&metrics=firstByte,download"
    [row] = await data_of(api.alice, f"{URL}/{check['id']}?{query(interval=60)}&{metrics}")
    assert row == {
        "time": BEGIN,
        "wait_avg": 1.5,
        "dns_max": 20.0,
        "tcp_min": 20.0,
        "firstByte": 76.0,  # with the TLS handshake
        "download": None,
    }


async def test_only_final_looks_count_and_degraded_is_available(api: PublicApi) -> None:
    check = await made(api.alice)
    degraded = Outcome(status=Status.DEGRADED, response_time_ms=50)
    await store_outcomes(api, check, [passed(10), degraded, failed(response_time_ms=90)])
    await store(api, check, None, started_ms=BEGIN_MS + 1)  # nobody ran it
    first = {"result_type": ResultType.ATTEMPT, "started_ms": BEGIN_MS + 2}
    await store(api, check, failed(response_time_ms=1_000), **first)
    await store(api, check, passed(30), attempt=3, started_ms=BEGIN_MS + 3)
    metrics = "availability,retries,responseTime_max,responseTime_sum"
    path = f"{URL}/{check['id']}?{query(interval=60, metrics=metrics)}"
    for _ in range(2):
        [row] = await data_of(api.alice, path)
        assert row == {
            "time": BEGIN,
            "availability": 75.0,
            "retries": 2,
            "responseTime_max": 90.0,
            "responseTime_sum": 180.0,
        }
        await roll_up_all(api)
    for status, total in (("success", 90.0), ("failure", 90.0), ("success,failure", 180.0)):
        [row] = await data_of(api.alice, f"{path}&filterByStatus={status}")
        assert row["responseTime_sum"] == total


async def test_a_series_is_split_by_status_code_and_location(api: PublicApi) -> None:
    check = await made(api.alice)
    bad = answered(5, code=500, status=Status.FAILED)
    await store_outcomes(api, check, [answered(10), answered(20), bad, failed()])
    metrics = query(interval=60, metrics="availability,responseTime", group="statusCode")
    path = f"{URL}/{check['id']}?{metrics}"
    for horizon_ms in (0, 0, BEGIN_MS + DAY_MS):
        await api.database.write(lambda c, at=horizon_ms: move_horizon(c, before_ms=at))
        lines = (await api.alice.get(path)).body["series"]
        found = {line["statusCode"]: line["data"][0] for line in lines}
        assert found == {
            None: {"time": BEGIN, "availability": 0.0, "responseTime": None},
            200: {"time": BEGIN, "availability": 100.0, "responseTime": 15.0},
            500: {"time": BEGIN, "availability": 0.0, "responseTime": 5.0},
        }
        await roll_up_all(api)
    [line] = (await api.alice.get(path.replace("statusCode", "runLocation"))).body["series"]
    assert (line["runLocation"], line["data"][0]["availability"]) == ("default", 50.0)


def a_page(index: int, ttfb_ms: float, *, errors: int = 0) -> PageSeen:
    return PageSeen(
        index=index,
        url=f"https://shop.example/{index}",
        metrics=PageMetrics(ttfb_ms=ttfb_ms, cls=0.25),
        console_errors=errors,
    )


async def test_a_browser_series_is_split_by_page(api: PublicApi) -> None:
    check = await made_like_its_example(api.alice, "BROWSER")

    def ran(*pages: PageSeen, errors: int = 0) -> Outcome:
        seen = BrowserEvidence(runtime_id="2026.04", pages=pages, user_script_errors=errors)
        return passed(1_000, evidence=seen)

    outcomes = [
        ran(a_page(0, 10, errors=2), a_page(1, 30, errors=1)),
        ran(a_page(0, 20), errors=4),
        failed(),
    ]
    await store_outcomes(api, check, outcomes)
    metrics = "TTFB,CLS_max,LCP,consoleErrors,userScriptErrors,availability"
    whole = f"/v1/analytics/browser-checks/{check['id']}?{query(interval=60, metrics=metrics)}"
    for horizon_ms in (0, 0, BEGIN_MS + DAY_MS):
        await api.database.write(lambda c, at=horizon_ms: move_horizon(c, before_ms=at))
        [row] = await data_of(api.alice, whole)
        assert row == {
            "time": BEGIN,
            "TTFB": 20.0,
            "CLS_max": 0.25,
            "LCP": None,
            "consoleErrors": 3.0,
            "userScriptErrors": 4.0,
            "availability": pytest.approx(66.666667),
        }
        first, second = (await api.alice.get(f"{whole}&groupBy=pageIndex")).body["series"]
        assert first["data"][0] == {
            "time": BEGIN,
            "TTFB": 15.0,
            "CLS_max": 0.25,
            "LCP": None,
            "consoleErrors": 2.0,
            "userScriptErrors": 4.0,
            "availability": 100.0,
            "pageIndex": 0,
            "pageUrl": "https://shop.example/0",
        }
        assert (second["pageIndex"], second["pageUrl"]) == (1, "https://shop.example/1")
        assert second["data"][0]["TTFB"] == 30.0
        assert (await data_of(api.alice, f"{whole}&filterByStatus=failure"))[0]["TTFB"] is None
        await roll_up_all(api)


async def test_pings_and_heartbeats_have_metrics_of_their_own(api: PublicApi) -> None:
    check = await made(api.alice, "icmp")
    seen = IcmpEvidence(
        hostname="h",
        ip_family="IPv4",
        packet_loss=20,
        latency={"avg": 5, "min": 1, "max": 9, "stdDev": 2.5},
    )
    await store(api, check, passed(5, evidence=seen), started_ms=BEGIN_MS)
    names = "packetLoss,latencyMin,latencyMax,latencyAvg_p99,latencyStdDev"
    path = f"/v1/analytics/icmp/{check['id']}?{query(interval=60, metrics=names)}"
    [row] = await data_of(api.alice, path)
    assert list(row.values()) == [BEGIN, 20.0, 1.0, 9.0, 5.0, 2.5]

    job = await made(api.alice, "heartbeat")
    for minute, silent_for_s in enumerate((50, 70, None)):
        told = HeartbeatEvidence(silent_for_s=silent_for_s, period_s=60, grace_s=30)
        outcome = (
            failed(evidence=told) if minute == 2 else Outcome(status=Status.PASSED, evidence=told)
        )
        await store(api, job, outcome, started_ms=BEGIN_MS + minute * MINUTE_MS)
    path = (
        f"/v1/analytics/heartbeat-checks/{job['id']}?{query(interval=60, metrics='availability')}"
    )
    for states, share in (
        ("RECEIVED", 100.0),
        ("GRACE,FAILING", 50.0),
        ("FAILING", 0.0),
        ("EARLY", None),
    ):
        [row] = await data_of(api.alice, f"{path}&filterByStatus={states}")
        assert row["availability"] == share
    assert (await api.alice.get(f"{path}&filterByStatus=success")).status == 400


async def test_timings_of_connections_and_names(api: PublicApi) -> None:
    port = await made(api.alice, "tcp")
    timings = Timings(dns=1, tcp=2, tls=3, data=4, total=10)
    await store(api, port, passed(2, timings=timings), started_ms=BEGIN_MS)
    names = query(interval=60, metrics="total,dns,connection,data")
    [row] = await data_of(api.alice, f"/v1/analytics/tcp-checks/{port['id']}?{names}")
    assert list(row.values()) == [BEGIN, 10.0, 1.0, 5.0, 4.0]
    zone = await made(api.alice, "dns")
    await store(api, zone, passed(2, timings=Timings(total=7)), started_ms=BEGIN_MS)
    path = f"/v1/analytics/dns/{zone['id']}?{query(interval=60, metrics='total_max')}"
    assert (await data_of(api.alice, path))[0]["total_max"] == 7.0


async def test_buckets_come_in_pages_and_finer_than_hours(api: PublicApi) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [float(number) for number in range(25)])
    await roll_up_all(api)
    path = f"{URL}/{check['id']}?{query(interval=1, metrics='responseTime', limit=10)}"
    first = await api.alice.get(path)
    assert first.headers["link"].endswith('rel="next"')
    pages = [await data_of(api.alice, f"{path}&page={page}") for page in (1, 2, 3)]
    times = [row["responseTime"] for rows in pages for row in rows]
    assert times == [*map(float, range(25)), *[None] * 5]
    last = await api.alice.get(f"{path}&page=6")
    assert "link" not in last.headers
    assert (await api.alice.get(f"{path}&page=7")).body["series"] == []


async def test_a_window_cuts_the_hours_at_its_ends(api: PublicApi) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [float(number) for number in range(120)])
    await roll_up_all(api)
    window = f"from={BEGIN_MS / 1000 + 30 * 60}&to={BEGIN_MS / 1000 + 90 * 60}"
    path = f"{URL}/{check['id']}?{window}&aggregationInterval=60&metrics=responseTime_min"
    rows = await data_of(api.alice, f"{path},responseTime_max")
    assert [(row["responseTime_min"], row["responseTime_max"]) for row in rows] == [
        (30, 59),
        (60, 89),
    ]


async def test_what_is_kept_by_the_hour_has_no_finer_buckets(api: PublicApi) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [1.0] * 60)
    await roll_up_all(api)
    await api.database.write(lambda c: move_horizon(c, before_ms=BEGIN_MS + HOUR_MS))
    path = f"{URL}/{check['id']}?{query(metrics='responseTime')}"
    refused = await api.alice.get(f"{path}&aggregationInterval=90")
    assert refused.status == 400
    assert refused.body["message"].startswith('"aggregationInterval" is 90, and older results')
    usual = (await api.alice.get(path)).body
    assert (usual["aggregationInterval"], usual["source"]) == (60, "rollups")


@pytest.mark.parametrize("is_rolled_up", [True, False])
async def test_a_series_of_very_many_results_is_computed_from_roll_ups(
    api: PublicApi, monkeypatch: pytest.MonkeyPatch, *, is_rolled_up: bool
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 180)
    if is_rolled_up:
        await roll_up_all(api)
    path = f"{URL}/{check['id']}?{query(hours=3, interval=60, metrics='responseTime_sum')}"
    from_0 = f"{URL}/{check['id']}?from=0&limit=100&page=7&metrics=responseTime_sum"
    for most, source in ((220, "results"), (179, "rollups")):
        monkeypatch.setattr("service.analytics.api.MOST_RESULTS", most)
        body = (await api.alice.get(path)).body
        assert body["source"] == source
        assert [row["responseTime_sum"] for row in body["series"][0]["data"]] == [600.0] * 3
    everything = (await api.alice.get(from_0)).body
    assert everything["source"] == "rollups"
    first_ms = BEGIN_MS - BEGIN_MS % (43_200 * MINUTE_MS)
    [row] = [one for one in everything["series"][0]["data"] if one["responseTime_sum"]]
    assert row["responseTime_sum"] == 1800.0
    assert row["time"] == format_time(first_ms)


async def test_a_page_of_very_many_results_in_fine_buckets_is_refused(
    api: PublicApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 180)
    await roll_up_all(api)
    monkeypatch.setattr("service.analytics.api.MOST_RESULTS", 100)
    path = f"{URL}/{check['id']}?{query(hours=3, interval=10, metrics='responseTime_sum')}"
    refused = await api.alice.get(f"{path}&limit=18")
    assert refused.status == 400
    assert refused.body["message"] == (
        '"aggregationInterval" is 10, and the page is computed from more than 100 results;'
        ' use a multiple of 60, or a smaller "limit".'
    )
    page = (await api.alice.get(f"{path}&limit=6")).body
    assert page["source"] == "results"


async def test_a_read_only_key_may_ask(api: PublicApi) -> None:
    bob = await api.colleague("Bob", role=Role.READ_ONLY)
    check = (await api.alice.post("/v1/checks/url", check_body("url"))).body
    assert (await bob.get(f"{URL}/{check['id']}?metrics=availability")).status == 200
    body = {"checkIds": [check["id"]]}
    assert (await bob.post("/v1/analytics/checks", body)).status == 200
