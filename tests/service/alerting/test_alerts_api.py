import time
from typing import Any

import pytest

from contract.result import Status
from service.accounts.model import Role
from service.alerting import preview
from service.alerting.preview import MOST_RESULTS
from service.db.tables.alerting import location_alert
from tests.builders.alerting import an_outcome_of
from tests.builders.check_bodies import check_body
from tests.builders.groups import group_body
from tests.builders.stored_results import store
from tests.servers.public_api import ApiUser, PublicApi

PREVIEW = "/v1/alert-settings/preview"


async def a_check(user: ApiUser, **fields: Any) -> dict[str, Any]:
    answer = await user.post("/v1/checks/url", check_body("url", **fields))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def play(api: PublicApi, check: dict[str, Any], letters: str) -> None:
    """Results of these letters, a minute apart, the last of them a minute ago."""
    now_ms = time.time_ns() // 1_000_000
    for number, letter in enumerate(letters):
        started_ms = now_ms - (len(letters) - number) * 60_000
        await store(api, check, an_outcome_of(letter), started_ms=started_ms)


async def types(user: ApiUser, path: str = "/v1/check-alerts") -> list[str]:
    """The types of the alerts in a list, oldest first."""
    return [one["alertType"] for one in (await user.get(path)).body][::-1]


async def test_alerts_are_listed_newest_first(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    await play(api, check, "PFP")
    [recovery, failure] = (await alice.get("/v1/check-alerts")).body
    assert failure == {
        "id": failure["id"],
        "name": "Home",
        "checkId": check["id"],
        "alertType": "ALERT_FAILURE",
        "checkType": "URL",
        "runLocation": "default",
        "responseTime": 12.5,
        "error": "The connection was refused.",
        "statusCode": None,
        "created_at": failure["created_at"],
        "startedAt": failure["startedAt"],
        "checkResultId": failure["checkResultId"],
        "reminder": 0,
        "notified": True,
        "silence": "NO_SUBSCRIPTION",
        "maintenanceWindow": None,
        "mismatch": None,
        "failingLocations": ["default"],
        "passingLocations": [],
        "lastPassAt": failure["lastPassAt"],
        "certificate": None,
        "artifacts": [],
        "checkDeleted": False,
    }
    assert recovery["alertType"] == "ALERT_RECOVERY"
    assert recovery["startedAt"] == failure["startedAt"]
    path = f"/v1/check-results/{check['id']}/{failure['checkResultId']}"
    assert (await alice.get(path)).body["status"] == Status.FAILED


async def test_alerts_are_listed_in_pages_of_one_check_or_all(
    api: PublicApi, alice: ApiUser
) -> None:
    one, other = await a_check(alice), await a_check(alice)
    await play(api, one, "FPFP")
    await play(api, other, "D")
    assert len((await alice.get("/v1/check-alerts?limit=3")).body) == 3
    assert len((await alice.get("/v1/check-alerts?limit=3&page=2")).body) == 2
    assert await types(alice, f"/v1/check-alerts/{other['id']}") == ["ALERT_DEGRADED"]
    assert len((await alice.get(f"/v1/check-alerts/{one['id']}")).body) == 4
    assert (await alice.get("/v1/check-alerts/none")).status == 404


async def test_alerts_are_listed_of_six_hours(api: PublicApi, alice: ApiUser) -> None:
    await play(api, await a_check(alice), "F")
    now_s = int(time.time())
    for query, number in (
        (f"from={now_s - 3600}", 1),
        (f"from={now_s - 7 * 3600}", 0),
        (f"to={now_s + 5 * 3600}", 1),
        (f"to={now_s - 60}", 0),
        (f"from={now_s - 60}&to={now_s + 60}", 1),
        (f"from={now_s + 60}", 0),
    ):
        assert len((await alice.get(f"/v1/check-alerts?{query}")).body) == number, query
    answer = await alice.get(f"/v1/check-alerts?from={now_s - 7 * 3600}&to={now_s}")
    assert (answer.status, answer.body["message"]) == (
        400,
        '"from" and "to" are more than 6 hours apart; ask for shorter windows.',
    )
    assert (await alice.get("/v1/check-alerts?from=soon")).status == 400


async def test_charlie_sees_nothing_of_alices_alerts(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    check = await a_check(alice)
    await play(api, check, "F")
    assert (await charlie.get("/v1/check-alerts")).body == []
    assert (await charlie.get(f"/v1/check-alerts/{check['id']}")).status == 404
    body = {"checkId": check["id"], "alertSettings": {}}
    assert (await charlie.post(PREVIEW, body)).status == 404
    assert len((await alice.get("/v1/check-alerts")).body) == 1


async def test_the_accounts_alert_settings_are_read_and_written(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    before = (await alice.get("/v1/accounts/me")).body["alertSettings"]
    assert before["runBasedEscalation"] == {"failedRunThreshold": 1}
    wanted = {"runBasedEscalation": {"failedRunThreshold": 3}}
    answer = await alice.put("/v1/accounts/me/alert-settings", wanted)
    assert (answer.status, answer.body) == (200, {**before, **wanted})
    assert (await alice.get("/v1/accounts/me")).body["alertSettings"] == answer.body
    assert (await charlie.get("/v1/accounts/me")).body["alertSettings"] == before
    refused = await alice.put("/v1/accounts/me/alert-settings", {"escalationType": "NEVER"})
    assert refused.status == 400
    await play(api, await a_check(alice), "FF")
    assert await types(alice) == []


async def test_a_group_overrides_the_accounts_settings_for_its_checks(
    api: PublicApi, alice: ApiUser
) -> None:
    slow = {"runBasedEscalation": {"failedRunThreshold": 5}}
    groups = [
        ("/v1/check-groups", {"useGlobalAlertSettings": False, "alertSettings": slow}, []),
        ("/v2/check-groups", {"useGlobalAlertSettings": False, "alertSettings": slow}, []),
        ("/v2/check-groups", {"alertSettings": None}, ["ALERT_FAILURE"]),
    ]
    for path, fields, expected in groups:
        group = (await alice.post(path, group_body(**fields))).body
        check = await a_check(alice, groupId=group["id"])
        await play(api, check, "F")
        assert await types(alice, f"/v1/check-alerts/{check['id']}") == expected
    own = await a_check(alice, groupId=group["id"], useGlobalAlertSettings=False)
    await play(api, own, "F")
    assert await types(alice, f"/v1/check-alerts/{own['id']}") == ["ALERT_FAILURE"]


async def test_a_preview_says_which_alerts_other_settings_would_have_led_to(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    await play(api, check, "PFFPF")
    body = {"checkId": check["id"], "alertSettings": {}}
    answer = await alice.post(PREVIEW, body)
    assert (answer.status, answer.body["results"]) == (200, 5)
    assert [one["alertType"] for one in answer.body["alerts"]] == await types(alice)
    first = answer.body["alerts"][0]
    assert first == {
        "checkId": check["id"],
        "name": "Home",
        "alertType": "ALERT_FAILURE",
        "at": first["at"],
        "location": "default",
        "checkResultId": first["checkResultId"],
        "reminder": 0,
        "wouldHaveNotified": True,
    }
    twice = {"runBasedEscalation": {"failedRunThreshold": 2}}
    answer = await alice.post(PREVIEW, {"checkId": check["id"], "alertSettings": twice})
    assert [one["alertType"] for one in answer.body["alerts"]] == [
        "ALERT_FAILURE_REMAIN",
        "ALERT_RECOVERY",
    ]
    assert await types(alice) == ["ALERT_FAILURE", "ALERT_RECOVERY", "ALERT_FAILURE"]


async def test_a_preview_of_a_group_has_the_alerts_of_all_its_checks(
    api: PublicApi, alice: ApiUser
) -> None:
    group = (await alice.post("/v1/check-groups", group_body())).body
    checks = [await a_check(alice, groupId=group["id"]) for _ in range(2)]
    await a_check(alice)
    for check in checks:
        await play(api, check, "F")
    body = {"groupId": group["id"], "alertSettings": {}}
    answer = await alice.post(PREVIEW, body)
    assert {one["checkId"] for one in answer.body["alerts"]} == {one["id"] for one in checks}
    assert (await alice.post(PREVIEW, {**body, "groupId": 999})).status == 404


async def test_a_preview_of_a_muted_check_would_have_notified_nobody(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice, muted=True)
    await play(api, check, "F")
    answer = await alice.post(PREVIEW, {"checkId": check["id"], "alertSettings": {}})
    assert [one["wouldHaveNotified"] for one in answer.body["alerts"]] == [False]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, 'Name either a check as "checkId" or a group as "groupId".'),
        ({"checkId": "a", "groupId": 1}, 'Name either a check as "checkId" or a group'),
        ({"checkId": "a", "from": 9, "to": 1}, '"from" is later than "to"; swap them.'),
        ({"checkId": "a", "from": "soon"}, '"from" is soon; use a time'),
        ({"checkId": "a", "from": 0, "to": 3_000_000}, '"from" and "to" are more than 30 days'),
    ],
)
async def test_what_cannot_be_previewed_is_refused_in_a_sentence(
    alice: ApiUser, fields: dict[str, Any], said: str
) -> None:
    answer = await alice.post(PREVIEW, {"alertSettings": {}, **fields})
    assert answer.status == 400
    assert answer.body["message"].startswith(said), answer.body


async def test_a_preview_has_a_window_and_a_limit(
    api: PublicApi, alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = await a_check(alice)
    await play(api, check, "PF")
    now_s = int(time.time())
    body = {"checkId": check["id"], "alertSettings": {}}
    earlier = {**body, "from": now_s - 3600, "to": str(now_s - 90)}
    assert (await alice.post(PREVIEW, earlier)).body["results"] == 1
    monkeypatch.setattr(preview, "MOST_RESULTS", 1)
    answer = await alice.post(PREVIEW, body)
    assert answer.status == 400
    assert answer.body["message"].startswith("The window has more than 1 results")
    assert MOST_RESULTS == 50_000


async def test_a_preview_lists_so_many_alerts_and_counts_the_others(
    api: PublicApi, alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = await a_check(alice)
    await play(api, check, "FPFP")
    monkeypatch.setattr(preview, "MOST_ALERTS", 3)
    answer = await alice.post(PREVIEW, {"checkId": check["id"], "alertSettings": {}})
    assert (len(answer.body["alerts"]), answer.body["alertsLeftOut"]) == (3, 1)


async def test_alerts_about_locations_are_listed(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    row = {
        "id": "one",
        "account_id": alice.secrets.account_id,
        "location": "cellar",
        "location_name": "Cellar",
        "is_recovery": False,
        "since_ms": 1_000,
        "created_ms": 2_000,
        "check_count": 5,
        "check_names": ["Home"],
    }
    await api.database.write(lambda c: c.execute(location_alert.insert(), row))
    assert (await alice.get("/v1/location-alerts")).body == [
        {
            "id": "one",
            "location": "cellar",
            "locationName": "Cellar",
            "isRecovery": False,
            "since": "1970-01-01T00:00:01.000Z",
            "created_at": "1970-01-01T00:00:02.000Z",
            "checkCount": 5,
            "checkNames": ["Home"],
        }
    ]
    assert (await charlie.get("/v1/location-alerts")).body == []


async def test_a_key_that_only_reads_may_preview(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    await play(api, check, "F")
    reader = await api.colleague("Rita", role=Role.READ_ONLY)
    answer = await reader.post(PREVIEW, {"checkId": check["id"], "alertSettings": {}})
    assert answer.status == 200
    assert [one["alertType"] for one in answer.body["alerts"]] == ["ALERT_FAILURE"]
