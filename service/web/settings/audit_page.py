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
from service.checks import actions as checks
from service.groups import actions as groups
from service.locations import actions as locations
from service.users import actions as users
from service.users.model import UserRow
from service.web.page_routing import Pages
from service.web.settings.audit_words import (
    ACTIONS,
    describe_operation,
    find_path,
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
    things: Mapping[tuple[str, str], str]
    """The names of checks, groups and locations, by kind and id."""
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
        return _Page(
            audit.list_page(connection, wanted),
            audit.list_resources(connection, visit.account_id),
            accounts.list_keys(connection, account_id=visit.account_id),
            users.list_users(connection, account_id=visit.account_id),
            _name_things(connection, visit.account_id),
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


def _name_things(connection: Connection, account_id: str) -> Mapping[tuple[str, str], str]:
    named = {("checks", one.id): one.name for one in checks.list_names(connection, account_id)}
    places = locations.list_all(connection, account_id)
    named |= {("private-locations", one.id): one.name for one in places}
    known_groups = groups.list_by_id(connection, account_id).values()
    return named | {("check-groups", str(one.id)): one.name for one in known_groups}


def _describe(
    numbered: NumberedEntry, found: _Page, names: Mapping[str, str]
) -> Mapping[str, object]:
    """An entry as a row."""
    entry = numbered.entry
    resource_id = entry.resource_id or ""
    name = found.things.get((entry.resource, resource_id), "")
    if not name and entry.resource in ("users", "keys"):
        prefix = "user" if entry.resource == "users" else "key"
        name = names.get(f"{prefix}:{resource_id}", "")
    return {
        "at_ms": entry.at_ms,
        "who": names.get(_who(numbered), _nobody(numbered)),
        "address": entry.address or "",
        "operation": entry.operation,
        "done": describe_operation(entry.operation),
        "name": name,
        "path": find_path(entry.resource, resource_id) if name else "",
        "id": resource_id,
        "fields": name_fields(entry.fields),
    }


def _name_all(found: _Page) -> Mapping[str, str]:
    """Who can be in the log, by how the address of the page has it."""
    keys = {f"key:{key.id}": f"{key.name or 'API key'} ({key.masked})" for key in found.keys}
    return {**keys, **{f"user:{user.id}": user.shown_name for user in found.users}}


def _who(numbered: NumberedEntry) -> str:
    entry = numbered.entry
    return f"user:{entry.user_id}" if entry.user_id else f"key:{entry.key_id}"


def _nobody(numbered: NumberedEntry) -> str:
    """Whoever has no key is somebody at the machine, which has no address, or followed a link."""
    return "trigger link" if numbered.entry.address else "command line"
