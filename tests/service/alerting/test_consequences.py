"""What follows an alert: notifications, and alerts about certificates."""

import time
from typing import Any

from sqlalchemy import select

from contract.evidence import BrowserEvidence, HttpEvidence, SentRequest, TlsFacts
from contract.result import Outcome, TcpEvidence
from service.alerting import actions as alerting
from service.alerting.expiry import CertificateWatch
from service.clock import Clock
from service.db.tables.alert_channels import alert_notification
from service.locations import actions as locations
from tests.builders.alert_channels import a_channel
from tests.builders.alerting import an_outcome_of
from tests.builders.check_bodies import check_body, script_body
from tests.builders.status_pages import INCIDENTS, a_service
from tests.builders.stored_results import store
from tests.servers.public_api import ApiUser, PublicApi


async def a_check(user: ApiUser, kind: str = "url", **fields: Any) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", check_body(kind, **fields))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def play(api: PublicApi, check: dict[str, Any], letters: str) -> None:
    for letter in letters:
        await store(api, check, an_outcome_of(letter), started_ms=time.time_ns() // 1_000_000)


async def notified(api: PublicApi) -> list[tuple[int, str]]:
    """The channels and the types of the alerts that wait for them, in order."""
    rows = await api.database.read(
        lambda c: c.execute(select(alert_notification).order_by(alert_notification.c.serial)).all()
    )
    return [(row.channel_id, row.alert.get("alert_type", "LOCATION")) for row in rows]


async def test_each_channel_of_a_check_is_notified_of_what_it_wants(
    api: PublicApi, alice: ApiUser
) -> None:
    failures = await a_channel(alice, sendRecovery=False)
    everything = await a_channel(alice, sendDegraded=True)
    plain = await a_channel(alice)
    check = await a_check(alice)
    await play(api, check, "FFDPDP")
    assert await notified(api) == [
        (failures, "ALERT_FAILURE"),
        (everything, "ALERT_FAILURE"),
        (plain, "ALERT_FAILURE"),
        (everything, "ALERT_FAILURE_DEGRADED"),
        (everything, "ALERT_DEGRADED_RECOVERY"),
        (plain, "ALERT_DEGRADED_RECOVERY"),
        (everything, "ALERT_DEGRADED"),
        (everything, "ALERT_DEGRADED_RECOVERY"),
    ]


async def test_nobody_is_notified_of_a_muted_check(api: PublicApi, alice: ApiUser) -> None:
    await a_channel(alice)
    await play(api, await a_check(alice, muted=True), "FP")
    assert await notified(api) == []


async def test_each_channel_is_notified_of_a_location(api: PublicApi, alice: ApiUser) -> None:
    channel, _quiet = await a_channel(alice), await a_channel(alice, sendFailure=False)
    await a_check(alice)

    def lose(connection: Any) -> None:
        location = locations.find_in_any_account(connection, alice.secrets.location_id)
        assert location is not None
        now_ms = api.backend.clock.now_ms(connection)
        alerting.report_location(
            connection, location, since_ms=now_ms, is_recovery=False, now_ms=now_ms
        )

    await api.database.write(lose)
    assert await notified(api) == [(channel, "LOCATION")]


async def test_a_check_that_is_deleted_leaves_no_incident_open(
    api: PublicApi, alice: ApiUser
) -> None:
    wanted = {
        "serviceId": await a_service(alice),
        "severity": "CRITICAL",
        "name": "Shop is down",
        "description": "Nobody can buy.",
        "notifySubscribers": True,
    }
    failing, passing = await a_check(alice, triggerIncident=wanted), await a_check(alice)
    await play(api, failing, "F")
    assert await statuses(alice) == ["INVESTIGATING"]
    for check in (passing, failing):
        assert (await alice.delete(f"/v1/checks/{check['id']}")).status == 204
    assert await statuses(alice) == ["RESOLVED"]


async def statuses(user: ApiUser) -> list[str]:
    return [one["lastUpdateStatus"] for one in (await user.get(INCIDENTS)).body["entries"]]


def with_certificate(days: float) -> Outcome:
    seen = HttpEvidence(
        request=SentRequest(method="GET", url="https://shop.test/"),
        tls=TlsFacts(verified=True, days_to_expiry=days, expires_first="CN=shop.test"),
    )
    return an_outcome_of("P", evidence=seen)


async def look(api: PublicApi) -> int:
    return await CertificateWatch(Clock()).look(api.database)


async def see(api: PublicApi, check: dict[str, Any], outcome: Outcome) -> int:
    await store(api, check, outcome, started_ms=time.time_ns() // 1_000_000)
    return await look(api)


async def test_each_channel_is_notified_once_of_each_certificate_at_its_threshold(
    api: PublicApi, alice: ApiUser
) -> None:
    early = await a_channel(alice, sslExpiry=True)
    late = await a_channel(alice, sslExpiry=True, sslExpiryThreshold=7)
    await a_channel(alice)
    check = await a_check(alice)
    assert await see(api, check, with_certificate(31)) == 0
    assert await see(api, check, with_certificate(20)) == 1
    assert await see(api, check, with_certificate(20)) == 0
    assert await notified(api) == [(early, "ALERT_SSL")]
    [shown] = (await alice.get("/v1/check-alerts")).body
    assert (shown["alertType"], shown["error"]) == ("ALERT_SSL", None)
    certificate = shown["certificate"]
    assert (certificate["domain"], certificate["subject"]) == ("shop.test", "CN=shop.test")
    assert 19.9 < certificate["daysRemaining"] <= 20
    assert await see(api, check, with_certificate(6)) == 1
    assert (late, "ALERT_SSL") in await notified(api)
    assert await see(api, check, with_certificate(90)) == 0


async def test_a_browser_check_watches_the_certificate_of_the_host_that_it_names(
    api: PublicApi, alice: ApiUser
) -> None:
    channel = await a_channel(alice, sslExpiry=True)
    check = (await alice.post("/v1/checks/browser", script_body("browser"))).body
    tls = TlsFacts(verified=True, days_to_expiry=20)
    seen = BrowserEvidence(runtime_id="2026.04", ssl_check_domain="shop.test", tls=tls)
    assert await see(api, check, an_outcome_of("P", evidence=seen)) == 1
    assert await notified(api) == [(channel, "ALERT_SSL")]
    [shown] = (await alice.get("/v1/check-alerts")).body
    assert shown["certificate"]["domain"] == "shop.test"


async def test_a_tcp_check_watches_its_certificate_too(api: PublicApi, alice: ApiUser) -> None:
    channel = await a_channel(alice, sslExpiry=True)
    check = await a_check(alice, "tcp")
    tls = TlsFacts(verified=True, days_to_expiry=-2)
    seen = TcpEvidence(hostname="mail.test", port=465, tls=tls)
    assert await see(api, check, an_outcome_of("P", evidence=seen)) == 1
    assert await notified(api) == [(channel, "ALERT_SSL")]
    [shown] = (await alice.get("/v1/check-alerts")).body
    assert (shown["certificate"]["domain"], shown["certificate"]["subject"]) == ("mail.test", None)


async def test_a_silent_check_keeps_its_certificate_to_itself(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_channel(alice, sslExpiry=True)
    muted, paused = await a_check(alice, muted=True), await a_check(alice, activated=False)
    for check in (muted, paused):
        assert await see(api, check, with_certificate(3)) == 0
    plain = await a_check(alice)
    assert await see(api, plain, an_outcome_of("P")) == 0
    assert await notified(api) == []


async def test_nobody_looks_where_no_channel_watches_certificates(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_channel(alice)
    assert await see(api, await a_check(alice), with_certificate(1)) == 0


async def test_a_recovery_goes_to_whoever_was_notified_and_to_nobody_else(
    api: PublicApi, alice: ApiUser
) -> None:
    reached, deaf = await a_channel(alice), await a_channel(alice, sendFailure=False)
    check = await a_check(alice)
    await play(api, check, "F")
    late = await a_channel(alice)
    for channel, activated in ((late, True), (reached, False)):
        path = f"/v1/alert-channels/{channel}/subscriptions"
        body = {"checkId": check["id"], "activated": activated}
        assert (await alice.put(path, body)).status == 200
    await play(api, check, "P")
    assert await notified(api) == [(reached, "ALERT_FAILURE"), (reached, "ALERT_RECOVERY")]
    assert deaf not in {channel for channel, _ in await notified(api)}
