"""SQL that finds the names of what entries are about: one query per kind."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause, Integer, literal, select
from sqlalchemy.types import BigInteger

from service.audit.model import Kind, Thing
from service.db.tables.alert_channels import alert_channel
from service.db.tables.alerting import maintenance_window
from service.db.tables.checks import check_, check_group
from service.db.tables.job_inputs import client_certificate, snippet
from service.db.tables.locations import private_location
from service.db.tables.status_pages import (
    status_incident,
    status_incident_update,
    status_page,
    status_service,
)

_MOST: Final = 1 << 63
_NAMES: Final[Mapping[Kind, tuple[FromClause, ColumnElement[Any]]]] = {
    Kind.CHECK: (check_, check_.c.name),
    Kind.GROUP: (check_group, check_group.c.name),
    Kind.LOCATION: (private_location, private_location.c.name),
    Kind.CHANNEL: (alert_channel, literal("")),
    Kind.WINDOW: (maintenance_window, maintenance_window.c.name),
    Kind.SNIPPET: (snippet, snippet.c.name),
    Kind.CERTIFICATE: (client_certificate, client_certificate.c.host),
    Kind.STATUS_PAGE: (status_page, status_page.c.name),
    Kind.SERVICE: (status_service, status_service.c.name),
    Kind.INCIDENT: (status_incident, status_incident.c.name),
}
"""Where things of a kind are stored, and what is their name."""
_UPDATES: Final = status_incident_update.join(
    status_incident, status_incident.c.id == status_incident_update.c.incident_id
)


def find_things(
    connection: Connection, account_id: str, wanted: Mapping[Kind, Collection[str]]
) -> Iterator[Thing]:
    """Find what there is of some things of an account, by kind and id."""
    for kind, ids in wanted.items():
        if kind is Kind.UPDATE:
            yield from _find_updates(connection, account_id, ids)
        else:
            yield from _find(connection, account_id, kind, ids)


def _find(
    connection: Connection, account_id: str, kind: Kind, ids: Collection[str]
) -> Iterator[Thing]:
    source, name = _NAMES[kind]
    is_number = isinstance(source.c.id.type, (BigInteger, Integer))
    known = [number for one in ids if (number := _read_number(one))] if is_number else list(ids)
    if not known:
        return
    query = select(source.c.id, name).where(
        source.c.account_id == account_id, source.c.id.in_(known)
    )
    for found_id, found_name in connection.execute(query):
        yield Thing(kind, str(found_id), found_name, str(found_id))


def _find_updates(connection: Connection, account_id: str, ids: Collection[str]) -> Iterator[Thing]:
    query = (
        select(status_incident_update.c.id, status_incident.c.name, status_incident.c.id)
        .select_from(_UPDATES)
        .where(
            status_incident.c.account_id == account_id,
            status_incident_update.c.id.in_(list(ids)),
        )
    )
    for update_id, name, incident_id in connection.execute(query):
        yield Thing(Kind.UPDATE, update_id, name, incident_id)


def _read_number(text: str) -> int | None:
    """An id that is counted. None: it is none."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    return int(text) if is_number and 0 < int(text) < _MOST else None
