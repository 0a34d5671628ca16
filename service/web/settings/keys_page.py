"""`/settings/keys`: API keys, which are made, rotated and revoked here."""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.accounts import actions as accounts
from service.accounts.actions import KeyRequest
from service.accounts.keys import SERVICE_PREFIX, NewKey
from service.accounts.model import KeyRow, Role
from service.http.errors import NotFoundError
from service.web.cookies import SESSION_COOKIE
from service.web.form_data import read_form
from service.web.page_routing import Pages
from service.web.settings.recorded_change import change_recorded, require_writer
from service.web.visit import Visit

_MOST_NAME_LETTERS: Final = 200
_OF: Final = "account"
"""Whose key it is that this page shows once."""


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list, a new one, another one in the place of one, and the end of one."""
    return (
        pages.show("/settings/keys", _show),
        pages.change("/settings/keys", _create),
        pages.change("/settings/keys/{keyId}/rotate", _rotate),
        pages.show("/settings/keys/{keyId}/revoke", _ask),
        pages.change("/settings/keys/{keyId}/revoke", _revoke),
    )


async def _create(visit: Visit) -> Response:
    form = await read_form(visit.request)
    wish = KeyRequest(
        name=form.text("name")[:_MOST_NAME_LETTERS],
        role=Role.READ_ONLY if form.text("role") == Role.READ_ONLY else Role.READ_WRITE,
        of_user=form.text("kind") != "program",
    )

    return await _make(visit, lambda _connection: wish)


async def _rotate(visit: Visit) -> Response:
    """Make a key like another one, which goes on until it is revoked."""

    def wish(connection: Connection) -> KeyRequest:
        old = _find(connection, visit)
        of_user = not old.masked.startswith(SERVICE_PREFIX)
        return KeyRequest(name=old.name, role=old.role, of_user=of_user)

    return await _make(visit, wish)


async def _make(visit: Visit, wish: Callable[[Connection], KeyRequest]) -> Response:
    def act(connection: Connection, now_ms: int) -> tuple[str, NewKey]:
        return accounts.create_key(
            connection,
            visit.backend.pepper,
            visit.account_id,
            wish=wish(connection),
            now_ms=now_ms,
        )

    key = await change_recorded(visit, "keys create", act, fields=("name", "role"))
    return visit.go_with_key("/settings/keys", key.raw, of=_OF)


async def _ask(visit: Visit) -> Response:
    require_writer(visit)
    key = await visit.read(lambda c: _find(c, visit))
    return visit.page("settings_key_revoke.html", key=key, is_own=_is_own(visit, key))


async def _revoke(visit: Visit) -> Response:
    def act(connection: Connection, now_ms: int) -> tuple[str, KeyRow]:
        key = _find(connection, visit)
        accounts.end_key(connection, key.id, account_id=visit.account_id, now_ms=now_ms)
        return key.id, key

    key = await change_recorded(visit, "keys revoke", act)
    if not _is_own(visit, key):
        return visit.go("/settings/keys")
    answer = visit.go("/sign-in")
    visit.cookies.delete(visit.request, answer, SESSION_COOKIE)
    return answer


def _find(connection: Connection, visit: Visit) -> KeyRow:
    key = accounts.find_good_key(connection, str(visit.request.path_params["keyId"]))
    if key is None or key.account_id != visit.account_id:
        raise NotFoundError("There is no such API key, or it was revoked.")
    return key


def _is_own(visit: Visit, key: KeyRow) -> bool:
    return visit.visitor.caller.key_id == key.id


async def _show(visit: Visit) -> Response:
    def query(connection: Connection) -> tuple[tuple[KeyRow, ...], int]:
        keys = accounts.list_keys(connection, account_id=visit.account_id)
        return keys, visit.now_ms(connection)

    keys, now_ms = await visit.read(query)
    return visit.page_with_key(
        "settings_keys.html",
        of=_OF,
        good=[key for key in reversed(keys) if key.revoked_ms is None],
        revoked=[key for key in reversed(keys) if key.revoked_ms is not None],
        now_ms=now_ms,
        own_id=visit.visitor.caller.key_id,
    )
