import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event, select, update
from structlog.testing import capture_logs

from service.alert_channels import actions, store
from service.alert_channels.delivery import Delivery
from service.alert_channels.rules import LONGEST_WAIT_MS, MOST_REFUSALS, backoff_ms
from service.alerting.model import AlertType
from service.db.engine import DatabaseFullError
from service.db.tables.alert_channels import alert_channel, alert_notification
from tests.builders.alert_channels import (
    a_certificate_alert,
    a_channel,
    a_location_alert,
    an_alert,
    channel_body,
)
from tests.builders.check_bodies import check_body
from tests.builders.delivering import delivering, settled
from tests.builders.engines import ON_POSTGRESQL, ON_SQLITE
from tests.fakes.clock import FakeClock
from tests.servers.public_api import ApiUser, PublicApi, serve_public_api
from tests.servers.receiver import Receiver, serve_receiver

NOTIFICATIONS = "/v1/alert-notifications"
HOUR_MS = 3_600_000


async def a_hook(user: ApiUser, receiver: Receiver, path: str = "/", **fields: Any) -> int:
    config = {
        "url": receiver.url + path,
        "method": "POST",
        "template": "{{{CHECK_ERROR_MESSAGE}}}",
        "headers": [],
        "queryParameters": [],
    }
    return await a_channel(user, "WEBHOOK", config=config, **fields)


async def a_check(user: ApiUser) -> str:
    return str((await user.post("/v1/checks/url", check_body("url"))).body["id"])


async def enqueue(api: PublicApi, check_id: str, *errors: str, **changes: Any) -> int:
    """Alerts with these errors, one after the other; how many notifications."""
    account_id = api.alice.secrets.account_id

    def change(connection: Any) -> int:
        now_ms = api.backend.clock.now_ms(connection)
        alerts = [
            an_alert(account_id=account_id, check_id=check_id, error=error, **changes)
            for error in errors
        ]
        return sum(actions.enqueue(connection, one, now_ms=now_ms) for one in alerts)

    return await api.database.write(change)


async def attempted(api: PublicApi, serial: int = 1) -> None:
    """As soon as the outcome of the notification's try is known."""
    query = select(alert_notification.c.outcome).where(alert_notification.c.serial == serial)
    async with asyncio.timeout(30):
        while True:
            if await api.database.read(lambda c: c.execute(query).scalar_one()):
                return
            await asyncio.sleep(0.02)


async def test_an_alert_goes_to_the_channels_that_want_it_and_is_listed(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as receiver, delivering(api):
        channel = await a_hook(alice, receiver)
        await a_hook(alice, receiver, sendFailure=False)
        check = await a_check(alice)
        assert await enqueue(api, check, "broken") == 1
        (shown,) = await settled(api, 1)
    assert [got.body for got in receiver.got] == [b"broken"]
    assert receiver.got[0].headers["x-picket-delivery"] == shown["id"]
    assert shown == {
        "id": shown["id"],
        "type": "WEBHOOK",
        "status": "SUCCESS",
        "alertConfig": shown["alertConfig"],
        "notificationResult": "The receiver took it.",
        "timestamp": shown["timestamp"],
        "checkType": "API",
        "checkId": check,
        "checkAlertId": "alert-1",
        "alertChannelId": channel,
        "checkResultId": "result-1",
        "attempts": 1,
    }
    assert receiver.url not in str(shown)


async def test_what_a_receiver_does_not_take_is_tried_again_in_order(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as receiver, delivering(api):
        receiver.answers += [500, 503]
        await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1", "2", "3")
        found = await settled(api, 3)
    assert [got.body for got in receiver.got] == [b"1", b"1", b"1", b"2", b"3"]
    assert len({got.headers["x-picket-delivery"] for got in receiver.got[:3]}) == 1
    assert [one["attempts"] for one in found] == [3, 1, 1]


@pytest.mark.parametrize("status", [500, 404, 302])
async def test_what_a_receiver_refuses_is_given_up_and_the_next_alert_has_its_turn(
    api: PublicApi, alice: ApiUser, status: int
) -> None:
    async with serve_receiver() as receiver, delivering(api):
        receiver.answers += [status] * MOST_REFUSALS
        channel = await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1", "2")
        first, second = await settled(api, 2)
        assert (first["status"], first["attempts"]) == ("FAILURE", MOST_REFUSALS)
        assert second["status"] == "SUCCESS"
        assert first["notificationResult"].startswith(f"The receiver answered {status} ")
        failed = (await alice.get(f"{NOTIFICATIONS}?hasFailures=true")).body
        assert [one["id"] for one in failed] == [first["id"]]
        others = await alice.get(f"{NOTIFICATIONS}?hasFailures=false&alertChannelId={channel}")
        assert [one["id"] for one in others.body] == [second["id"]]
        assert (await alice.get(f"{NOTIFICATIONS}?alertChannelId=77")).body == []
    assert (await alice.get(f"/v1/alert-channels/{channel}")).body["paused"] is None


@pytest.mark.parametrize("status", [429, 503])
async def test_a_receiver_that_takes_nothing_for_a_while_gets_everything_later(
    api: PublicApi, alice: ApiUser, status: int
) -> None:
    async with serve_receiver() as receiver, delivering(api):
        receiver.answers += [status] * (2 * MOST_REFUSALS)
        await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1", "2", "3")
        found = await settled(api, 3)
    assert [one["status"] for one in found] == ["SUCCESS"] * 3
    assert [one["attempts"] for one in found] == [2 * MOST_REFUSALS + 1, 1, 1]
    assert [got.body for got in receiver.got[-3:]] == [b"1", b"2", b"3"]


@pytest.mark.parametrize(("status", "ends"), [(503, "FAILURE"), (429, "RATE_LIMITED")])
async def test_what_waited_for_a_day_is_given_up_when_its_receiver_takes_nothing(
    api: PublicApi, alice: ApiUser, status: int, ends: str
) -> None:
    async with serve_receiver() as receiver:
        receiver.answers.append(status)
        await a_hook(alice, receiver)
        check = await a_check(alice)
        await enqueue(api, check, "1", "2")
        await put(api, created_ms=alert_notification.c.created_ms - HOUR_MS)
        await enqueue(api, check, "3")
        async with delivering(api, clock=later(api, LONGEST_WAIT_MS - HOUR_MS // 2)):
            found = await settled(api, 3)
    assert [one["status"] for one in found] == [ends, ends, "SUCCESS"]
    for one in found[:2]:
        assert one["notificationResult"].startswith(f"The receiver answered {status} ")
        assert one["notificationResult"].endswith("it waited for more than 24 hours.")
    assert [got.body for got in receiver.got] == [b"1", b"3"]


async def test_what_waited_longer_is_sent_to_a_receiver_that_takes_it(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as receiver:
        await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1", "2")
        async with delivering(api, clock=later(api, 2 * LONGEST_WAIT_MS)):
            found = await settled(api, 2)
    assert [one["status"] for one in found] == ["SUCCESS"] * 2


async def test_the_next_in_line_waits_as_long_as_its_channel_has_failed(
    api: PublicApi, alice: ApiUser
) -> None:
    """A backlog is no reason to try a dead receiver more often."""
    clock = later(api, HOUR_MS)
    async with serve_receiver() as receiver:
        receiver.answers.append(500)
        channel = await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1", "2")
        await put(api, refusals=MOST_REFUSALS - 1)
        failed = update(alert_channel).values(failures=3)
        await api.database.write(lambda c: c.execute(failed))
        async with delivering(api, clock=clock, chance=1.0):
            first, second = await settled(api, 1)
        assert (first["status"], second["attempts"]) == ("FAILURE", 0)
        assert await next_try_ms(api, 2) == clock.now + backoff_ms(4, 1.0, demanded_s=None)
        one = f"/v1/alert-channels/{channel}"
        async with delivering(api, clock=clock, chance=1.0):
            assert (await alice.put(one, (await alice.get(one)).body)).status == 200
            assert [item["status"] for item in await settled(api, 2)] == ["FAILURE", "SUCCESS"]
    assert [got.body for got in receiver.got] == [b"1", b"2"]


async def test_a_receiver_that_takes_something_is_tried_soon_when_it_fails_again(
    api: PublicApi, alice: ApiUser
) -> None:
    clock = later(api, HOUR_MS)
    async with serve_receiver() as receiver:
        await a_hook(alice, receiver)
        receiver.answers += [200, 503]
        await enqueue(api, await a_check(alice), "1", "2")
        failed = update(alert_channel).values(failures=30)
        await api.database.write(lambda c: c.execute(failed))
        async with delivering(api, clock=clock, chance=1.0):
            await attempted(api, 2)
    assert await next_try_ms(api, 2) == clock.now + backoff_ms(1, 1.0, demanded_s=None)


async def test_nothing_overtakes_an_alert_that_waits_for_its_next_try(
    api: PublicApi, alice: ApiUser
) -> None:
    clock = later(api, HOUR_MS)
    async with serve_receiver() as busy, serve_receiver() as other:
        busy.answers.append(503)
        await a_hook(alice, busy)
        check = await a_check(alice)
        await enqueue(api, check, "1", "2")
        async with delivering(api, clock=clock, chance=1.0):
            await attempted(api)
            await a_hook(alice, other, autoSubscribe=True)
            await enqueue(api, await a_check(alice), "3")
            await other.wait_for(1)
            assert [got.body for got in busy.got] == [b"1"]
        clock.pass_s(21)
        async with delivering(api, clock=clock):
            await settled(api, 4)
    assert [got.body for got in busy.got] == [b"1", b"1", b"2", b"3"]


async def test_a_reminder_is_not_sent_when_a_later_notification_follows(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as receiver:
        await a_hook(alice, receiver)
        one, other = await a_check(alice), await a_check(alice)
        await enqueue(api, one, "failed")
        await enqueue(api, one, "reminder 1", alert_type=AlertType.FAILURE_REMAIN, reminder=1)
        await enqueue(api, one, "reminder 2", alert_type=AlertType.FAILURE_REMAIN, reminder=2)
        await enqueue(api, other, "other failed")
        await enqueue(api, other, "other reminder", reminder=1)
        await enqueue(api, one, "recovered", alert_type=AlertType.RECOVERY)
        async with delivering(api):
            found = await settled(api, 6)
    bodies = [b"failed", b"other failed", b"other reminder", b"recovered"]
    assert [got.body for got in receiver.got] == bodies
    assert [found[order]["status"] for order in (1, 2)] == ["FAILURE"] * 2
    sentence = "Not sent: a later notification about the check follows this reminder."
    assert {found[order]["notificationResult"] for order in (1, 2)} == {sentence}


async def test_the_newest_reminder_is_sent(api: PublicApi, alice: ApiUser) -> None:
    async with serve_receiver() as receiver:
        await a_hook(alice, receiver)
        await a_hook(alice, receiver)
        check = await a_check(alice)
        await enqueue(api, check, "reminder 1", alert_type=AlertType.FAILURE_REMAIN, reminder=1)
        async with delivering(api):
            found = await settled(api, 2)
    assert [one["status"] for one in found] == ["SUCCESS"] * 2


def later(api: PublicApi, by_ms: int) -> FakeClock:
    """A clock that stands at a time after that by which alerts are queued."""
    return FakeClock(time.time_ns() // 1_000_000 + by_ms)


async def put(api: PublicApi, **columns: Any) -> None:
    """Change all notifications."""
    changed = update(alert_notification).values(**columns)
    await api.database.write(lambda c: c.execute(changed))


async def next_try_ms(api: PublicApi, serial: int) -> int:
    query = select(alert_notification.c.next_try_ms).where(alert_notification.c.serial == serial)
    return int(await api.database.read(lambda c: c.execute(query).scalar_one()))


async def test_a_demanded_wait_is_kept(api: PublicApi, alice: ApiUser) -> None:
    clock = later(api, HOUR_MS)
    async with serve_receiver() as receiver, delivering(api, clock=clock):
        receiver.answers.append(429)
        receiver.headers["retry-after"] = "120"
        await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1")
        await receiver.wait_for(1)
        query = select(alert_notification.c.next_try_ms, alert_notification.c.attempts)
        await attempted(api)
        row = await api.database.read(lambda c: c.execute(query).one())
    assert (row.next_try_ms, row.attempts) == (clock.now + 120_000, 1)
    assert len(receiver.got) == 1


async def test_a_receiver_that_is_gone_pauses_its_channel_until_it_is_replaced(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as receiver, delivering(api):
        receiver.answers.append(410)
        channel = await a_hook(alice, receiver)
        one = f"/v1/alert-channels/{channel}"
        check = await a_check(alice)
        await enqueue(api, check, "1", "2")
        found = await settled(api, 2)
        await enqueue(api, check, "3")
        found = await settled(api, 3)
        assert [item["status"] for item in found] == ["FAILURE"] * 3
        assert found[2]["notificationResult"].startswith("Not sent: the channel is paused")
        shown = (await alice.get(one)).body
        assert shown["paused"]["reason"] == "The receiver answered 410 Gone."
        resumed = await alice.put(one, shown)
        assert resumed.body["paused"] is None
        await enqueue(api, check, "4")
        assert [item["status"] for item in await settled(api, 4)][3] == "SUCCESS"
    assert [got.body for got in receiver.got] == [b"1", b"4"]


async def test_a_receiver_that_hangs_stalls_nobody_else(api: PublicApi, alice: ApiUser) -> None:
    async with serve_receiver() as dead, serve_receiver() as alive, delivering(api, limit_s=30):
        dead.hangs = True
        await a_hook(alice, dead)
        await a_hook(alice, alive)
        await enqueue(api, await a_check(alice), "1", "2", "3")
        await alive.wait_for(3)
        await dead.wait_for(1)
        assert len(dead.got) == 1
        await settled(api, 3)


async def test_what_was_queued_before_the_end_is_sent_after_it(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as receiver:
        await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1")
        async with delivering(api):
            await settled(api, 1)
    assert len(receiver.got) == 1


async def test_what_was_sent_and_not_noted_is_sent_again_with_the_same_id(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as receiver:
        receiver.hangs = True
        await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1")
        async with delivering(api):
            await receiver.wait_for(1)
        receiver.hangs = False
        async with delivering(api):
            (shown,) = await settled(api, 1)
    assert [got.headers["x-picket-delivery"] for got in receiver.got] == [shown["id"]] * 2
    assert len({got.body for got in receiver.got}) == 1


@ON_POSTGRESQL
async def test_what_two_services_find_at_once_is_sent_once(api: PublicApi, alice: ApiUser) -> None:
    async with serve_receiver() as receiver:
        await a_hook(alice, receiver)
        check = await a_check(alice)
        async with delivering(api), delivering(api):
            for number in range(1, 6):
                await enqueue(api, check, str(number))
                await settled(api, number)
    assert len(receiver.got) == 5


async def test_a_poisoned_notification_does_not_keep_the_others_back(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as receiver:
        await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1", "2")
        broken = update(alert_notification).where(alert_notification.c.serial == 1)
        await api.database.write(lambda c: c.execute(broken.values(alert={"id": 7})))
        async with delivering(api):
            first, second = await settled(api, 2)
    assert (first["status"], second["status"]) == ("FAILURE", "SUCCESS")
    assert first["notificationResult"] == "The stored alert cannot be read."


@pytest.mark.parametrize("problem", [DatabaseFullError("full"), RuntimeError("broken")])
async def test_an_outcome_that_cannot_be_stored_is_never_sent_again(
    api: PublicApi, alice: ApiUser, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    monkeypatch.setattr("service.alert_channels.delivery._FIRST_NOTE_WAIT_S", 0.01)
    monkeypatch.setattr("service.alert_channels.delivery._PAUSE_AFTER_FAULT_S", 0.01)
    monkeypatch.setattr("service.alert_channels.delivery._MOST_NOTES", 2, raising=False)
    failures = [problem] * 3
    store_outcome = Delivery._store

    def store(self: Delivery, *given: Any) -> None:
        if failures:
            raise failures.pop()
        store_outcome(self, *given)

    monkeypatch.setattr(Delivery, "_store", store)
    async with serve_receiver() as receiver, delivering(api):
        await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1", "2")
        found = await settled(api, 2)
    assert [got.body for got in receiver.got] == [b"1", b"2"]
    assert [one["attempts"] for one in found] == [1, 1]


async def test_a_try_is_counted_before_it_is_made(api: PublicApi, alice: ApiUser) -> None:
    async with serve_receiver() as receiver:
        receiver.hangs = True
        await a_hook(alice, receiver)
        await enqueue(api, await a_check(alice), "1")
        for count in range(1, MOST_REFUSALS + 1):
            async with delivering(api, limit_s=30):
                await receiver.wait_for(count)
                (shown,) = (await alice.get(NOTIFICATIONS)).body
                assert (shown["status"], shown["attempts"]) == ("IN_PROGRESS", count)
        async with delivering(api):
            (shown,) = await settled(api, 1)
        assert len(receiver.got) == MOST_REFUSALS
    assert (shown["status"], shown["attempts"]) == ("FAILURE", MOST_REFUSALS)
    assert shown["notificationResult"] == "The service ended each time that it was sent."


async def test_a_channel_that_was_replaced_meanwhile_is_not_paused(
    api: PublicApi, alice: ApiUser
) -> None:
    async with serve_receiver() as old, serve_receiver() as new, delivering(api, limit_s=30):
        old.hangs = True
        old.answers.append(410)
        channel = await a_hook(alice, old)
        await enqueue(api, await a_check(alice), "1")
        await old.wait_for(1)
        one = f"/v1/alert-channels/{channel}"
        shown = (await alice.get(one)).body
        shown["config"]["url"] = new.url
        assert (await alice.put(one, shown)).status == 200
        old.release()
        (sent,) = await settled(api, 1)
        assert (sent["status"], len(new.got)) == ("SUCCESS", 1)
        assert (await alice.get(one)).body["paused"] is None


@ON_SQLITE
async def test_what_is_due_is_found_by_the_index_of_what_waits(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_channel(alice)
    await enqueue(api, await a_check(alice), "1", "2", "3")
    asked: list[str] = []

    def look(connection: Connection) -> tuple[list[int], int | None]:
        now_ms = api.backend.clock.now_ms(connection)
        event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
        due = [one.serial for one in store.list_due(connection, now_ms=now_ms)]
        later = store.find_next_due(connection, after_ms=0)
        return due, later

    due, later = await api.database.read(look)
    assert due == [1]
    assert later is not None

    def explain(connection: Connection) -> str:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", (0,))
        return "\n".join(row[3] for row in plan)

    query = next(one for one in asked if "alert_notification" in one)
    plan = await api.database.read(explain)
    assert "ix_alert_notification_open (channel_id=?)" in plan
    assert "SCAN alert_notification" not in plan


async def test_logs_name_no_receiver(api: PublicApi, alice: ApiUser) -> None:
    with capture_logs() as logs:
        async with serve_receiver() as receiver, delivering(api):
            receiver.answers += [500] * 6
            await a_hook(alice, receiver, "/s3cr3t")
            await enqueue(api, await a_check(alice), "1")
            (shown,) = await settled(api, 1)
    assert [one["event"] for one in logs].count("alerts.notification_tried") == 7
    for text in (str(logs), str(shown)):
        assert "s3cr3t" not in text
        assert receiver.url not in text


async def test_a_certificate_is_sent_once_to_each_channel_and_is_not_listed(
    api: PublicApi, alice: ApiUser
) -> None:
    for threshold in (30, 10, 5):
        body = channel_body(sslExpiry=True, sslExpiryThreshold=threshold)
        assert (await alice.post("/v1/alert-channels", body)).status == 201
    check = await a_check(alice)
    counts = []
    for days in (29.0, 9.5, 9.4, 4.0, 90.0, 8.0):
        alert = replace(
            a_certificate_alert(days),
            account_id=alice.secrets.account_id,
            check_id=check,
            created_ms=round(-days * 86_400_000) if days != 8.0 else 86_400_000_000,
        )
        counts.append(
            await api.database.write(lambda c, one=alert: actions.enqueue(c, one, now_ms=1))
        )
    assert counts == [1, 1, 0, 1, 0, 2]
    assert (await alice.get(NOTIFICATIONS)).body == []


async def test_an_alert_about_a_location_goes_through_all_channels_of_its_account(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    async with serve_receiver() as receiver, delivering(api):
        await a_hook(alice, receiver)
        await a_hook(charlie, receiver)
        alert = a_location_alert(account_id=alice.secrets.account_id)

        def change(connection: Any) -> int:
            now_ms = api.backend.clock.now_ms(connection)
            return actions.enqueue_location(connection, alert, now_ms=now_ms)

        assert await api.database.write(change) == 1
        (shown,) = await settled(api, 1)
    assert (shown["checkId"], shown["status"]) == (None, "SUCCESS")
    assert (await charlie.get(NOTIFICATIONS)).body == []


async def test_a_check_gets_its_groups_variables(api: PublicApi, alice: ApiUser) -> None:
    variables = [{"key": "TEAM", "value": "shop"}]
    body = {"name": "Shop", "environmentVariables": variables}
    group = (await alice.post("/v1/check-groups", body)).body["id"]
    async with serve_receiver() as receiver, delivering(api):
        await a_hook(alice, receiver, "/{{TEAM}}")
        await enqueue(api, await a_check(alice), "1", group_id=group)
        await settled(api, 1)
    assert receiver.got[0].path == "/shop"


async def test_settled_notifications_are_forgotten_after_thirty_days(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_channel(alice)
    await enqueue(api, await a_check(alice), "1", "2")
    done = update(alert_notification).where(alert_notification.c.serial == 1)
    await api.database.write(lambda c: c.execute(done.values(status="SUCCESS")))
    later = await api.database.read(api.backend.clock.now_ms) + 31 * 86_400_000
    assert await api.database.write(lambda c: actions.forget_old(c, now_ms=later)) == 1


@pytest.mark.parametrize("query", ["from=1&to=90000", "from=2&to=1", "from=x"])
async def test_a_window_is_a_day_at_most(alice: ApiUser, query: str) -> None:
    assert (await alice.get(f"{NOTIFICATIONS}?{query}")).status == 400
    assert (await alice.get(f"{NOTIFICATIONS}?from=1&to=86401")).status == 200


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=8),
    st.lists(st.sampled_from([200, 500, 429, 404]), max_size=12),
)
def test_each_channel_gets_its_alerts_in_order(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], answers: list[int]
) -> None:
    """Whatever receivers answer: a later alert never comes before one that is not settled."""
    asyncio.run(_in_order(tmp_path_factory.mktemp("order"), paths, answers))


async def _in_order(folder: Any, paths: list[str], answers: list[int]) -> None:
    async with serve_public_api(folder) as api, serve_receiver() as receiver, delivering(api):
        receiver.answers += answers
        checks = {}
        for path in sorted(set(paths)):
            channel = await a_hook(api.alice, receiver, f"/{path}")
            body = check_body(
                "url", alertChannelSubscriptions=[{"alertChannelId": channel, "activated": True}]
            )
            made = await api.alice.post("/v1/checks/url?autoAssignAlerts=false", body)
            checks[path] = str(made.body["id"])
        for order, path in enumerate(paths):
            await enqueue(api, checks[path], f"{order:03}")
        await settled(api, len(paths))
    for path in set(paths):
        came = [got.body for got in receiver.got if got.path == f"/{path}"]
        assert came == sorted(came)
        assert set(came) == {f"{n:03}".encode() for n, one in enumerate(paths) if one == path}
