"""Which checks an overview shows, in which order, and what it says of their runs."""

from dataclasses import replace
from typing import Any

import pytest

from contract.result import Outcome, Status
from service.analytics.worker import RollUpWorker
from service.clock import Clock
from service.overview import actions as overview
from service.overview.model import CheckState, Grouping, OverviewRow, Wanted
from service.overview.rules import summarize
from service.results import actions as results
from service.results.model import RunStatus
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import a_record, failed, passed, store, store_all
from tests.servers.public_api import ApiUser, PublicApi

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


async def now_ms(api: PublicApi) -> int:
    return await api.database.read(api.backend.clock.now_ms)


async def a_check(user: ApiUser, kind: str = "url", **fields: Any) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", check_body(kind, **fields))
    assert answer.status == 201, answer.body
    body: dict[str, Any] = answer.body
    return body


async def rows(
    api: PublicApi, wanted: Wanted | None = None, *, after_ms: int = 0
) -> list[OverviewRow]:
    at_ms = await now_ms(api) + after_ms
    account_id = api.alice.secrets.account_id
    return await api.database.read(
        lambda c: overview.list_rows(c, account_id, wanted or Wanted(), now_ms=at_ms, page=(100, 0))
    )


async def old_rows(api: PublicApi) -> list[OverviewRow]:
    """As if all checks were there long before their first run."""
    return [row._replace(created_ms=0) for row in await rows(api)]


async def names(api: PublicApi, **wanted: Any) -> list[str]:
    return [row.name for row in await rows(api, Wanted(**wanted))]


async def test_what_is_in_trouble_comes_first_and_the_rest_by_name(api: PublicApi) -> None:
    at_ms = await now_ms(api)
    for name in ("b passes", "A passes", "z fails", "d is new"):
        check = await a_check(api.alice, name=name)
        if "passes" in name:
            await store(api, check, passed(), started_ms=at_ms)
        if "fails" in name:
            await store(api, check, failed(), started_ms=at_ms)
    await a_check(api.alice, name="c is paused", activated=False)

    shown = await rows(api)

    assert [(row.name, row.state) for row in shown] == [
        ("z fails", CheckState.FAILING),
        ("A passes", CheckState.PASSING),
        ("b passes", CheckState.PASSING),
        ("c is paused", CheckState.PAUSED),
        ("d is new", CheckState.UNKNOWN),
    ]
    assert [row.since_ms for row in shown] == [at_ms, None, None, None, None]


async def test_a_check_at_which_nobody_looks_is_missed_and_not_called_passing(
    api: PublicApi,
) -> None:
    check = await a_check(api.alice, frequency=10)
    await store(api, check, passed(), started_ms=await now_ms(api))

    soon = await rows(api, after_ms=31 * MINUTE)
    late = await rows(api, after_ms=33 * MINUTE)

    assert [row.state for row in (*soon, *late)] == [CheckState.PASSING, CheckState.MISSED]


async def test_a_heartbeat_waits_for_its_first_ping_and_is_not_missed(api: PublicApi) -> None:
    await a_check(api.alice, "heartbeat")

    [row] = await rows(api, after_ms=DAY)

    assert (row.state, row.since_ms) == (CheckState.UNKNOWN, None)


async def test_a_check_that_fails_is_not_hidden_by_runs_that_are_missed(api: PublicApi) -> None:
    check = await a_check(api.alice, frequency=10)
    await store(api, check, failed(), started_ms=await now_ms(api))

    [row] = await rows(api, after_ms=DAY)

    assert row.state is CheckState.FAILING


async def test_a_check_that_is_resumed_is_not_late_at_once(api: PublicApi) -> None:
    check = await a_check(api.alice, frequency=10)
    await store(api, check, passed(), started_ms=await now_ms(api) - DAY)
    await api.alice.put(f"/v1/checks/{check['id']}", {"name": "Home", "activated": True})

    [row] = await rows(api)

    assert row.state is CheckState.PASSING


async def test_filters_hold_together(api: PublicApi) -> None:
    await api.alice.post("/v1/private-locations", {"name": "Attic", "slugName": "attic"})
    group = await api.alice.post("/v1/check-groups", {"name": "Shop", "tags": ["eu"]})
    await a_check(api.alice, name="Home", tags=["web", "100%"])
    await a_check(api.alice, name="Cart", groupId=group.body["id"], tags=["web"])
    await a_check(api.alice, "tcp", name="Mail", privateLocations=["attic"], muted=True)

    assert await names(api, tags=("web",)) == ["Cart", "Home"]
    assert await names(api, tags=("web", "eu")) == ["Cart"]
    assert await names(api, search="HOM") == ["Home"]
    assert await names(api, search="%") == ["Home"]
    assert await names(api, location="attic") == ["Mail"]
    assert await names(api, group_id=group.body["id"]) == ["Cart"]
    assert await names(api, is_muted=True) == ["Mail"]
    assert await names(api, state=CheckState.FAILING) == []
    assert await names(api, search="e", tags=("web",), location="attic") == []


async def test_groups_with_trouble_come_first(api: PublicApi) -> None:
    await a_check(api.alice, "tcp", name="Mail")
    url = await a_check(api.alice, name="Home")
    await a_check(api.alice, "dns", name="Zone")
    await store(api, url, failed(), started_ms=await now_ms(api))

    by_type = await rows(api, Wanted(grouping=Grouping.TYPE))
    by_status = await rows(api, Wanted(grouping=Grouping.STATUS))

    assert [row.heading for row in by_type] == ["URL", "DNS", "TCP"]
    assert [row.heading for row in by_status] == ["failing", "unknown", "unknown"]


async def test_nobody_sees_checks_of_another_account(api: PublicApi) -> None:
    bob = await api.another_user("Bob")
    await a_check(bob, name="Bob's", tags=["secret"])

    account_id = api.alice.secrets.account_id
    counts = await api.database.read(
        lambda c: overview.count_states(c, account_id, now_ms=1_790_000_000_000)
    )
    tags = await api.database.read(lambda c: overview.list_tags(c, account_id, most=10))

    assert (await names(api), counts.total, tags) == ([], 0, [])


async def test_the_reason_of_a_failure_is_in_the_words_of_its_result(api: PublicApi) -> None:
    check = await a_check(api.alice)
    await store(api, check, failed("It answered 500."), started_ms=await now_ms(api))
    shown = await rows(api)

    reasons = await api.database.read(lambda c: overview.find_reasons(c, shown))

    assert reasons == {check["id"]: "It answered 500."}


async def test_a_location_without_an_agent_is_named_once_a_check_should_run_there(
    api: PublicApi,
) -> None:
    account_id, at_ms = api.alice.secrets.account_id, await now_ms(api)

    def query(connection: Any) -> list[str]:
        found = overview.list_quiet_locations(connection, account_id, now_ms=at_ms)
        return [one.slug for one in found]

    assert await api.database.read(query) == []
    await a_check(api.alice)
    assert await api.database.read(query) == ["default"]


@pytest.mark.parametrize("after_the_hour_ms", [0, 20 * MINUTE])
async def test_roll_ups_of_a_busy_check_tell_what_its_results_do(
    api: PublicApi, after_the_hour_ms: int
) -> None:
    check = await a_check(api.alice, frequency=1)
    end_ms = await now_ms(api) - HOUR
    end_ms -= end_ms % HOUR - after_the_hour_ms
    window = (end_ms - DAY, end_ms)
    place = api.alice.secrets.location_id
    runs = []
    for number in range(1440):
        outcome = failed() if number % 100 == 7 else passed(10 + number % 90)
        at_ms = window[0] + number * MINUTE
        runs.append(a_record(check, location_id=place, outcome=outcome, started_ms=at_ms))
    await store_all(api, runs)
    while await RollUpWorker(_Later()).act(api.database):
        pass
    [row] = await old_rows(api)

    def query(connection: Any) -> tuple[Any, Any]:
        endings = results.list_endings(connection, [row.id], window=window)[row.id]
        exact = summarize(endings, window=window)
        rough = overview.find_recent(connection, [row], {}, window=window)[row.id]
        return exact, rough

    exact, rough = await api.database.read(query)

    assert (rough.runs, rough.failed) == (exact.runs, exact.failed) == (1440, 15)
    assert list(rough.marks) == list(exact.marks)
    assert rough.p95_ms == pytest.approx(exact.p95_ms, rel=0.02)
    if not after_the_hour_ms:
        assert rough.line == pytest.approx(exact.line, rel=0.02)
    assert replace(exact, marks=(), line=(), p95_ms=0) == replace(
        rough, marks=(), line=(), p95_ms=0
    )
    assert RunStatus.FAILED in rough.marks


async def test_a_slot_in_which_a_busy_check_did_not_run_is_empty(api: PublicApi) -> None:
    check = await a_check(api.alice, frequency=1)
    end_ms = await now_ms(api) - HOUR
    end_ms -= end_ms % HOUR
    paused = range(600, 630)
    runs = [
        a_record(
            check,
            location_id=api.alice.secrets.location_id,
            outcome=passed(),
            started_ms=end_ms - DAY + number * MINUTE,
        )
        for number in range(1440)
        if number not in paused
    ]
    await store_all(api, runs)
    while await RollUpWorker(_Later()).act(api.database):
        pass
    [row] = await old_rows(api)

    recent = await api.database.read(
        lambda c: overview.find_recent(c, [row], {}, window=(end_ms - DAY, end_ms))
    )

    marks = recent[row.id].marks
    assert [place for place, one in enumerate(marks) if one is None] == [40, 41]
    assert recent[row.id].runs == 1410


class _Later(Clock):
    """Two hours ahead: all hours are over."""

    def now_ms(self, connection: Any) -> int:
        return super().now_ms(connection) + 2 * HOUR


async def test_an_hour_of_a_busy_check_shows_its_runs_where_they_were(api: PublicApi) -> None:
    check = await a_check(api.alice, "api", frequency=0, frequencyOffset=10)
    at_ms = await now_ms(api)
    await store(api, check, passed(), started_ms=at_ms - 1_000)
    [row] = await old_rows(api)

    window = (at_ms - HOUR, at_ms)
    recent = (
        await api.database.read(
            lambda c: overview.find_recent(c, [row], {row.id: ["default"]}, window=window)
        )
    )[row.id]

    assert [one for one in recent.marks if one is not None] == [RunStatus.PASSED]
    assert recent.marks[-1] is RunStatus.PASSED


@pytest.mark.parametrize("days", [7, 30])
async def test_a_long_range_of_a_busy_check_shows_where_it_was_degraded(
    api: PublicApi, days: int
) -> None:
    check = await a_check(api.alice, frequency=10)
    end_ms = await now_ms(api)
    begin_ms = end_ms - days * DAY
    slow = Outcome(status=Status.DEGRADED, response_time_ms=900, degraded_because="It was slow.")
    outcomes = {10: slow, 11: slow, 400: slow, 401: failed(), 700: slow}
    records = [
        a_record(
            check,
            location_id=api.alice.secrets.location_id,
            outcome=outcomes.get(number, passed()),
            started_ms=begin_ms + number * 10 * MINUTE + 1,
        )
        for number in range(days * 144)
    ]
    await store_all(api, records)
    while await RollUpWorker(_Later()).act(api.database):
        pass
    [row] = await old_rows(api)

    recent = await api.database.read(
        lambda c: overview.find_recent(c, [row], {}, window=(begin_ms, end_ms))
    )

    step_ms = (2 if days == 7 else 8) * HOUR
    places = {one: (records[one].started_ms - begin_ms) // step_ms for one in outcomes}
    expected = dict.fromkeys(places.values(), RunStatus.DEGRADED)
    expected[places[401]] = RunStatus.FAILED
    bad = {RunStatus.DEGRADED, RunStatus.FAILED}
    assert expected == {place: one for place, one in enumerate(recent[row.id].marks) if one in bad}


@pytest.mark.parametrize("is_old", [False, True])
async def test_a_check_that_never_passed_has_no_mark_of_a_pass(
    api: PublicApi, *, is_old: bool
) -> None:
    check = await a_check(api.alice, frequency=1)
    at_ms = await now_ms(api)
    times = [at_ms - number * MINUTE for number in range(1, 200)]
    place = api.alice.secrets.location_id
    await store_all(
        api, [a_record(check, location_id=place, outcome=failed(), started_ms=one) for one in times]
    )
    while await RollUpWorker(_Later()).act(api.database):
        pass
    [row] = await old_rows(api) if is_old else await rows(api)

    recent = await api.database.read(
        lambda c: overview.find_recent(c, [row], {}, window=(at_ms - DAY, at_ms))
    )

    assert set(recent[row.id].marks) == {None, RunStatus.FAILED}
