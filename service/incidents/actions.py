"""What everyone asks of incidents; each is part of the caller's transaction.

Who calls has made sure that services are the account's, and notifies subscribers.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from service.db.ids import new_id
from service.http.errors import ConflictError, NotFoundError
from service.incidents import store
from service.incidents.model import Incident, IncidentUpdate, NewIncident, NewUpdate
from service.incidents.rules import is_open

MOST_UPDATES: Final = 100
"""How many updates of an incident an answer holds."""
_NEWEST_OF_CHECK: Final = 10


def find(connection: Connection, account_id: str, incident_id: str) -> Incident:
    """An incident of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    found = store.find(connection, account_id, incident_id)
    if found is None:
        raise NotFoundError(f"There is no incident {incident_id}.")
    return found


def find_update(incident: Incident, update_id: str) -> IncidentUpdate:
    """An update of the incident.

    Raises:
        NotFoundError: it has none with this id.
    """
    for one in incident.updates:
        if one.id == update_id:
            return one
    raise NotFoundError(f"The incident {incident.id} has no update {update_id}.")


def list_page(
    connection: Connection, account_id: str, *, limit: int, after: str | None
) -> tuple[Incident, ...]:
    """The account's newest incidents, or those that come after one of them."""
    return store.list_page(connection, account_id, limit=limit, after=after)


def list_of_services(
    connection: Connection, account_id: str, service_ids: Sequence[str], *, limit: int
) -> tuple[Incident, ...]:
    """The newest incidents that touch one of the services, the newest first."""
    return store.list_of_services(connection, account_id, service_ids, limit=limit)


def find_open_of_check(
    connection: Connection, account_id: str, check_id: str, *, now_ms: int
) -> Incident | None:
    """The incident that an alert of the check opened and nobody has closed. None: there is none."""
    newest = store.list_of_check(connection, account_id, check_id, limit=_NEWEST_OF_CHECK)
    return next((one for one in newest if is_open(one.updates, now_ms=now_ms)), None)


def list_of_checks(
    connection: Connection, account_id: str, *, since_ms: int, limit: int
) -> tuple[Incident, ...]:
    """The newest incidents that alerts of checks opened since a time, the newest first."""
    return store.list_of_checks(connection, account_id, since_ms=since_ms, limit=limit)


def find_of_updates(connection: Connection, update_ids: Sequence[str]) -> dict[str, Incident]:
    """The incidents of updates, by the updates' ids; an update that is gone is left out."""
    return store.find_of_updates(connection, update_ids)


def open_incident(
    connection: Connection, account_id: str, wanted: NewIncident, *, now_ms: int
) -> str:
    """Store an incident; it has no update yet. Returns its id."""
    incident_id = new_id(now_ms)
    values = {
        "id": incident_id,
        "account_id": account_id,
        "name": wanted.name,
        "severity": wanted.severity.value,
        "check_id": wanted.check_id,
        "notifies": wanted.notifies,
        "created_ms": now_ms,
        "updated_ms": None,
    }
    store.add(connection, values, wanted.service_ids)
    return incident_id


def replace(
    connection: Connection, before: Incident, wanted: NewIncident, *, now_ms: int
) -> Incident:
    """Change an incident's name, severity and services."""
    values = {"name": wanted.name, "severity": wanted.severity.value, "updated_ms": now_ms}
    store.change(connection, before.id, values, wanted.service_ids)
    return find(connection, before.account_id, before.id)


def delete(connection: Connection, account_id: str, incident_id: str) -> None:
    """Forget an incident.

    Raises:
        NotFoundError: the account has no such incident.
    """
    store.remove(connection, find(connection, account_id, incident_id).id)


def add_update(
    connection: Connection, incident_id: str, wanted: NewUpdate, *, now_ms: int
) -> IncidentUpdate:
    """Say something of an incident; of two within a millisecond, the later one counts as later."""
    made_ms = max(now_ms, store.find_newest_ms(connection, incident_id) + 1)
    made = IncidentUpdate(
        id=new_id(made_ms),
        incident_id=incident_id,
        status=wanted.status,
        description=wanted.description,
        public_ms=wanted.public_ms,
        notifies=wanted.notifies,
        created_ms=made_ms,
    )
    store.add_update(connection, {**_columns(wanted), **_identity(made)})
    return made


def replace_update(
    connection: Connection, before: IncidentUpdate, wanted: NewUpdate, *, now_ms: int
) -> None:
    """Say it differently."""
    store.change_update(connection, before.id, _columns(wanted))
    store.touch(connection, before.incident_id, now_ms=now_ms)


def touch(connection: Connection, incident_id: str, *, now_ms: int) -> None:
    """Note that the incident has changed."""
    store.touch(connection, incident_id, now_ms=now_ms)


def delete_update(connection: Connection, incident: Incident, update_id: str, now_ms: int) -> None:
    """Take back what was said.

    Raises:
        NotFoundError: the incident has no such update.
        ConflictError: it has no other one.
    """
    found = find_update(incident, update_id)
    if len(incident.updates) == 1:
        raise ConflictError(
            f"The update {found.id} is the only one of its incident; delete the incident instead."
        )
    store.remove_update(connection, found.id)
    store.touch(connection, incident.id, now_ms=now_ms)


def list_updates(connection: Connection, incident: Incident) -> list[IncidentUpdate]:
    """The newest updates of an incident, the newest first."""
    return store.list_updates(connection, incident.id, limit=MOST_UPDATES)


def _columns(wanted: NewUpdate) -> dict[str, object]:
    return {
        "status": wanted.status.value,
        "description": wanted.description,
        "public_ms": wanted.public_ms,
        "notifies": wanted.notifies,
    }


def _identity(made: IncidentUpdate) -> dict[str, object]:
    return {"id": made.id, "incident_id": made.incident_id, "created_ms": made.created_ms}
