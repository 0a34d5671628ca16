"""`/settings/audit`: who changed what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.accounts import actions as accounts
from service.accounts.model import KeyRow
from service.audit import audit
from service.audit.audit import KEPT_MS, NumberedEntry, Wanted
from service.audit.model import Entry
from service.users import actions as users
from service.users.model import UserRow
from service.web.page_routing import Pages
from service.web.settings.audit_people import key_of_person, name_people
from service.web.settings.audit_things import NamedThing, find_named
from service.web.settings.audit_words import (
    ACTIONS,
    describe_operation,
    name_fields,
    name_kind,
)
from service.web.visit import Visit

_PER_PAGE: Final = 50
_MS_PER_DAY: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class _Page:
    entries: Sequence[NumberedEntry]
    """One more than is shown where there are more."""
    resources: Sequence[str]
    keys: Sequence[KeyRow]
    users: Sequence[UserRow]
    things: Mapping[tuple[str, str], NamedThing]
    """What the entries are about that is still there, by resource and id."""
    now_ms: int


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The audit log."""
    return (pages.show("/settings/audit", _show),)


async def _show(visit: Visit) -> Response:
    query = visit.request.query_params
    who, resource = query.get("who", ""), query.get("what", "")
    done = query.get("done", "") if query.get("done") in ACTIONS else ""
    kind, _, who_id = who.partition(":")
    wanted = Wanted(
        account_id=visit.account_id,
        limit=_PER_PAGE + 1,
        key_id=who_id if kind == "key" else None,
        user_id=who_id if kind == "user" else None,
        resource=resource or None,
        operations=ACTIONS[done][1] if done else (),
        before=_number(query.get("before", "")),
    )

    def read(connection: Connection) -> _Page:
        entries = audit.list_page(connection, wanted)
        return _Page(
            entries,
            audit.list_resources(connection, visit.account_id),
            accounts.list_keys(connection, account_id=visit.account_id),
            users.list_users(connection, account_id=visit.account_id),
            find_named(connection, visit.account_id, (one.entry for one in entries)),
            visit.now_ms(connection),
        )

    found = await visit.read(read)
    names = _name_all(found)
    shown = found.entries[:_PER_PAGE]
    chosen = (("who", who), ("what", resource), ("done", done))
    filters = {name: value for name, value in chosen if value}
    older = None
    if len(found.entries) > _PER_PAGE:
        older = "/settings/audit?" + urlencode({**filters, "before": shown[-1].number})
    return visit.page(
        "settings_audit.html",
        rows=[_describe(numbered, found, names) for numbered in shown],
        people=[(key, names[key]) for key in sorted(names, key=lambda one: names[one].casefold())],
        kinds=sorted(((one, name_kind(one)) for one in found.resources), key=lambda one: one[1]),
        actions=[(name, words) for name, (words, _) in ACTIONS.items()],
        who=who,
        what=resource,
        done=done,
        newest="/settings/audit" + (f"?{urlencode(filters)}" if filters else ""),
        is_first=wanted.before is None,
        is_filtered=bool(filters),
        older=older,
        kept_days=KEPT_MS // _MS_PER_DAY,
        now_ms=found.now_ms,
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _describe(
    numbered: NumberedEntry, found: _Page, names: Mapping[str, str]
) -> Mapping[str, object]:
    """An entry as a row."""
    entry = numbered.entry
    resource_id = entry.resource_id or ""
    thing = found.things.get((entry.resource, resource_id)) or _find_person(entry, names)
    return {
        "at_ms": entry.at_ms,
        "who": names.get(key_of_person(entry.key_id, entry.user_id), _nobody(numbered)),
        "address": entry.address or "",
        "operation": entry.operation,
        "done": describe_operation(entry.operation),
        "name": thing.name if thing else "",
        "path": thing.path if thing else "",
        "id": resource_id,
        "fields": name_fields(entry.fields),
    }


def _find_person(entry: Entry, names: Mapping[str, str]) -> NamedThing | None:
    """The user or the API key that an entry is about. None: neither is, or it is gone."""
    if entry.resource == "users" and (name := names.get(f"user:{entry.resource_id}")):
        return NamedThing(name, f"/settings/users/{entry.resource_id}")
    if entry.resource == "keys" and (name := names.get(f"key:{entry.resource_id}")):
        return NamedThing(name, "")
    return None


def _name_all(found: _Page) -> Mapping[str, str]:
    """Who can be in the log, by how the address of the page has it."""
    return name_people(found.keys, found.users)


def _nobody(numbered: NumberedEntry) -> str:
    """Whoever has no key is somebody at the machine, which has no address, or followed a link."""
    return "trigger link" if numbered.entry.address else "command line"
