"""Letting a browser in."""

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.audit import audit
from service.audit.model import Entry
from service.http.dependencies import Backend
from service.http.rate_limits.rate_limit import address_of
from service.sign_in import actions as sign_in
from service.sign_in.model import LONGEST_SESSION_MS, NewSession
from service.web.cookies import SESSION_COOKIE, PrivateCookies
from service.web.rendering import Renderer

_SEE_OTHER: Final = 303

Begin = Callable[[Connection, int], NewSession | None]
"""Starts a session at this time. None: whoever asks is not let in."""


async def admit(
    request: Request, backend: Backend, renderer: Renderer, begin: Begin, path: str
) -> Response | None:
    """Start a session, note it, and go to this path. None: there is no session.

    A session that the browser had before ends: whoever knew its secret knows that of none.
    """
    cookies = PrivateCookies(backend.public_url)
    before = cookies.read(request, SESSION_COOKIE)

    def change(connection: Connection) -> NewSession | None:
        now_ms = backend.clock.now_ms(connection)
        session = begin(connection, now_ms)
        if session is None:
            return None
        if before:
            sign_in.end_session(connection, backend.pepper, before)
        _note(connection, request, backend, session, now_ms)
        return session

    session = await backend.database.write(change)
    if session is None:
        return None
    answer = RedirectResponse(renderer.url(path), _SEE_OTHER)
    cookies.set(request, answer, SESSION_COOKIE, session.raw, max_age_s=LONGEST_SESSION_MS // 1000)
    return answer


def _note(
    connection: Connection, request: Request, backend: Backend, session: NewSession, now_ms: int
) -> None:
    visitor = sign_in.find_visitor(connection, backend.pepper, session.raw, now_ms=now_ms)
    if visitor is None:
        return  # its key ended this moment
    entry = Entry(
        account_id=visitor.caller.account_id,
        key_id=visitor.caller.key_id,
        user_id=visitor.caller.user_id,
        operation="sign-in",
        resource="sessions",
        resource_id=None,
        fields=(),
        address=address_of(request),
        at_ms=now_ms,
    )
    audit.record(connection, entry)


def local_path(path: str) -> str:
    """A path of this service; whatever else was sent becomes the first page."""
    try:
        parts = urlsplit(path)
    except ValueError:
        return "/"
    is_local = (
        not parts.scheme and not parts.netloc and path.startswith("/") and path[1:2] not in "/\\"
    )
    return path if is_local and path.isprintable() else "/"
