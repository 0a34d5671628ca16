"""Mails of incidents, sent by a real SMTP server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy import update as sql_update
from structlog.testing import capture_logs

from service.db.tables.status_pages import status_mail
from service.mail.model import MailFailure, Message, Sender
from service.mail.rules import parse_server
from tests.builders.status_pages import INCIDENTS, a_page, a_service, an_incident, say, update_body
from tests.builders.subscribers import ANN, Visitor, a_visitor
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.service import serve_service
from tests.servers.smtp import MailBox, serve_smtp


@pytest.fixture
async def box() -> AsyncIterator[MailBox]:
    async with serve_smtp() as box:
        yield box


@pytest.fixture
async def checkout(alice: ApiUser) -> str:
    """A service on the page `shop`."""
    service = await a_service(alice)
    await a_page(alice, service)
    return service


@pytest.fixture
async def visitor(api: PublicApi, checkout: str, box: MailBox) -> Visitor:
    """Ann has confirmed."""
    visitor = a_visitor(api, box)
    await visitor.confirmed()
    box.mails.clear()
    return visitor


async def waiting(visitor: Visitor) -> int:
    count = select(func.count()).select_from(status_mail)
    return int(await visitor.api.database.read(lambda c: c.execute(count).scalar_one()))


NOTIFIED = update_body(notifySubscribers=True)


async def test_subscribers_are_told_of_an_incident_that_their_page_shows(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    hidden = await a_service(alice, "Internal billing")
    incident = await an_incident(alice, checkout, hidden, incidentUpdates=[NOTIFIED])
    await visitor.send()
    (mail,) = visitor.box.mails
    assert (mail["To"], mail["Subject"]) == (ANN, "[Shop status] Investigating: Orders fail")
    text = mail.get_content()
    for line in (
        "Services: Checkout\n",
        "Severity: Major",
        "It is investigating.",
        "/status/shop\n",
    ):
        assert line in text.replace("\r\n", "\n")
    assert "Internal billing" not in text
    assert mail["List-Unsubscribe"] == f"<{visitor.link()}>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    await say(alice, incident, "RESOLVED", notifySubscribers=True)
    await visitor.send()
    assert visitor.box.mails[-1]["Subject"] == "[Shop status] Resolved: Orders fail"
    assert (await visitor.ask("POST", visitor.link())).status == 200
    await say(alice, incident, "MONITORING", notifySubscribers=True)
    assert await visitor.send() == 0


async def test_only_confirmed_subscribers_of_the_page_are_told_and_only_if_wanted(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    await visitor.subscribe("ben@example.com")
    await visitor.send()
    visitor.box.mails.clear()
    await an_incident(alice, checkout)
    other = await a_service(alice, "Other")
    await an_incident(alice, other, incidentUpdates=[NOTIFIED])
    assert await visitor.send() == 0
    await an_incident(alice, checkout, incidentUpdates=[NOTIFIED])
    await visitor.send()
    assert visitor.box.recipients[-1] == ANN
    assert len(visitor.box.mails) == 1


async def test_a_change_tells_of_an_update_once(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    incident = await an_incident(alice, checkout)
    (update,) = incident["incidentUpdates"]
    path = f"{INCIDENTS}/{incident['id']}/incident-updates/{update['id']}"
    for description in ("First", "Second"):
        body = {**update, "description": description, "notifySubscribers": True}
        assert (await alice.put(path, body)).status == 200
    await visitor.send()
    assert len(visitor.box.mails) == 1


async def test_an_update_that_is_to_come_is_told_when_it_is_public(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    later = {**NOTIFIED, "publicIncidentUpdateDate": "2026-11-21T11:00:00Z"}
    await an_incident(alice, checkout, incidentUpdates=[later])
    visitor.clock.pass_s(3599)
    assert await visitor.send() == 0
    visitor.clock.pass_s(1)
    assert await visitor.send() == 1


def the_hour(hour: int) -> dict[str, str]:
    return {"publicIncidentUpdateDate": f"2026-11-21T{hour}:00:00Z"}


async def test_mails_of_an_update_follow_a_change_of_its_date(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    scheduled = {**NOTIFIED, **the_hour(11)}
    incident = await an_incident(alice, checkout, incidentUpdates=[scheduled])
    (update,) = incident["incidentUpdates"]
    path = f"{INCIDENTS}/{incident['id']}/incident-updates/{update['id']}"
    assert (await alice.put(path, {**update, **the_hour(14)})).status == 200
    visitor.clock.pass_s(3 * 3600)
    assert await visitor.send() == 0
    assert (await alice.put(path, {**update, **the_hour(12)})).status == 200
    assert await visitor.send() == 1
    assert (len(visitor.box.mails), await waiting(visitor)) == (1, 0)


async def test_mails_that_wait_are_dropped_when_subscribers_shall_not_be_notified_any_more(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    scheduled = {**NOTIFIED, **the_hour(11)}
    incident = await an_incident(alice, checkout, incidentUpdates=[scheduled])
    (update,) = incident["incidentUpdates"]
    path = f"{INCIDENTS}/{incident['id']}/incident-updates/{update['id']}"
    assert (await alice.put(path, {**update, "notifySubscribers": False})).status == 200
    assert await waiting(visitor) == 0


async def test_a_mail_that_is_due_before_its_update_is_public_waits_for_it(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    await an_incident(alice, checkout, incidentUpdates=[{**NOTIFIED, **the_hour(11)}])
    early = sql_update(status_mail).values(due_ms=0)
    await visitor.api.database.write(lambda c: c.execute(early))
    assert await visitor.send() == 0
    visitor.clock.pass_s(3600)
    assert await visitor.send() == 1


async def test_a_mail_waits_while_the_server_takes_none_and_is_given_up_after_a_day(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    visitor.box.said_to_recipient = "451 try later"
    await an_incident(alice, checkout, incidentUpdates=[NOTIFIED])
    tries = 0
    with capture_logs() as logs:
        while await waiting(visitor):
            tries += await visitor.send()
            visitor.clock.pass_s(3600)
    assert tries == 25
    assert [one["event"] for one in logs][-1] == "status_mail.given_up"
    assert ANN not in str(logs)


async def test_a_mail_that_failed_is_not_tried_at_once(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    visitor.box.said_to_data = "451 try later"
    await an_incident(alice, checkout, incidentUpdates=[NOTIFIED])
    assert await visitor.send() == 1
    visitor.clock.pass_s(14)
    assert await visitor.send() == 0
    visitor.box.said_to_data = "250 OK"
    visitor.clock.pass_s(16)
    assert await visitor.send() == 1
    assert (len(visitor.box.mails), await waiting(visitor)) == (1, 0)


async def test_an_address_that_the_server_refuses_for_good_is_given_up_at_once(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    visitor.box.said_to_recipient = "550 no such user"
    await an_incident(alice, checkout, incidentUpdates=[NOTIFIED])
    await visitor.send()
    assert await waiting(visitor) == 0


async def test_a_mail_that_is_taken_back_is_not_sent(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    incident = await an_incident(alice, checkout)
    update = await say(alice, incident, "MONITORING", notifySubscribers=True)
    await alice.delete(f"{INCIDENTS}/{incident['id']}/incident-updates/{update['id']}")
    assert await visitor.send() == 0


class _Ended(BaseException):
    """The process ends here."""


class _EndingMailer:
    """Ends before a mail is sent, or after."""

    def __init__(self, visitor: Visitor, *, after: bool) -> None:
        self._mailer = visitor.mails._mailer
        self._after = after

    async def send(self, message: Message) -> MailFailure | None:
        if self._after:
            await self._mailer.send(message)
        raise _Ended


@pytest.mark.parametrize("after", [False, True])
async def test_a_service_that_ends_while_it_sends_loses_no_mail(
    visitor: Visitor, alice: ApiUser, checkout: str, *, after: bool
) -> None:
    await an_incident(alice, checkout, incidentUpdates=[NOTIFIED])
    mailer = visitor.mails._mailer
    visitor.mails._mailer = _EndingMailer(visitor, after=after)  # type: ignore[assignment]
    with pytest.raises(BaseExceptionGroup):
        await visitor.send()
    visitor.mails._mailer = mailer
    assert await visitor.send() == 0
    visitor.clock.pass_s(301)
    assert await visitor.send() == 1
    keys = [mail["Message-ID"] for mail in visitor.box.mails]
    assert (len(keys), len(set(keys))) == (2 if after else 1, 1)


async def test_many_subscribers_are_told_in_rounds(
    visitor: Visitor, alice: ApiUser, checkout: str
) -> None:
    for order in range(25):
        await visitor.confirmed(f"a{order}@example.com")
    visitor.box.recipients.clear()
    await an_incident(alice, checkout, incidentUpdates=[NOTIFIED])
    assert [await visitor.send() for _ in "123"] == [20, 6, 0]
    assert len(set(visitor.box.recipients)) == 26


async def test_mails_that_waited_while_the_service_was_away_are_sent_by_the_next_one(
    tmp_path: Path,
) -> None:
    """The whole service with its own loop: subscribe, stop, start, confirm, be told."""
    async with serve_smtp() as box:
        async with serve_service(tmp_path) as first:
            service = await a_service(first.alice)
            page = await a_page(first.alice, service)
            path = f"/v1/status-pages/{page['id']}/subscriptions/bulk"
            body = {"subscriptions": [{"type": "EMAIL", "config": ANN}]}
            assert (await first.alice.post(path, body)).status == 201
            secrets = first.secrets
        mail = {
            "smtp_server": parse_server(box.url),
            "mail_sender": Sender("status@picket.test"),
            "public_url": "http://picket.test",
        }
        async with serve_service(tmp_path, first_secrets=secrets, **mail) as second:
            (asked,) = await box.wait_for(1)
            link = asked.get_content().split("http://picket.test")[1].split()[0]
            async with second.http.post(second.url + link) as answer:
                assert answer.status == 200
            await an_incident(second.alice, service, incidentUpdates=[NOTIFIED])
            mails = await box.wait_for(2)
            assert mails[-1]["Subject"] == "[Shop status] Investigating: Orders fail"
