"""SQL of incidents."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update

from service.db.engine import announce
from service.db.tables.status_pages import (
    status_incident,
    status_incident_service,
    status_incident_update,
)
from service.incidents.model import (
    Incident,
    IncidentStatus,
    IncidentUpdate,
    Severity,
    StatusChanged,
)

_ALL: Final[Select[Any]] = select(status_incident).order_by(status_incident.c.id.desc())
_UPDATES: Final[Select[Any]] = select(status_incident_update)
_SERVICES: Final[Select[Any]] = select(status_incident_service).order_by(
    status_incident_service.c.position
)


def find(connection: Connection, account_id: str, incident_id: str) -> Incident | None:
    """One incident. None: the account has none with this id."""
    query = _ALL.where(
        status_incident.c.id == incident_id, status_incident.c.account_id == account_id
    )
    found = _read_all(connection, query)
    return found[0] if found else None


def list_page(
    connection: Connection, account_id: str, *, limit: int, after: str | None
) -> tuple[Incident, ...]:
    """The account's newest incidents, or those that come after one of them."""
    query = _ALL.where(status_incident.c.account_id == account_id).limit(limit)
    if after is not None:
        query = query.where(status_incident.c.id < after)
    return _read_all(connection, query)


def list_of_services(
    connection: Connection, account_id: str, service_ids: Sequence[str], *, limit: int
) -> tuple[Incident, ...]:
    """The newest incidents that touch one of the services."""
    touched = select(status_incident_service.c.incident_id).where(
        status_incident_service.c.service_id.in_(service_ids)
    )
    query = _ALL.where(
        status_incident.c.account_id == account_id, status_incident.c.id.in_(touched)
    )
    return _read_all(connection, query.limit(limit))


def list_of_check(
    connection: Connection, account_id: str, check_id: str, *, limit: int
) -> tuple[Incident, ...]:
    """The newest incidents that alerts of the check opened."""
    query = _ALL.where(
        status_incident.c.account_id == account_id, status_incident.c.check_id == check_id
    )
    return _read_all(connection, query.limit(limit))


def list_of_checks(
    connection: Connection, account_id: str, *, since_ms: int, limit: int
) -> tuple[Incident, ...]:
    """The newest incidents that alerts of any check opened since a time."""
    query = _ALL.where(
        status_incident.c.account_id == account_id,
        status_incident.c.check_id.is_not(None),
        status_incident.c.created_ms >= since_ms,
    )
    return _read_all(connection, query.limit(limit))


def list_updates(connection: Connection, incident_id: str, *, limit: int) -> list[IncidentUpdate]:
    """The newest updates of an incident, the newest first."""
    table = status_incident_update.c
    newest = (table.public_ms.desc(), table.created_ms.desc(), table.id.desc())
    query = _UPDATES.where(table.incident_id == incident_id).order_by(*newest)
    return [_read_update(row) for row in connection.execute(query.limit(limit))]


def add(connection: Connection, values: Mapping[str, Any], service_ids: Sequence[str]) -> None:
    """Store a new incident and what it touches."""
    connection.execute(insert(status_incident).values(**values))
    _add_services(connection, values["id"], service_ids)
    announce(connection, StatusChanged())


def change(
    connection: Connection, incident_id: str, values: Mapping[str, Any], service_ids: Sequence[str]
) -> None:
    """Change an incident and what it touches."""
    where = status_incident.c.id == incident_id
    connection.execute(update(status_incident).where(where).values(**values))
    of_incident = status_incident_service.c.incident_id == incident_id
    connection.execute(delete(status_incident_service).where(of_incident))
    _add_services(connection, incident_id, service_ids)
    announce(connection, StatusChanged())


def touch(connection: Connection, incident_id: str, *, now_ms: int) -> None:
    """Note that the incident has changed."""
    where = status_incident.c.id == incident_id
    connection.execute(update(status_incident).where(where).values(updated_ms=now_ms))
    announce(connection, StatusChanged())


def remove(connection: Connection, incident_id: str) -> None:
    """Forget an incident and all that was said of it."""
    connection.execute(delete(status_incident).where(status_incident.c.id == incident_id))
    announce(connection, StatusChanged())


def find_newest_ms(connection: Connection, incident_id: str) -> int:
    """When the newest update of the incident was made. 0: it has none."""
    newest = select(func.max(status_incident_update.c.created_ms)).where(
        status_incident_update.c.incident_id == incident_id
    )
    return connection.execute(newest).scalar() or 0


def add_update(connection: Connection, values: Mapping[str, Any]) -> None:
    """Store a new update."""
    connection.execute(insert(status_incident_update).values(**values))
    announce(connection, StatusChanged())


def change_update(connection: Connection, update_id: str, values: Mapping[str, Any]) -> None:
    """Change an update."""
    where = status_incident_update.c.id == update_id
    connection.execute(update(status_incident_update).where(where).values(**values))
    announce(connection, StatusChanged())


def remove_update(connection: Connection, update_id: str) -> None:
    """Forget an update; its mails that wait go with it."""
    where = status_incident_update.c.id == update_id
    connection.execute(delete(status_incident_update).where(where))
    announce(connection, StatusChanged())


def find_of_updates(connection: Connection, update_ids: Sequence[str]) -> dict[str, Incident]:
    """The incidents of updates, by the updates' ids."""
    query = select(status_incident_update.c.id, status_incident_update.c.incident_id).where(
        status_incident_update.c.id.in_(update_ids)
    )
    incident_of = {row.id: row.incident_id for row in connection.execute(query)}
    found = _read_all(connection, _ALL.where(status_incident.c.id.in_(set(incident_of.values()))))
    incidents = {one.id: one for one in found}
    return {update_id: incidents[one] for update_id, one in incident_of.items()}


def _add_services(connection: Connection, incident_id: str, service_ids: Sequence[str]) -> None:
    rows = [
        {"incident_id": incident_id, "service_id": one, "position": position}
        for position, one in enumerate(service_ids)
    ]
    connection.execute(insert(status_incident_service), rows)


def _read_all(connection: Connection, query: Select[Any]) -> tuple[Incident, ...]:
    rows = connection.execute(query).all()
    ids = [row.id for row in rows]
    services, updates = defaultdict(list), defaultdict(list)
    for row in connection.execute(_SERVICES.where(status_incident_service.c.incident_id.in_(ids))):
        services[row.incident_id].append(row.service_id)
    table = status_incident_update.c
    by_time = (table.public_ms, table.created_ms, table.id)
    for row in connection.execute(_UPDATES.where(table.incident_id.in_(ids)).order_by(*by_time)):
        updates[row.incident_id].append(_read_update(row))
    return tuple(_read(row, services[row.id], updates[row.id]) for row in rows)


def _read(row: Row[Any], services: Sequence[str], updates: Sequence[IncidentUpdate]) -> Incident:
    return Incident(
        id=row.id,
        account_id=row.account_id,
        name=row.name,
        severity=Severity(row.severity),
        check_id=row.check_id,
        notifies=row.notifies,
        created_ms=row.created_ms,
        updated_ms=row.updated_ms,
        service_ids=tuple(services),
        updates=tuple(updates),
    )


def _read_update(row: Row[Any]) -> IncidentUpdate:
    return IncidentUpdate(
        id=row.id,
        incident_id=row.incident_id,
        status=IncidentStatus(row.status),
        description=row.description,
        public_ms=row.public_ms,
        notifies=row.notifies,
        created_ms=row.created_ms,
    )
