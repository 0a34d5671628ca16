"""`/sign-in`: with an API key, or by a link that works once."""

from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from service.http.auth import refuse_early
from service.http.dependencies import Backend
from service.http.rate_limit import RateClass, place_of
from service.sign_in import actions as sign_in
from service.sign_in.model import LONGEST_SESSION_MS, NewSession
from service.web.form_data import read_form
from service.web.page_routing import SESSION_COOKIE, Pages
from service.web.rendering import Renderer, html_response, theme_of
from service.web.visit import Visit

_SEE_OTHER: Final = 303
_UNPROCESSABLE: Final = 422
_WRONG_KEY: Final = "No API key looks like this, or it has ended. A key begins with cu_ or sv_."
_USED_LINK: Final = (
    "This sign-in link was used before, or is older than a day. Sign in with an API key, or make a"
    " new link where the service runs: picket service sign-in"
)


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """Signing in and out."""
    return (
        pages.open("/sign-in", _show),
        pages.open("/sign-in", _sign_in, methods=("POST",)),
        pages.open("/sign-in/{secret}", _redeem),
        pages.change("/sign-out", _sign_out),
    )


async def _show(request: Request, _backend: Backend, renderer: Renderer) -> Response:
    return _page(request, renderer, problem="")


async def _sign_in(request: Request, backend: Backend, renderer: Renderer) -> Response:
    form = await read_form(request)
    caller = await backend.keys.caller(form.text("key"))
    if caller is None:
        refuse_early(backend.limits.wait_s(RateClass.REFUSED, place_of(request)))
        return _page(request, renderer, problem=_WRONG_KEY, status=_UNPROCESSABLE)

    def change(connection: Connection) -> NewSession:
        now_ms = backend.clock.now_ms(connection)
        return sign_in.start_session(connection, backend.pepper, caller.key_id, now_ms=now_ms)

    session = await backend.database.write(change)
    return _enter(request, renderer, session, _local(form.text("next")))


async def _redeem(request: Request, backend: Backend, renderer: Renderer) -> Response:
    secret = str(request.path_params["secret"])

    def change(connection: Connection) -> NewSession | None:
        now_ms = backend.clock.now_ms(connection)
        return sign_in.redeem_link(connection, backend.pepper, secret, now_ms=now_ms)

    session = await backend.database.write(change)
    if session is None:
        refuse_early(backend.limits.wait_s(RateClass.REFUSED, place_of(request)))
        return _page(request, renderer, problem=_USED_LINK, status=_UNPROCESSABLE)
    return _enter(request, renderer, session, "/")


async def _sign_out(visit: Visit) -> Response:
    raw, pepper = visit.request.cookies.get(SESSION_COOKIE, ""), visit.backend.pepper
    await visit.backend.database.write(lambda c: sign_in.end_session(c, pepper, raw))
    answer = visit.go("/sign-in")
    answer.delete_cookie(SESSION_COOKIE)
    return answer


def _enter(request: Request, renderer: Renderer, session: NewSession, path: str) -> Response:
    answer = RedirectResponse(renderer.url(path), _SEE_OTHER)
    answer.set_cookie(
        SESSION_COOKIE,
        session.raw,
        max_age=LONGEST_SESSION_MS // 1000,
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="lax",
    )
    return answer


def _page(request: Request, renderer: Renderer, *, problem: str, status: int = 200) -> Response:
    html = renderer.render(
        "sign_in.html",
        problem=problem,
        next=_local(request.query_params.get("next", "")),
        theme=theme_of(request),
    )
    return html_response(request, html, status=status)


def _local(path: str) -> str:
    """A path of this service; whatever else was sent becomes the first page."""
    parts = urlsplit(path)
    is_local = (
        not parts.scheme and not parts.netloc and path.startswith("/") and path[1:2] not in "/\\"
    )
    return path if is_local and path.isprintable() else "/"
