"""What everyone asks of status pages and services; each is part of the caller's transaction.

Alerts open and resolve incidents by `open_incident` and `resolve_incident`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from contract.targets import format_value
from service.accounts.keys import Pepper, digest_key
from service.checks import actions as checks
from service.http.errors import InvalidError, NotFoundError
from service.incidents import actions as incidents
from service.incidents.model import (
    Incident,
    IncidentStatus,
    IncidentUpdate,
    NewIncident,
    NewUpdate,
    Severity,
)
from service.incidents.rules import is_open
from service.maintenance import actions as maintenance
from service.status_pages import store
from service.status_pages.model import Maintenance, ServiceRow, StatusPage
from service.subscriptions import actions as subscriptions

_MOST_NAME_LETTERS: Final = 255
_RESOLVED: Final = "The check passes again."


def find_service(connection: Connection, account_id: str, service_id: str) -> ServiceRow:
    """A service of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    found = store.find_services(connection, account_id, [service_id]).get(service_id)
    if found is None:
        raise NotFoundError(f"There is no service {service_id}.")
    return found


def find_services(
    connection: Connection, account_id: str, service_ids: Sequence[str]
) -> dict[str, ServiceRow]:
    """Those of the services that the account has, by id."""
    return store.find_services(connection, account_id, service_ids)


def require_services(
    connection: Connection, account_id: str, service_ids: Sequence[str], *, field: str
) -> None:
    """Refuse services that are not the account's.

    Raises:
        InvalidError: one of them is not; `field` is what named it.
    """
    known = store.find_services(connection, account_id, service_ids)
    for service_id in service_ids:
        if service_id not in known:
            raise InvalidError(
                f'"{field}" is {format_value(service_id)}, and there is no service of status pages'
                " with this id.",
                keys=(field,),
            )


def find(connection: Connection, account_id: str, page_id: str) -> StatusPage:
    """A status page of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    found = store.find(connection, account_id, page_id)
    if found is None:
        raise NotFoundError(f"There is no status page {page_id}.")
    return found


def find_all(connection: Connection, page_ids: Sequence[str]) -> dict[str, StatusPage]:
    """Status pages by id; those that are gone are left out."""
    return store.find_all(connection, page_ids)


def find_at(connection: Connection, url: str) -> StatusPage | None:
    """The status page of an address, private or not. None: there is none."""
    return store.find_by_url(connection, url)


def list_key_hashes(connection: Connection, page_id: str) -> frozenset[bytes]:
    """The hashes of the keys that open a private page."""
    return store.list_key_hashes(connection, page_id)


def list_domains(connection: Connection) -> dict[str, str]:
    """The last parts of the addresses of pages by their own domains."""
    return store.list_domains(connection)


def find_visible(
    connection: Connection, url: str, *, key: str | None, pepper: Pepper
) -> StatusPage:
    """The status page that a visitor may see.

    Raises:
        NotFoundError: there is none, or it is private and this is no key of it.
    """
    found = store.find_by_url(connection, url)
    if found is not None and found.is_private:
        digest = pepper.keyed(digest_key(key or ""))
        found = found if store.opens(connection, found.id, digest) else None
    if found is None:
        raise NotFoundError(
            f"There is no public status page {format_value(url)}; a private one needs its key, as"
            " Authorization: Bearer sp_…."
        )
    return found


def list_maintenance(
    connection: Connection, page: StatusPage, *, now_ms: int
) -> tuple[Maintenance, ...]:
    """What the page announces: windows that apply to checks which open incidents of its services.

    Those of now and of the next days, the first to begin first.
    """
    announced = maintenance.list_announced(connection, page.account_id, now_ms=now_ms)
    if not announced:
        return ()
    ids = [one.id for one in page.list_services()]
    own = checks.list_of_services(connection, page.account_id, ids)
    found = []
    for window, occurrence in announced:
        concerned = {one.service_id for one in own if window.applies_to(one.tags)}
        if concerned:
            found.append(
                Maintenance(
                    name=window.name,
                    service_ids=tuple(one for one in ids if one in concerned),
                    begins_ms=occurrence.begins_ms,
                    ends_ms=occurrence.ends_ms,
                )
            )
    return tuple(found)


def publish(
    connection: Connection, incident_id: str, wanted: NewUpdate, account_id: str, *, now_ms: int
) -> IncidentUpdate:
    """Say something of an incident, and let mails tell it if they shall."""
    made = incidents.add_update(connection, incident_id, wanted, now_ms=now_ms)
    incidents.touch(connection, incident_id, now_ms=now_ms)
    if wanted.notifies:
        incident = incidents.find(connection, account_id, incident_id)
        notify_subscribers(connection, incident, made, now_ms=now_ms)
    return made


def notify_subscribers(
    connection: Connection, incident: Incident, update: IncidentUpdate, *, now_ms: int
) -> None:
    """Let mails tell the subscribers of all pages that show what the incident touches."""
    page_ids = store.list_ids_showing(connection, incident.service_ids)
    due_ms = max(now_ms, update.public_ms)
    subscriptions.notify(connection, page_ids, update.id, due_ms=due_ms)


def change_mails(
    connection: Connection,
    incident: Incident,
    before: IncidentUpdate,
    after: IncidentUpdate,
    *,
    now_ms: int,
) -> None:
    """Make the mails of an update follow a change of it."""
    if not after.notifies:
        subscriptions.take_back_mails(connection, after.id)
    elif not before.notifies:
        notify_subscribers(connection, incident, after, now_ms=now_ms)
    elif (due_ms := max(now_ms, after.public_ms)) != max(now_ms, before.public_ms):
        subscriptions.move_mails(connection, after.id, due_ms=due_ms)


def open_incident(
    connection: Connection,
    account_id: str,
    trigger: Mapping[str, Any],
    *,
    check_id: str,
    now_ms: int,
) -> str | None:
    """Open the incident of a check's outage, as its `triggerIncident` wants it; returns its id.

    While one of the check is open, it is that one: an outage has one incident. None: the service is
    gone.
    """
    service_id = str(trigger["serviceId"])
    if service_id not in store.find_services(connection, account_id, [service_id]):
        return None
    held = incidents.find_open_of_check(connection, account_id, check_id, now_ms=now_ms)
    if held is not None:
        return held.id
    wanted = NewIncident(
        name=str(trigger["name"])[:_MOST_NAME_LETTERS],
        severity=Severity(trigger["severity"]),
        service_ids=(service_id,),
        check_id=check_id,
        notifies=bool(trigger["notifySubscribers"]),
    )
    incident_id = incidents.open_incident(connection, account_id, wanted, now_ms=now_ms)
    first = NewUpdate(
        status=IncidentStatus.INVESTIGATING,
        description=str(trigger["description"]),
        public_ms=now_ms,
        notifies=wanted.notifies,
    )
    publish(connection, incident_id, first, account_id, now_ms=now_ms)
    return incident_id


def resolve_incident(
    connection: Connection, account_id: str, incident_id: str, *, now_ms: int
) -> None:
    """Resolve the incident of an outage that is over, unless a person has closed or deleted it."""
    try:
        incident = incidents.find(connection, account_id, incident_id)
    except NotFoundError:
        return
    if not is_open(incident.updates, now_ms=now_ms):
        return
    last = NewUpdate(
        status=IncidentStatus.RESOLVED,
        description=_RESOLVED,
        public_ms=now_ms,
        notifies=incident.notifies,
    )
    publish(connection, incident_id, last, account_id, now_ms=now_ms)


def list_all_services(connection: Connection, account_id: str) -> tuple[ServiceRow, ...]:
    """All services of an account, oldest first."""
    return store.list_services(connection, account_id, limit=None, after=None)


def list_all(connection: Connection, account_id: str, *, limit: int) -> tuple[StatusPage, ...]:
    """The first pages of an account."""
    return store.list_page(connection, account_id, limit=limit, after=None)
