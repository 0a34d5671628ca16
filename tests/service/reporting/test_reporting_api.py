"""`/v1/reporting`: availability and response times of all checks."""

from typing import Any

import pytest

from service.analytics.windows import DAY_MS, HOUR_MS
from tests.builders.made_checks import made
from tests.builders.runs import BEGIN_MS, FAILED_FAST, roll_up_all, run_each_minute
from tests.builders.stored_results import store
from tests.servers.public_api import ApiUser, PublicApi

PATH = "/v1/reporting"
NO_DATA = {"successRatio": None, "avg": None, "p95": None, "p99": None}
WINDOW = f"from={BEGIN_MS / 1000}&to={(BEGIN_MS + 2 * DAY_MS) / 1000}"


async def report(user: ApiUser, query: str) -> list[dict[str, Any]]:
    answer = await user.get(f"{PATH}?{query}")
    assert answer.status == 200, answer.body
    body: list[dict[str, Any]] = answer.body
    return body


async def test_a_report_tells_of_every_check_of_the_account(
    api: PublicApi, charlie: ApiUser
) -> None:
    page = await made(api.alice, name="Front", tags=["shop"])
    await made(api.alice, "heartbeat", name="Backup", activated=False)
    await made(charlie)
    await run_each_minute(api, page, [float(number) for number in range(1, 100)])
    await store(api, page, FAILED_FAST, started_ms=BEGIN_MS + DAY_MS)
    expected = {
        "name": "Front",
        "checkId": page["id"],
        "checkType": "URL",
        "deactivated": False,
        "tags": ["shop"],
        "aggregate": {"successRatio": 99.0, "avg": 50.5, "p95": 95.05, "p99": 99.01},
    }
    for _ in range(2):
        first, second = await report(api.alice, WINDOW)
        assert first == expected
        assert (second["deactivated"], second["aggregate"]) == (True, NO_DATA)
        await roll_up_all(api)


async def test_a_report_has_only_the_checks_that_are_asked_for(api: PublicApi) -> None:
    await made(api.alice, name="A", tags=["shop"])
    await made(api.alice, name="B", tags=["bank", "eu"], activated=False)
    await made(api.alice, name="C")

    async def names(query: str) -> str:
        return "".join(one["name"] for one in await report(api.alice, query))

    assert await names("") == "ABC"
    assert await names("filterByTags=shop,eu") == "AB"
    assert await names("filterByTags=shop&filterByTags=nobody") == "A"
    assert await names("deactivated=true") == "B"
    assert await names("deactivated=false") == "AC"


async def test_periods_begin_at_midnight_of_the_time_zone(api: PublicApi) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0], from_ms=BEGIN_MS + 21 * HOUR_MS)
    await run_each_minute(api, check, [30.0], from_ms=BEGIN_MS + 22 * HOUR_MS)
    await roll_up_all(api)
    [one] = await report(api.alice, f"{WINDOW}&granularity=day&timezone=Europe/Berlin")
    assert [(period["from"], period["aggregate"]["avg"]) for period in one["periods"]] == [
        ("2026-09-21T22:00:00.000Z", 10.0),
        ("2026-09-22T22:00:00.000Z", 30.0),
        ("2026-09-23T22:00:00.000Z", None),
    ]
    [one] = await report(api.alice, f"{WINDOW}&granularity=week")
    assert [period["aggregate"]["avg"] for period in one["periods"]] == [20.0]


@pytest.mark.parametrize(
    "quick_range",
    [
        "last24Hrs",
        "last7Days",
        "last30Days",
        "thisWeek",
        "thisMonth",
        "lastWeek",
        "lastMonth",
    ],
)
async def test_windows_of_a_report(alice: ApiUser, quick_range: str) -> None:
    assert await report(alice, f"quickRange={quick_range}&granularity=month") == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("quickRange=last24Hours", '"quickRange" is last24Hours; use one of'),
        ("timezone=Mars/Base", '"timezone" is Mars/Base; use a name such as Europe/Berlin.'),
        ("timezone=../etc", '"timezone" is ../etc; use a name'),
        ("from=0&granularity=day", '"granularity" is day, which makes more than 400 periods'),
        ("granularity=hour", '"granularity" is hour; use one of'),
    ],
)
async def test_a_wrong_request_is_refused(alice: ApiUser, query: str, told: str) -> None:
    answer = await alice.get(f"{PATH}?{query}")
    assert answer.status == 400
    assert answer.body["message"].startswith(told)
