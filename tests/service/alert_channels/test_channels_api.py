from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update

from service.accounts.model import Role
from service.db.tables.alert_channels import alert_channel
from service.http.dependencies import attach
from service.vault.encryption import Vault
from service.vault.texts import HIDDEN
from tests.builders.alert_channels import CONFIGS, a_channel, channel_body
from tests.builders.check_bodies import check_body
from tests.builders.groups import group_body
from tests.builders.outgoing import tools
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.receiver import serve_receiver

PATH = "/v1/alert-channels"


async def a_check(user: ApiUser, query: str = "", **fields: Any) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/url{query}", check_body("url", **fields))
    assert answer.status == 201, answer.body
    return dict(answer.body)


@pytest.mark.parametrize("kind", CONFIGS)
async def test_a_channel_is_made_read_changed_listed_and_deleted(alice: ApiUser, kind: str) -> None:
    made = await alice.post(PATH, channel_body(kind))
    assert made.status == 201, made.body
    assert made.body == {
        "id": made.body["id"],
        "type": kind,
        "config": made.body["config"],
        "subscriptions": [],
        "sendRecovery": True,
        "sendFailure": True,
        "sendDegraded": False,
        "sslExpiry": False,
        "sslExpiryThreshold": 30,
        "autoSubscribe": False,
        "paused": None,
        "created_at": made.body["created_at"],
        "updated_at": None,
    }
    assert made.body["config"].items() >= CONFIGS[kind].items()
    one = f"{PATH}/{made.body['id']}"
    assert (await alice.get(one)).body == made.body
    listed = await alice.get(PATH)
    assert (listed.body, listed.headers["content-range"]) == ([made.body], "0-0/1")
    changed = await alice.put(one, {**made.body, "sendDegraded": True, "sslExpiryThreshold": 7})
    assert changed.status == 200, changed.body
    assert (changed.body["sendDegraded"], changed.body["sslExpiryThreshold"]) == (True, 7)
    assert changed.body["updated_at"] is not None
    assert changed.body["config"] == made.body["config"]
    assert (await alice.delete(one)).status == 204
    assert (await alice.get(one)).status == 404
    assert (await alice.delete(one)).status == 404
    assert (await alice.put(one, channel_body(kind))).status == 404


@pytest.mark.parametrize("kind", CONFIGS)
async def test_secrets_are_shown_to_writers_kept_when_hidden_and_encrypted(
    api: PublicApi, alice: ApiUser, kind: str
) -> None:
    channel = await a_channel(alice, kind)
    one = f"{PATH}/{channel}"
    reader = await api.colleague("Bob", role=Role.READ_ONLY)
    hidden = (await reader.get(one)).body
    assert "s3cr3t" not in str(hidden)
    assert (HIDDEN in str(hidden)) is ("s3cr3t" in str(CONFIGS[kind]))
    assert (await reader.get(PATH)).body == [hidden]
    (row,) = await api.database.read(lambda c: list(c.execute(select(alert_channel))))
    assert "s3cr3t" not in str(row)
    again = await alice.put(one, hidden)
    assert again.status == 200, again.body
    assert again.body["config"].items() >= CONFIGS[kind].items()
    assert (await reader.put(one, hidden)).status == 403
    if HIDDEN in str(hidden):
        fresh = await alice.post(PATH, hidden)
        assert fresh.status == 400
        assert "nothing is stored here" in fresh.body["message"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"type": "FAX", "config": {}}, '"type" must be one of EMAIL, SLACK,'),
        ({"config": {"address": "a@b.test"}}, '"type" must be one of EMAIL, SLACK,'),
        ({"type": "EMAIL"}, '"config" is missing.'),
        (channel_body(config={"address": "nobody"}), '"config.address" is no mail address'),
        (channel_body("SLACK", config={"url": "hooks"}), '"config.url" must begin with http'),
        (channel_body("WEBHOOK", config={"method": "TRACE"}), '"config.method" is TRACE'),
        (channel_body("WEBHOOK", config={"webhookType": "X"}), '"config.webhookType" is X'),
        (channel_body("WEBHOOK", config={"template": "{{#if A}}"}), '"config.template" has no'),
        (
            channel_body("WEBHOOK", config={"headers": [{"key": "a b", "value": "c"}]}),
            '"config.headers[0]',
        ),
        (channel_body("SMS", config={"number": "Ann"}), '"config.number" must be a phone number'),
        (channel_body("OPSGENIE", config={"region": "MOON"}), '"config.region" is MOON'),
        (
            channel_body("PAGERDUTY", config={"serviceKey": ""}),
            '"config.serviceKey" must not be empty',
        ),
        (channel_body(sslExpiryThreshold=31), '"sslExpiryThreshold" is 31; use at most 30'),
        (channel_body(sslExpiryThreshold=0), '"sslExpiryThreshold" is 0; use at least 1'),
        (channel_body(sendFailures=True), '"sendFailures" is not a known field; did you mean'),
    ],
)
async def test_what_is_no_channel_is_refused_in_a_sentence(
    alice: ApiUser, body: dict[str, Any], said: str
) -> None:
    answer = await alice.post(PATH, body)
    assert answer.status == 400
    assert answer.body["message"].startswith(said), answer.body["message"]
    assert "s3cr3t" not in str(answer.body)


async def test_variables_may_stand_for_secrets(alice: ApiUser) -> None:
    await a_channel(alice, "SLACK", config={"url": "{{SLACK_URL}}"})
    await a_channel(alice, "PAGERDUTY", config={"serviceKey": "{{KEY}}"})


async def test_charlie_sees_nothing_of_alices_channels(alice: ApiUser, charlie: ApiUser) -> None:
    one = f"{PATH}/{await a_channel(alice)}"
    assert (await charlie.get(PATH)).body == []
    assert (await charlie.get(one)).status == 404
    assert (await charlie.put(one, channel_body())).status == 404
    assert (await charlie.delete(one)).status == 404
    assert (await charlie.post(f"{one}/test")).status == 404
    check = await a_check(charlie)
    sent = {"checkId": check["id"], "activated": True}
    assert (await charlie.put(f"{one}/subscriptions", sent)).status == 404
    assert check["alertChannelSubscriptions"] == []


async def test_a_check_or_a_group_is_subscribed_and_changed_by_its_channel(alice: ApiUser) -> None:
    check = await a_check(alice)
    group = (await alice.post("/v1/check-groups", group_body())).body
    channel = await a_channel(alice)
    path = f"{PATH}/{channel}/subscriptions"
    made = await alice.put(path, {"checkId": check["id"], "activated": True})
    assert made.status == 200, made.body
    assert made.body == {
        "id": made.body["id"],
        "checkId": check["id"],
        "groupId": None,
        "activated": True,
    }
    changed = await alice.put(path, {"checkId": check["id"], "activated": False})
    assert changed.body == {**made.body, "activated": False}
    of_group = await alice.put(path, {"groupId": group["id"], "activated": True})
    assert of_group.body["groupId"] == group["id"]
    shown = (await alice.get(f"{PATH}/{channel}")).body
    assert shown["subscriptions"] == [changed.body, of_group.body]
    read = (await alice.get(f"/v1/checks/{check['id']}")).body
    choice = {"alertChannelId": channel, "activated": False}
    assert (read["alertChannelSubscriptions"], read["alertChannels"]["email"]) == ([choice], [])
    read = (await alice.get(f"/v1/check-groups/{group['id']}")).body
    assert read["alertChannelSubscriptions"] == [{**choice, "activated": True}]


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ({"checkId": "nothing", "activated": True}, "checkId"),
        ({"groupId": 77, "activated": True}, "groupId"),
        ({"groupId": 10**30, "activated": True}, "groupId"),
        ({"activated": True}, "checkId"),
        ({"checkId": "a", "groupId": 1, "activated": True}, "checkId"),
        ({"checkId": "a"}, "activated"),
    ],
)
async def test_a_subscription_of_nothing_is_refused(
    alice: ApiUser, sent: dict[str, Any], key: str
) -> None:
    channel = await a_channel(alice)
    answer = await alice.put(f"{PATH}/{channel}/subscriptions", sent)
    assert (answer.status, answer.body["validation"]["keys"]) == (400, [key])
    answer = await alice.post(PATH, channel_body(subscriptions=[sent]))
    assert (answer.status, answer.body["validation"]["keys"]) == (400, [f"subscriptions[0].{key}"])


async def test_several_subscriptions_change_at_once_and_the_others_stay(alice: ApiUser) -> None:
    channel = await a_channel(alice)
    ids = [(await alice.post("/v1/checks/url", check_body("url"))).body["id"] for _ in range(3)]
    bulk = f"{PATH}/{channel}/subscriptions/bulk"

    def some(*wanted: tuple[str, bool]) -> dict[str, Any]:
        return {"subscriptions": [{"checkId": one, "activated": is_on} for one, is_on in wanted]}

    await alice.put(bulk, some((ids[0], True), (ids[1], True)))
    answer = await alice.put(bulk, some((ids[1], False), (ids[2], True)))
    shown = (await alice.get(f"{PATH}/{channel}")).body["subscriptions"]
    assert [one["checkId"] for one in answer.body] == ids[1:]
    assert {one["checkId"]: one["activated"] for one in shown} == dict(
        zip(ids, (True, False, True), strict=True)
    )
    wrong = await alice.put(bulk, some((ids[0], False), ("none", True)))
    assert wrong.body["validation"]["keys"] == ["subscriptions[1].checkId"]
    assert (await alice.get(f"{PATH}/{channel}")).body["subscriptions"] == shown
    assert (await alice.put(bulk, {"subscriptions": []})).status == 400


async def test_a_change_of_a_check_keeps_the_ids_of_its_subscriptions(alice: ApiUser) -> None:
    stays, goes = await a_channel(alice), await a_channel(alice)
    chosen = [{"alertChannelId": one, "activated": True} for one in (stays, goes)]
    check = await a_check(alice, alertChannelSubscriptions=chosen)
    path = f"/v1/checks/url/{check['id']}"
    before = (await alice.get(f"{PATH}/{stays}")).body["subscriptions"]

    await alice.put(path, {"muted": True})
    unsaid = (await alice.get(f"{PATH}/{stays}")).body["subscriptions"]
    await alice.put(path, {"alertChannelSubscriptions": chosen[:1]})
    said = (await alice.get(f"{PATH}/{stays}")).body["subscriptions"]

    assert unsaid == said == before
    assert (await alice.get(f"{PATH}/{goes}")).body["subscriptions"] == []


async def test_a_channel_keeps_subscriptions_that_are_left_out(alice: ApiUser) -> None:
    check = await a_check(alice)
    sent = [{"checkId": check["id"], "activated": True}]
    channel = await a_channel(alice, subscriptions=sent)
    one = f"{PATH}/{channel}"
    kept = (await alice.put(one, channel_body())).body["subscriptions"]
    assert [item["checkId"] for item in kept] == [check["id"]]
    assert (await alice.put(one, channel_body(subscriptions=[]))).body["subscriptions"] == []


@pytest.mark.parametrize("path", ["/v1/checks/url", "/v1/check-groups", "/v2/check-groups"])
async def test_a_channel_that_does_not_exist_is_refused(
    alice: ApiUser, charlie: ApiUser, path: str
) -> None:
    foreign = await a_channel(charlie)
    body = check_body("url") if "checks" in path else group_body()
    sent = {**body, "alertChannelSubscriptions": [{"alertChannelId": foreign}]}
    answer = await alice.post(path, sent)
    assert answer.status == 400
    assert answer.body["message"] == (
        f'"alertChannelSubscriptions[0].alertChannelId" is {foreign}, and there is no alert channel'
        " with this id."
    )
    made = (await alice.post(path, body)).body
    assert (await alice.put(f"{path}/{made['id']}", sent)).status == 400


async def test_a_new_check_subscribes_to_all_channels_unless_told_not_to(alice: ApiUser) -> None:
    plain, automatic = await a_channel(alice), await a_channel(alice, autoSubscribe=True)
    every = [{"alertChannelId": one, "activated": True} for one in (plain, automatic)]
    assert (await a_check(alice))["alertChannelSubscriptions"] == every
    made = await a_check(alice, "?autoAssignAlerts=false")
    assert made["alertChannelSubscriptions"] == [every[1]]
    off = [{"alertChannelId": plain, "activated": False}]
    own = await a_check(alice, alertChannelSubscriptions=off)
    assert own["alertChannelSubscriptions"] == [*off, every[1]]
    one = f"/v1/checks/url/{own['id']}"
    assert (await alice.put(one, check_body("url"))).body["alertChannelSubscriptions"] == [
        *off,
        every[1],
    ]
    cleared = await alice.put(one, check_body("url", alertChannelSubscriptions=[]))
    assert cleared.body["alertChannelSubscriptions"] == []
    group = (await alice.post("/v2/check-groups", group_body())).body
    assert group["alertChannelSubscriptions"] == every


async def test_a_check_names_the_channels_that_get_its_alerts_without_secrets(
    alice: ApiUser,
) -> None:
    for kind in CONFIGS:
        await a_channel(alice, kind)
    check = await a_check(alice)
    assert check["alertChannels"] == {
        "email": [{"address": "ops@example.com"}],
        "webhook": [
            {
                "url": HIDDEN,
                "name": "Hook",
                "method": "PUT",
                "headers": [{"key": "x-token", "value": HIDDEN, "locked": True}],
                "queryParameters": [{"key": "k", "value": HIDDEN, "locked": False}],
            }
        ],
        "slack": [{"url": HIDDEN}],
        "sms": [{"number": "+4930123456", "name": "Ann"}],
    }


async def test_a_check_has_its_groups_channels_and_can_turn_one_off(alice: ApiUser) -> None:
    first, second = await a_channel(alice), await a_channel(alice, "SMS")
    both = [{"alertChannelId": one, "activated": True} for one in (first, second)]
    group = (await alice.post("/v1/check-groups", group_body(alertChannelSubscriptions=both))).body
    off = [{"alertChannelId": first, "activated": False}]
    check = await a_check(
        alice, "?autoAssignAlerts=false", groupId=group["id"], alertChannelSubscriptions=off
    )
    assert check["alertChannelSubscriptions"] == off
    assert (check["alertChannels"]["email"], len(check["alertChannels"]["sms"])) == ([], 1)
    runs = (await alice.get(f"/v1/checks/{check['id']}?applyGroupSettings=true")).body
    assert runs["alertChannelSubscriptions"] == [*off, both[1]]
    await alice.delete(f"{PATH}/{second}")
    read = (await alice.get(f"/v1/checks/{check['id']}")).body
    assert read["alertChannels"]["sms"] == []
    assert (await alice.delete(f"/v1/checks/{check['id']}")).status == 204
    assert (await alice.get(f"{PATH}/{first}")).body["subscriptions"][0]["groupId"] == group["id"]


async def test_a_config_that_cannot_be_read_hides_no_other_and_is_replaced(
    api: PublicApi, alice: ApiUser
) -> None:
    broken, other = await a_channel(alice, "SLACK"), await a_channel(alice)
    key = Vault([b"k" * 32])
    lost = update(alert_channel).where(alert_channel.c.id == broken)
    await api.database.write(lambda c: c.execute(lost.values(secrets=key.encrypt("{}", ()))))
    answer = await alice.get(PATH)
    assert answer.headers["x-unreadable-items"] == str(broken)
    assert [item["id"] for item in answer.body] == [broken, other]
    refused = await alice.get(f"{PATH}/{broken}")
    assert (refused.status, "Replace the channel" in refused.body["message"]) == (500, True)
    assert (await alice.put(f"{PATH}/{broken}", channel_body("SLACK"))).status == 200


@pytest.fixture
def sending(api: PublicApi) -> PublicApi:
    """The API, which may reach receivers of tests."""
    attach(api.app, replace(api.backend, sending=tools(limit_s=0.5)))
    return api


async def test_a_test_sends_a_sample_and_answers_what_became_of_it(sending: PublicApi) -> None:
    alice = sending.alice
    async with serve_receiver() as receiver:
        config = {"url": f"{receiver.url}/{{{{WHERE}}}}", "method": "POST", "queryParameters": []}
        one = f"{PATH}/{await a_channel(alice, 'WEBHOOK', config=config)}/test"
        await alice.post("/v1/variables", {"key": "WHERE", "value": "here"})
        answer = await alice.post(one)
        assert answer.body == {"status": "SUCCESS", "notificationResult": "The receiver took it."}
        receiver.answers += [500, 429]
        failed, limited = (await alice.post(one)).body, (await alice.post(one)).body
        assert failed == {
            "status": "FAILURE",
            "notificationResult": "The receiver answered 500 Internal Server Error.",
        }
        assert limited["status"] == "RATE_LIMITED"
        receiver.hangs = True
        assert "did not answer within 0.5 s" in (await alice.post(one)).body["notificationResult"]
    assert receiver.got[0].path == "/here"
    assert receiver.got[0].json == {
        "title": "[Test] Sample check of Picket: HTTP 503, expected 200"
    }
    email = f"{PATH}/{await a_channel(alice)}/test"
    assert "has to set SMTP_URL" in (await alice.post(email)).body["notificationResult"]
    reader = await sending.colleague("Bob", role=Role.READ_ONLY)
    assert (await reader.post(email)).status == 403
