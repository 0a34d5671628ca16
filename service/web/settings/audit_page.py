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
from service.users import actions as users
from service.users.model import UserRow
from service.web.page_routing import Pages
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
    now_ms: int


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The audit log."""
    return (pages.show("/settings/audit", _show),)


async def _show(visit: Visit) -> Response:
    query = visit.request.query_params
    who, resource, before = query.get("who", ""), query.get("what", ""), query.get("before", "")
    kind, _, who_id = who.partition(":")
    wanted = Wanted(
        account_id=visit.account_id,
        limit=_PER_PAGE + 1,
        key_id=who_id if kind == "key" else None,
        user_id=who_id if kind == "user" else None,
        resource=resource or None,
        before=int(before)
        if before.isascii() and before.isdecimal() and len(before) < 19
        else None,
    )

    def read(connection: Connection) -> _Page:
        return _Page(
            audit.list_page(connection, wanted),
            audit.list_resources(connection, visit.account_id),
            accounts.list_keys(connection, account_id=visit.account_id),
            users.list_users(connection, account_id=visit.account_id),
            visit.now_ms(connection),
        )

    found = await visit.read(read)
    names = _name_all(found)
    shown = found.entries[:_PER_PAGE]
    filters = {name: value for name, value in (("who", who), ("what", resource)) if value}
    older = None
    if len(found.entries) > _PER_PAGE:
        older = "/settings/audit?" + urlencode({**filters, "before": shown[-1].number})
    return visit.page(
        "settings_audit.html",
        rows=[(numbered.entry, names.get(_who(numbered), _nobody(numbered))) for numbered in shown],
        people=[(key, names[key]) for key in sorted(names, key=lambda one: names[one].casefold())],
        resources=found.resources,
        who=who,
        what=resource,
        is_first=wanted.before is None,
        is_filtered=bool(filters),
        older=older,
        kept_days=KEPT_MS // _MS_PER_DAY,
        now_ms=found.now_ms,
    )


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
