import asyncio
from typing import Any

import pytest

from service.alert_channels.kinds.registry import KINDS
from service.alert_channels.model import ChannelType
from service.alert_channels.sending.errors import ChannelError, Fault
from service.alert_channels.sending.outgoing import Outgoing
from service.alerting.model import AlertType
from service.mail.mailer import Mailer
from service.mail.model import Sender
from service.mail.rules import parse_server
from tests.builders.alert_channels import a_location_alert, an_alert
from tests.builders.outgoing import BASE_URL, outgoing, tools
from tests.servers.receiver import Receiver, serve_receiver
from tests.servers.smtp import serve_smtp

RECOVERY = an_alert(AlertType.RECOVERY, error=None, mismatch=None)


async def send(kind: str, one: Outgoing) -> None:
    await KINDS[ChannelType(kind)].send(one)


async def test_a_mail_says_what_a_person_needs_at_night() -> None:
    async with serve_smtp() as box:
        mailer = Mailer(parse_server(box.url), Sender("picket@picket.test"))
        one = outgoing("EMAIL", by=tools(mailer=mailer))
        await send("EMAIL", one)
        await send("EMAIL", one)
    assert [mail["To"] for mail in box.mails] == ["ops@example.com"] * 2
    assert len({mail["Message-ID"] for mail in box.mails}) == 1
    mail = box.mails[0]
    assert mail["Subject"] == "[Failing] Orders: HTTP 503, expected 200"
    text, html = mail.iter_parts()
    lines = text.get_content().replace("\r\n", "\n").splitlines()
    for line in (
        "Check: Orders (API)",
        "What failed: The status code was 503.",
        "Expected: Status code equals 200",
        "Actual: 503",
        "Since: 2026-11-21 10:00:00 UTC",
        "Last good run: 2026-11-21 09:59:00 UTC",
        "Affected locations: cellar",
        "Passing at: attic",
        f"Result: {BASE_URL}/checks/check-1/results/result-1",
    ):
        assert line in lines
    assert "<td" in html.get_content()


async def test_without_a_mail_server_nothing_is_paused() -> None:
    with pytest.raises(ChannelError, match="has to set SMTP_URL") as caught:
        await send("EMAIL", outgoing("EMAIL"))
    assert caught.value.fault is Fault.FINAL


async def test_an_address_that_the_server_refuses_for_good_pauses() -> None:
    async with serve_smtp() as box:
        box.said_to_recipient = "550 no such user"
        mailer = Mailer(parse_server(box.url), Sender("picket@picket.test"))
        with pytest.raises(ChannelError) as caught:
            await send("EMAIL", outgoing("EMAIL", by=tools(mailer=mailer)))
    assert caught.value.is_permanent


async def test_a_mail_that_is_refused_itself_does_not_pause() -> None:
    async with serve_smtp() as box:
        box.said_to_data = "554 looks like spam"
        mailer = Mailer(parse_server(box.url), Sender("picket@picket.test"))
        with pytest.raises(ChannelError, match="looks like spam") as caught:
            await send("EMAIL", outgoing("EMAIL", by=tools(mailer=mailer)))
        assert caught.value.fault is Fault.FINAL
        alert = an_alert(check_name="half \ud800")
        with pytest.raises(ChannelError, match="cannot be written as a mail") as caught:
            await send("EMAIL", outgoing("EMAIL", alert, by=tools(mailer=mailer)))
    assert caught.value.fault is Fault.FINAL


async def test_pagerduty_always_gets_a_source() -> None:
    async with serve_receiver() as receiver:
        by = tools(pagerduty_url=receiver.url)
        await send("PAGERDUTY", outgoing("PAGERDUTY", an_alert(location=""), by=by))
    assert receiver.got[0].json["payload"]["source"] == "picket"


async def test_slack_gets_blocks_in_which_nothing_is_a_command() -> None:
    async with serve_receiver() as receiver:
        alert = an_alert(check_name="<!channel> & co")
        await send("SLACK", outgoing("SLACK", alert, url=f"{receiver.url}/services/x"))
    (got,) = receiver.got
    assert (got.method, got.path, got.json["channel"]) == ("POST", "/services/x", "#ops")
    assert got.json["text"] == "[Failing] &lt;!channel&gt; &amp; co: HTTP 503, expected 200"
    (attachment,) = got.json["attachments"]
    kinds = [block["type"] for block in attachment["blocks"]]
    assert kinds == ["header", "section", "section"]
    assert f"<{BASE_URL}/checks/check-1/results/result-1|Result>" in str(attachment)


async def test_pagerduty_opens_and_resolves_one_incident() -> None:
    async with serve_receiver() as receiver:
        by = tools(pagerduty_url=f"{receiver.url}/v2/enqueue")
        for alert in (an_alert(), RECOVERY):
            one = outgoing("PAGERDUTY", alert, by=by, serviceKey="{{KEY}}", variables={"KEY": "k1"})
            await send("PAGERDUTY", one)
    opened, resolved = (got.json for got in receiver.got)
    assert opened["event_action"] == "trigger"
    assert (opened["routing_key"], opened["dedup_key"]) == ("k1", "picket-check-check-1")
    assert opened["payload"]["severity"] == "critical"
    assert opened["payload"]["source"] == "cellar"
    assert opened["payload"]["summary"] == "[Failing] Orders: HTTP 503, expected 200"
    assert resolved == {
        "routing_key": "k1",
        "event_action": "resolve",
        "dedup_key": "picket-check-check-1",
    }


async def test_opsgenie_creates_and_closes_one_alert() -> None:
    async with serve_receiver() as receiver:
        by = tools(opsgenie_urls={"EU": f"{receiver.url}/eu", "US": "http://us.invalid"})
        for alert in (an_alert(), RECOVERY):
            await send("OPSGENIE", outgoing("OPSGENIE", alert, by=by))
    created, closed = receiver.got
    assert (created.path, created.headers["authorization"]) == ("/eu/v2/alerts", "GenieKey s3cr3t")
    assert (created.json["alias"], created.json["priority"]) == ("picket-check-check-1", "P1")
    assert closed.path == "/eu/v2/alerts/picket-check-check-1/close"
    assert closed.query == {"identifierType": "alias"}


@pytest.mark.parametrize("kind", ["SMS", "CALL"])
async def test_a_gateway_gets_number_and_text(kind: str) -> None:
    setting = f"{kind}_GATEWAY_URL"
    with pytest.raises(ChannelError, match=f"has to set {setting}"):
        await send(kind, outgoing(kind))
    async with serve_receiver() as receiver:
        name = "sms_gateway" if kind == "SMS" else "call_gateway"
        gateway = receiver.url.replace("http://", "http://me:pw@")
        await send(kind, outgoing(kind, by=tools(**{name: gateway})))
    (got,) = receiver.got
    assert (got.json["to"], got.json["id"]) == ("+4930123456", "notification-1")
    assert got.json["text"].startswith("[Failing] Orders: HTTP 503, expected 200")
    assert got.headers["idempotency-key"] == "notification-1"
    assert got.headers["authorization"].startswith("Basic ")


async def test_a_location_is_reported_once_with_its_checks() -> None:
    async with serve_receiver() as receiver:
        by = tools(pagerduty_url=receiver.url)
        await send("PAGERDUTY", outgoing("PAGERDUTY", a_location_alert(), by=by))
    event = receiver.got[0].json
    assert event["dedup_key"] == "picket-location-account-cellar"
    assert event["payload"]["summary"] == ("[No agent] Cellar: 3 checks do not run")
    assert event["payload"]["custom_details"]["Checks"] == "3 (Orders, Basket and 1 more)"


STATUSES: list[tuple[str, int, Fault]] = [
    ("SLACK", 404, Fault.PERMANENT),
    ("SLACK", 500, Fault.REFUSED),
    ("SLACK", 429, Fault.RATE_LIMITED),
    ("PAGERDUTY", 400, Fault.FINAL),
    ("PAGERDUTY", 403, Fault.PERMANENT),
    ("PAGERDUTY", 503, Fault.TEMPORARY),
    ("OPSGENIE", 403, Fault.PERMANENT),
    ("OPSGENIE", 422, Fault.FINAL),
    ("WEBHOOK", 404, Fault.REFUSED),
    ("WEBHOOK", 410, Fault.PERMANENT),
    ("SMS", 503, Fault.TEMPORARY),
    ("SMS", 422, Fault.PERMANENT),
]


def to(receiver: Receiver, kind: str) -> Outgoing:
    url: dict[str, Any] = {"url": receiver.url} if kind in {"SLACK", "WEBHOOK"} else {}
    by = tools(
        pagerduty_url=receiver.url, opsgenie_urls={"EU": receiver.url}, sms_gateway=receiver.url
    )
    return outgoing(kind, by=by, **url)


@pytest.mark.parametrize(("kind", "status", "fault"), STATUSES)
async def test_only_what_a_receiver_refuses_for_good_is_permanent(
    kind: str, status: int, fault: Fault
) -> None:
    async with serve_receiver() as receiver:
        receiver.answers.append(status)
        receiver.headers["retry-after"] = "7"
        with pytest.raises(ChannelError) as caught:
            await send(kind, to(receiver, kind))
    assert (caught.value.fault, caught.value.retry_after_s) == (fault, 7)
    assert caught.value.message.startswith(f"The receiver answered {status} ")


async def test_a_receiver_that_hangs_is_given_up() -> None:
    async with serve_receiver() as receiver:
        receiver.hangs = True
        by = tools(limit_s=0.2)
        with pytest.raises(ChannelError, match=r"did not answer within 0.2 s"):
            await asyncio.wait_for(send("WEBHOOK", outgoing("WEBHOOK", by=by, url=receiver.url)), 9)


async def test_a_setting_that_is_no_template_is_quoted_to_nobody() -> None:
    """It may be a secret, and people who only read see why a notification failed."""
    with pytest.raises(ChannelError) as caught:
        await send("PAGERDUTY", outgoing("PAGERDUTY", serviceKey="k3y{{s3cr3t !}}"))
    assert str(caught.value) == '"config.serviceKey" cannot be read as a template.'
    assert caught.value.fault is Fault.FINAL
