"""The loop that sends mails of status pages; they wait in the database until a server takes them.

A mail is taken for some minutes, sent, and removed. A service that ends in between leaves it there:
it is sent again, with the same Message-ID.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from sqlalchemy import Connection

from service.accounts.keys import Pepper
from service.clock import Clock
from service.db.engine import Database
from service.incidents import actions as incidents
from service.incidents.model import Incident, IncidentStatus
from service.incidents.rules import find_course
from service.mail.mailer import Mailer
from service.mail.model import MailFailure, Message
from service.status_pages import actions as status_pages
from service.status_pages.model import StatusPage
from service.subscriptions import store
from service.subscriptions.model import WaitingMail
from service.subscriptions.rules import LEASE_MS, find_wait_ms, make_signature, make_token
from service.subscriptions.visitor_routes import CONFIRM, UNSUBSCRIBE

log = structlog.get_logger()

GROUP: Final = 20
"""How many mails are taken at a time."""
_AT_ONCE: Final = 4
_WORDS: Final = {
    IncidentStatus.INVESTIGATING: "Investigating",
    IncidentStatus.IDENTIFIED: "Identified",
    IncidentStatus.MONITORING: "Monitoring",
    IncidentStatus.RESOLVED: "Resolved",
}


@dataclass(frozen=True, slots=True)
class Links:
    """What links in mails are made from."""

    pepper: Pepper
    base_url: str
    """Where people reach the service, without a slash at its end."""

    def confirm(self, mail: WaitingMail) -> str:
        """The link that confirms a subscription."""
        token = make_token(self.pepper, mail.subscription.id, mail.salt)
        return self.base_url + CONFIRM.format(token=token)

    def page(self, page: StatusPage) -> str:
        """Where visitors see a page."""
        return f"{self.base_url}/status/{page.url}"

    def unsubscribe(self, subscription_id: str) -> str:
        """The link that ends a subscription."""
        signature = make_signature(self.pepper, subscription_id)
        path = UNSUBSCRIBE.format(subscription_id=subscription_id, signature=signature)
        return self.base_url + path


@dataclass(frozen=True, slots=True)
class _Sending:
    """A mail that was taken, and how it reads."""

    waiting: WaitingMail
    message: Message


class StatusMails:
    """Sends what waits."""

    def __init__(self, clock: Clock, mailer: Mailer, links: Links) -> None:
        self._clock = clock
        self._mailer = mailer
        self._links = links

    async def send_due(self, database: Database) -> int:
        """Send the mails that are due; returns how many were taken."""
        if not await database.read(self._has_due):
            return 0
        taken = await database.write(self._take)
        gate = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._send(one, gate), name=f"status-mail-{one.waiting.id}")
                for one in taken
            ]
        outcomes = {one.waiting: task.result() for one, task in zip(taken, tasks, strict=True)}
        await database.write(lambda connection: self._settle(connection, outcomes))
        return len(taken)

    def _has_due(self, connection: Connection) -> bool:
        return store.has_due_mails(connection, now_ms=self._clock.now_ms(connection))

    def _take(self, connection: Connection) -> list[_Sending]:
        now_ms = self._clock.now_ms(connection)
        found = store.take_due_mails(
            connection, now_ms=now_ms, until_ms=now_ms + LEASE_MS, limit=GROUP
        )
        pages = status_pages.find_all(connection, list({one.subscription.page_id for one in found}))
        update_ids = [one.update_id for one in found if one.update_id is not None]
        of_updates = incidents.find_of_updates(connection, update_ids)
        return [
            _Sending(one, self._write(one, pages[one.subscription.page_id], of_updates, now_ms))
            for one in found
            if not _is_early(connection, one, of_updates, now_ms)
        ]

    def _write(
        self,
        mail: WaitingMail,
        page: StatusPage,
        of_updates: Mapping[str, Incident],
        now_ms: int,
    ) -> Message:
        if mail.update_id is None:
            return write_confirmation(mail, page, self._links)
        incident = of_updates[mail.update_id]
        return write_update(mail, page, incident, self._links, now_ms=now_ms)

    async def _send(self, mail: _Sending, gate: asyncio.Semaphore) -> MailFailure | None:
        async with gate:
            return await self._mailer.send(mail.message)

    def _settle(
        self, connection: Connection, outcomes: Mapping[WaitingMail, MailFailure | None]
    ) -> None:
        now_ms = self._clock.now_ms(connection)
        done = [mail.id for mail, failure in outcomes.items() if failure is None]
        for mail, failure in outcomes.items():
            if failure is not None and not self._put_off(connection, mail, failure, now_ms):
                done.append(mail.id)
        store.remove_mails(connection, done)

    def _put_off(
        self, connection: Connection, mail: WaitingMail, failure: MailFailure, now_ms: int
    ) -> bool:
        """Let a mail wait for another try. False: there is none."""
        waited_ms, chance = now_ms - mail.created_ms, random.random()  # noqa: S311 - no secret
        wait_ms = find_wait_ms(attempts=mail.attempts, waited_ms=waited_ms, chance=chance)
        tried = {"mail_id": mail.id, "attempts": mail.attempts, "reason": failure.reason}
        if failure.is_permanent or wait_ms is None:
            log.warning("status_mail.given_up", **tried)
            return False
        log.info("status_mail.postponed", wait_ms=wait_ms, **tried)
        store.put_off_mail(connection, mail.id, due_ms=now_ms + wait_ms)
        return True


def _is_early(
    connection: Connection, mail: WaitingMail, of_updates: Mapping[str, Incident], now_ms: int
) -> bool:
    """Whether the update of a mail is not public yet; its mails wait until it is, then."""
    if mail.update_id is None:
        return False
    update = incidents.find_update(of_updates[mail.update_id], mail.update_id)
    if update.public_ms <= now_ms:
        return False
    store.move_update(connection, update.id, due_ms=update.public_ms)
    return True


def write_confirmation(mail: WaitingMail, page: StatusPage, links: Links) -> Message:
    """The mail that asks for confirmation."""
    text = (
        f"Somebody, probably you, wants mails at this address about incidents of {page.name}.\n\n"
        f"To confirm, open this link within seven days:\n{links.confirm(mail)}\n\n"
        "If it was not you, do nothing.\n"
    )
    return Message(
        key=f"subscription-{mail.subscription.id}-{mail.id}",
        to=mail.subscription.address,
        subject=f"Confirm your subscription to {page.name}",
        text=text,
    )


def write_update(
    mail: WaitingMail, page: StatusPage, incident: Incident, links: Links, *, now_ms: int
) -> Message:
    """The mail that tells of an update; it names only services that the page shows."""
    update = incidents.find_update(incident, mail.update_id or "")
    names = [one.name for one in page.list_services() if one.id in incident.service_ids]
    course = find_course(incident.updates, now_ms=now_ms)
    since = _format_time(course.began_ms if course else update.public_ms)
    unsubscribe = links.unsubscribe(mail.subscription.id)
    return Message(
        key=f"update-{update.id}-{mail.subscription.id}",
        to=mail.subscription.address,
        subject=f"[{page.name}] {_WORDS[update.status]}: {incident.name}",
        text=_list_facts(
            incident.name,
            f"Status: {_WORDS[update.status]}",
            f"Severity: {incident.severity.capitalize()}",
            f"Services: {', '.join(names)}",
            f"Since: {since}",
            "",
            update.description,
            "",
            links.page(page),
            "",
            "-- ",
            f"You subscribed to {page.name}. Unsubscribe: {unsubscribe}",
        ),
        headers={
            "List-Unsubscribe": f"<{unsubscribe}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )


def _format_time(at_ms: int) -> str:
    """A time as people read it: `27 November 2026, 02:58 UTC`."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def _list_facts(*lines: str) -> str:
    return "\n".join(lines) + "\n"
