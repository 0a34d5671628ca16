from typing import Any

import pytest

from contract.evidence import BrowserEvidence, HttpEvidence, SentRequest, TlsFacts
from contract.result import Failure, FailureKind, Outcome, Status
from service.results.model import ResultType
from tests.builders.check_bodies import check_body, script_body
from tests.builders.stored_results import START_MS, passed, store
from tests.servers.public_api import ApiUser, PublicApi

PATH = "/v1/check-statuses"
FAILED = Outcome(status=Status.FAILED, failure=Failure(kind=FailureKind.TLS, message="expired"))


async def a_check(user: ApiUser, **fields: Any) -> dict[str, Any]:
    check: dict[str, Any] = (await user.post("/v1/checks/url", check_body("url", **fields))).body
    return check


async def status_of(user: ApiUser, check: dict[str, Any]) -> dict[str, Any]:
    answer = await user.get(f"{PATH}/{check['id']}")
    assert answer.status == 200, answer.body
    status: dict[str, Any] = answer.body
    return status


async def test_a_check_without_results_has_no_status_yet(alice: ApiUser) -> None:
    check = await a_check(alice)
    answer = await alice.get(f"{PATH}/{check['id']}")
    assert (answer.status, answer.body["message"]) == (
        404,
        f"The check {check['id']} has no result yet.",
    )


async def test_a_status_is_that_of_the_newest_final_result(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    run_id = await store(api, check, FAILED, started_ms=START_MS + 2_000)
    await store(api, check, passed(), started_ms=START_MS + 1_000)
    attempt = {"result_type": ResultType.ATTEMPT, "started_ms": START_MS + 3_000}
    await store(api, check, passed(), **attempt)
    status = await status_of(alice, check)
    assert (status["hasFailures"], status["lastCheckRunId"]) == (True, str(run_id))
    assert status["lastRunLocation"] == "default"
    assert status["updated_at"] is not None


@pytest.mark.parametrize(
    ("outcome", "flags"),
    [
        (passed(), (False, False, False)),
        (Outcome(status=Status.DEGRADED, response_time_ms=4000), (False, False, True)),
        (Outcome(status=Status.TIMED_OUT), (True, False, False)),
        (None, (False, True, False)),
    ],
    ids=["passed", "degraded", "timed out", "nobody looked"],
)
async def test_a_status_tells_failures_from_errors_of_ours(
    api: PublicApi, alice: ApiUser, outcome: Outcome | None, flags: tuple[bool, ...]
) -> None:
    check = await a_check(alice)
    await store(api, check, outcome)
    status = await status_of(alice, check)
    assert (status["hasFailures"], status["hasErrors"], status["isDegraded"]) == flags


async def test_longest_and_shortest_run_are_of_the_last_day(api: PublicApi, alice: ApiUser) -> None:
    now_ms = await api.database.read(api.backend.clock.now_ms)
    check = await a_check(alice)
    for hours_ago, time_ms in ((25, 1.0), (25, 9_000.0), (23, 80.9), (1, 40.2)):
        started_ms = now_ms - hours_ago * 3_600_000
        await store(api, check, passed(time_ms), started_ms=started_ms)
    status = await status_of(alice, check)
    assert (status["shortestRun"], status["longestRun"]) == (40, 80)


async def test_a_status_counts_the_days_of_the_certificate(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    evidence = HttpEvidence(
        request=SentRequest(method="GET", url="https://a.test/"),
        tls=TlsFacts(verified=True, days_to_expiry=29.9),
    )
    await store(api, check, passed(evidence=evidence))
    assert (await status_of(alice, check))["sslDaysRemaining"] == 29


async def test_a_browser_check_counts_the_days_of_the_certificate_that_it_watches(
    api: PublicApi, alice: ApiUser
) -> None:
    check = (await alice.post("/v1/checks/browser", script_body("browser"))).body
    evidence = BrowserEvidence(
        runtime_id="2026.04",
        ssl_check_domain="a.test",
        tls=TlsFacts(verified=True, days_to_expiry=29.9),
    )
    await store(api, check, passed(evidence=evidence))
    assert (await status_of(alice, check))["sslDaysRemaining"] == 29


async def test_the_statuses_of_all_checks_come_in_one_answer(
    api: PublicApi, alice: ApiUser
) -> None:
    checks = [await a_check(alice, name=f"Check {number}") for number in range(102)]
    for number, check in enumerate(checks):
        await store(api, check, FAILED if number == 100 else passed())
    listed = (await alice.get(PATH)).body
    assert [one["checkId"] for one in listed] == [one["id"] for one in checks]
    assert [one["checkId"] for one in listed if one["hasFailures"]] == [checks[100]["id"]]
    assert listed[100] == await status_of(alice, checks[100])


async def test_a_check_without_results_is_not_listed_as_one_without_faults(
    api: PublicApi, alice: ApiUser
) -> None:
    never_ran, ran = await a_check(alice), await a_check(alice)
    await store(api, ran, passed())
    listed = [one["checkId"] for one in (await alice.get(PATH)).body]
    assert (never_ran["id"] in listed, ran["id"] in listed) == (False, True)


async def test_of_two_results_of_one_millisecond_all_take_the_same_for_the_newest(
    api: PublicApi, alice: ApiUser
) -> None:
    for number in range(10):
        check = await a_check(alice, name=f"Check {number}")
        await store(api, check, FAILED)
        await store(api, check, passed())
        newest = (await alice.get(f"/v1/check-results/{check['id']}")).body[0]
        status = await status_of(alice, check)
        badge = (await alice.get(f"/v1/badges/checks/{check['id']}")).body
        failing = (await alice.get("/v1/checks?status=failing&limit=100")).body
        assert status["lastCheckRunId"] == str(newest["checkRunId"])
        assert status["hasFailures"] is newest["hasFailures"]
        assert ("failing" in badge) is newest["hasFailures"]
        assert (check["id"] in {one["id"] for one in failing}) is newest["hasFailures"]
