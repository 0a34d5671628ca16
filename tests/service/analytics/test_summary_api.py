"""`/v1/analytics/checks`: numbers of many checks over a window."""

import numpy as np
import pytest

from contract.result import IcmpEvidence
from service.analytics.store import move_horizon
from service.analytics.windows import DAY_MS
from tests.builders.made_checks import made
from tests.builders.runs import MINUTE_MS, roll_up_all, run_each_minute
from tests.builders.stored_results import passed, store
from tests.servers.public_api import ApiUser, PublicApi

PATH = "/v1/analytics/checks"


async def test_a_summary_tells_of_each_check_what_its_type_has(
    api: PublicApi, charlie: ApiUser
) -> None:
    now_ms = await api.database.read(api.backend.clock.now_ms)
    page, host = await made(api.alice), await made(api.alice, "icmp")
    job, foreign = await made(api.alice, "heartbeat"), await made(charlie)
    times = [float(number) for number in range(1, 101)]
    await run_each_minute(api, page, times, from_ms=now_ms - 200 * MINUTE_MS)
    seen = IcmpEvidence(hostname="h", ip_family="IPv4", packet_loss=20, latency={"avg": 5})
    await store(api, host, passed(5, evidence=seen), started_ms=now_ms - MINUTE_MS)
    ids = [host["id"], page["id"], foreign["id"], "nobody", job["id"]]
    answer = await api.alice.post(PATH, {"checkIds": ids})
    assert answer.status == 200
    assert answer.body == [
        {
            "checkId": host["id"],
            "checkType": "ICMP",
            "availability": 100.0,
            "responseTime_avg": 5.0,
            "responseTime_p50": 5.0,
            "responseTime_p95": 5.0,
            "responseTime_p99": 5.0,
            "latency_avg": 5.0,
            "latency_p50": 5.0,
            "latency_p95": 5.0,
            "latency_p99": 5.0,
            "packetLoss_avg": 20.0,
            "packetLoss_p95": 20.0,
            "packetLoss_p99": 20.0,
        },
        {
            "checkId": page["id"],
            "checkType": "URL",
            "availability": 100.0,
            "responseTime_avg": 50.5,
            "responseTime_p50": pytest.approx(np.percentile(times, 50)),
            "responseTime_p95": pytest.approx(np.percentile(times, 95)),
            "responseTime_p99": pytest.approx(np.percentile(times, 99)),
        },
        {"checkId": job["id"], "checkType": "HEARTBEAT", "availability": None},
    ]
    await roll_up_all(api)
    assert (await api.alice.post(PATH, {"checkIds": ids})).body == answer.body
    await api.database.write(lambda c: move_horizon(c, before_ms=now_ms + DAY_MS))
    rough = (await api.alice.post(PATH, {"checkIds": ids})).body
    assert rough[1]["responseTime_p95"] == pytest.approx(np.percentile(times, 95), rel=0.01)
    assert rough[1]["responseTime_avg"] == pytest.approx(50.5)


@pytest.mark.parametrize("is_rolled_up", [True, False])
async def test_a_summary_of_very_many_results_is_computed_from_roll_ups(
    api: PublicApi, monkeypatch: pytest.MonkeyPatch, *, is_rolled_up: bool
) -> None:
    now_ms = await api.database.read(api.backend.clock.now_ms)
    one, other = await made(api.alice), await made(api.alice)
    times = [float(number) for number in range(1, 101)]
    for check in (one, other):
        await run_each_minute(api, check, times, from_ms=now_ms - 200 * MINUTE_MS)
    if is_rolled_up:
        await roll_up_all(api)
    asked = {"checkIds": [one["id"], other["id"]]}

    async def percentiles() -> list[float]:
        return [row["responseTime_p95"] for row in (await api.alice.post(PATH, asked)).body]

    exact = float(np.percentile(times, 95))
    monkeypatch.setattr("service.analytics.actions.MOST_SUMMED", 220)
    assert await percentiles() == [pytest.approx(exact)] * 2
    monkeypatch.setattr("service.analytics.actions.MOST_SUMMED", 179)
    rough = await percentiles()
    assert rough == [pytest.approx(exact, rel=0.01)] * 2
    assert rough != [pytest.approx(exact)] * 2


async def test_without_results_there_is_no_number(api: PublicApi) -> None:
    check = await made(api.alice)
    [found] = (await api.alice.post(PATH, {"checkIds": [check["id"], check["id"]]})).body
    assert found.pop("checkId") == check["id"]
    assert found.pop("checkType") == "URL"
    assert set(found.values()) == {None}


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"checkIds": []}, ""),
        ({"checkIds": ["x"] * 101}, ""),
        ({}, ""),
        ({"checkIds": ["x"]}, "?quickRange=last30Days"),
        ({"checkIds": ["x"]}, "?quickRange=thisMonth"),
    ],
)
async def test_a_wrong_request_is_refused(alice: ApiUser, body: object, asked: str) -> None:
    assert (await alice.post(PATH + asked, body)).status == 400


@pytest.mark.parametrize(
    "quick_range", ["last24Hours", "last7Days", "thisWeek", "lastWeek", "lastMonth"]
)
async def test_windows_of_a_summary(alice: ApiUser, quick_range: str) -> None:
    answer = await alice.post(f"{PATH}?quickRange={quick_range}", {"checkIds": ["x"]})
    assert (answer.status, answer.body) == (200, [])
