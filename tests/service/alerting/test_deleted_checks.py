"""What people are notified of when a check is deleted while it fails."""

import time
from typing import Any

import pytest
from sqlalchemy import select

from service.db.tables.alert_channels import alert_notification
from tests.builders.alert_channels import a_channel
from tests.builders.alerting import an_outcome_of
from tests.builders.check_bodies import check_body
from tests.builders.delivering import delivering, settled
from tests.builders.stored_results import store
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.receiver import serve_receiver


async def a_check(user: ApiUser, **fields: Any) -> dict[str, Any]:
    answer = await user.post("/v1/checks/url", check_body("url", **fields))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def play(api: PublicApi, check: dict[str, Any], letters: str) -> None:
    for letter in letters:
        await store(api, check, an_outcome_of(letter), started_ms=time.time_ns() // 1_000_000)


async def change(user: ApiUser, check: dict[str, Any], **fields: Any) -> None:
    answer = await user.put(f"/v1/checks/url/{check['id']}", check_body("url", **fields))
    assert answer.status == 200, answer.body


async def delete(user: ApiUser, check: dict[str, Any]) -> None:
    assert (await user.delete(f"/v1/checks/{check['id']}")).status == 204


async def ends(api: PublicApi) -> list[tuple[int, str]]:
    """The channels that are notified of a deletion, and the type of the alert."""
    rows = await api.database.read(
        lambda c: c.execute(select(alert_notification).order_by(alert_notification.c.serial)).all()
    )
    return [(row.channel_id, row.alert["alert_type"]) for row in rows if row.alert["check_deleted"]]


async def test_a_pager_gets_the_resolve_of_a_check_that_is_deleted_while_it_fails(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as receiver:
        await a_channel(alice, "PAGERDUTY")
        check = await a_check(alice)
        await play(api, check, "PF")
        await delete(alice, check)
        async with delivering(api, pagerduty_url=receiver.url):
            await settled(api, 2)
    trigger, resolve = (got.json for got in receiver.got)
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert trigger["dedup_key"] == resolve["dedup_key"]


async def test_people_read_that_the_check_was_deleted(api: PublicApi, alice: ApiUser) -> None:
    async with serve_receiver() as receiver:
        config = {"url": receiver.url, "method": "POST", "template": None}
        await a_channel(alice, "WEBHOOK", config=config)
        check = await a_check(alice)
        await play(api, check, "F")
        await delete(alice, check)
        async with delivering(api):
            await settled(api, 2)
    body = receiver.got[1].json
    assert body["alertTitle"] == "[Deleted] Home before it passed again"
    assert (body["isRecovery"], body["alertType"]) == (True, "ALERT_RECOVERY")
    assert {"name": "What happened", "value": body["facts"][1]["value"]} in body["facts"]
    assert body["facts"][1]["value"].startswith("It was deleted before it passed again")
    assert (body["links"], body["resultLink"], body["checkResultId"]) == ([], "", "")
    newest = (await alice.get("/v1/check-alerts")).body[0]
    assert (newest["alertType"], newest["checkDeleted"]) == ("ALERT_RECOVERY", True)
    assert newest["startedAt"] == (await alice.get("/v1/check-alerts")).body[1]["startedAt"]


async def test_a_deletion_is_sent_to_whoever_was_notified_and_wants_recoveries(
    api: PublicApi, alice: ApiUser
) -> None:
    notified = await a_channel(alice)
    await a_channel(alice, sendFailure=False)
    await a_channel(alice, sendRecovery=False)
    failing, degraded, passed = [await a_check(alice) for _ in range(3)]
    sensitive = await a_channel(alice, sendDegraded=True)
    path = f"/v1/alert-channels/{sensitive}/subscriptions"
    assert (await alice.put(path, {"checkId": degraded["id"], "activated": True})).status == 200
    await play(api, failing, "F")
    await play(api, degraded, "D")
    await play(api, passed, "FP")
    for check in (failing, degraded, passed):
        await delete(alice, check)
    assert await ends(api) == [
        (notified, "ALERT_RECOVERY"),
        (sensitive, "ALERT_DEGRADED_RECOVERY"),
    ]


@pytest.mark.parametrize("fields", [{"muted": True}, {"activated": False}])
@pytest.mark.parametrize("passes", [False, True])
async def test_a_deletion_is_sent_also_of_a_check_that_was_muted_or_deactivated_meanwhile(
    api: PublicApi, alice: ApiUser, fields: dict[str, bool], *, passes: bool
) -> None:
    channel, check = await a_channel(alice), await a_check(alice)
    await play(api, check, "F")
    await change(alice, check, **fields)
    await play(api, check, "P" if passes else "")
    await delete(alice, check)
    assert await ends(api) == [(channel, "ALERT_RECOVERY")]


async def test_a_check_that_nobody_was_notified_of_is_deleted_in_silence(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_channel(alice)
    muted, passing = await a_check(alice, muted=True), await a_check(alice)
    await play(api, muted, "F")
    await play(api, passing, "P")
    for check in (muted, passing):
        await delete(alice, check)
    assert await ends(api) == []
    assert [one["checkDeleted"] for one in (await alice.get("/v1/check-alerts")).body] == [False]


async def test_a_deletion_that_fails_notifies_nobody(
    api: PublicApi, alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_channel(alice)
    check = await a_check(alice)
    await play(api, check, "F")

    def fail(*_: Any) -> None:
        raise RuntimeError("the disk is broken")

    monkeypatch.setattr("service.checks.store.delete_check", fail)
    assert (await alice.delete(f"/v1/checks/{check['id']}")).status == 500
    assert await ends(api) == []


async def test_a_failing_check_that_was_deactivated_alerts_of_its_recovery_once_it_passes_again(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_channel(alice)
    check = await a_check(alice)
    await play(api, check, "F")
    await change(alice, check, activated=False)
    await play(api, check, "P")
    kinds = [one["alertType"] for one in (await alice.get("/v1/check-alerts")).body]
    assert kinds == ["ALERT_FAILURE"]
    await change(alice, check, activated=True)
    await play(api, check, "P")
    kinds = [one["alertType"] for one in (await alice.get("/v1/check-alerts")).body]
    assert kinds == ["ALERT_RECOVERY", "ALERT_FAILURE"]
