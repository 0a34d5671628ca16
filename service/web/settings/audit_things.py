"""What entries of the audit log are about: names, and where their pages are."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from service.alert_channels import actions as alert_channels
from service.audit import audit
from service.audit.model import Entry, Kind, Thing
from service.web.alerts.alert_words import name_channel

_KINDS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "alert-channels": (Kind.CHANNEL,),
    "check-groups": (Kind.GROUP,),
    "checks": (Kind.CHECK,),
    "client-certificates": (Kind.CERTIFICATE,),
    "maintenance-windows": (Kind.WINDOW,),
    "private-locations": (Kind.LOCATION,),
    "snippets": (Kind.SNIPPET,),
    "status-pages": (Kind.STATUS_PAGE, Kind.SERVICE, Kind.INCIDENT, Kind.UPDATE),
    "triggers": (Kind.CHECK, Kind.GROUP),
}
"""What an id means, by the path of the operation; no two of a row have ids in common."""
_PAGES: Final[Mapping[Kind, str]] = {
    Kind.CHECK: "/checks/{id}",
    Kind.GROUP: "/groups/{id}",
    Kind.LOCATION: "/locations/{id}",
    Kind.CHANNEL: "/channels/{id}/edit",
    Kind.WINDOW: "/maintenance/{id}/edit",
    Kind.SNIPPET: "/settings/snippets/{id}/edit",
    Kind.CERTIFICATE: "/settings/certificates",
    Kind.STATUS_PAGE: "/status-pages/{id}",
    Kind.SERVICE: "/services/{id}/edit",
    Kind.INCIDENT: "/incidents/{id}",
    Kind.UPDATE: "/incidents/{id}",
}


@dataclass(frozen=True, slots=True)
class NamedThing:
    """What an entry is about, as a row shows it."""

    name: str
    path: str


def find_named(
    connection: Connection, account_id: str, entries: Iterable[Entry]
) -> Mapping[tuple[str, str], NamedThing]:
    """Find what the entries of a page are about that is still there, by resource and id."""
    wanted: dict[Kind, set[str]] = {}
    about = [(one.resource, one.resource_id) for one in entries if one.resource_id]
    for resource, resource_id in about:
        for kind in _KINDS.get(resource, ()):
            wanted.setdefault(kind, set()).add(_own_id(resource_id))
    known = name_things(connection, account_id, wanted)
    return {
        (resource, resource_id): thing
        for resource, resource_id in about
        for kind in _KINDS.get(resource, ())
        if (thing := known.get((kind, _own_id(resource_id))))
    }


def name_things(
    connection: Connection, account_id: str, wanted: Mapping[Kind, Collection[str]]
) -> Mapping[tuple[Kind, str], NamedThing]:
    """Find what there is of things of an account, by kind and id."""
    things = list(audit.find_things(connection, account_id, wanted))
    return {
        (one.kind, one.id): NamedThing(one.name, _PAGES[one.kind].replace("{id}", one.page_id))
        for one in (*things, *_name_channels(connection, account_id, things))
    }


def _own_id(resource_id: str) -> str:
    """The id of a location, where an entry has that of one of its keys as well."""
    return resource_id.partition("/")[0]


def _name_channels(
    connection: Connection, account_id: str, things: Iterable[Thing]
) -> Iterable[Thing]:
    ids = [int(one.id) for one in things if one.kind is Kind.CHANNEL]
    for row in alert_channels.find_some(connection, account_id, ids):
        name = name_channel(row.type, row.id, row.config)
        yield Thing(Kind.CHANNEL, str(row.id), name, str(row.id))
