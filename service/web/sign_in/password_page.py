"""`/password/…`: a user chooses a password, by a link that works once."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.http.auth import refuse_early
from service.http.dependencies import Backend
from service.http.errors import InvalidError, NotFoundError
from service.http.rate_limits.rate_limit import RateClass, place_of
from service.sign_in import actions as sign_in
from service.sign_in.model import NewSession
from service.users.model import LEAST_PASSWORD_LETTERS, UserRow
from service.users.rules import require_password
from service.web.form_data import read_form
from service.web.page_routing import Pages
from service.web.rendering import Renderer, html_response, theme_of
from service.web.sign_in.admission import admit
from service.web.sign_in.known_browsers import remember_browser

_UNPROCESSABLE: Final = 422
_NOT_GOOD: Final = (
    "This link was used before, is older than a day, or its user is disabled. Ask for a new one:"
    " whoever may write can make it in the settings."
)
_FRESH: Final[Mapping[str, str]] = {"cache-control": "no-store"}


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """Choosing a password."""
    return (
        pages.open("/password/{secret}", _show),
        pages.open("/password/{secret}", _choose, methods=("POST",)),
    )


async def _show(request: Request, backend: Backend, renderer: Renderer) -> Response:
    return _page(request, renderer, await _find_user(request, backend))


async def _choose(request: Request, backend: Backend, renderer: Renderer) -> Response:
    user = await _find_user(request, backend)
    password = (await read_form(request)).secret("password")
    try:
        require_password(password)
    except InvalidError as wrong:
        return _page(request, renderer, user, problem=wrong.message, status=_UNPROCESSABLE)
    hashed = await backend.passwords.hash(password)
    secret = str(request.path_params["secret"])

    def begin(connection: Connection, now_ms: int) -> NewSession | None:
        return sign_in.choose_password(connection, backend.pepper, secret, hashed, now_ms=now_ms)

    entered = await admit(request, backend, renderer, begin, "/")
    if entered is None:
        raise NotFoundError(_NOT_GOOD)
    remember_browser(request, entered, backend, user_id=user.id, stored=hashed)
    return entered


async def _find_user(request: Request, backend: Backend) -> UserRow:
    secret = str(request.path_params["secret"])

    def query(connection: Connection) -> UserRow | None:
        now_ms = backend.clock.now_ms(connection)
        return sign_in.find_password_link(connection, backend.pepper, secret, now_ms=now_ms)

    user = await backend.database.read(query)
    if user is None:
        refuse_early(backend.limits.wait_s(RateClass.REFUSED, place_of(request)))
        raise NotFoundError(_NOT_GOOD)
    return user


def _page(
    request: Request, renderer: Renderer, user: UserRow, *, problem: str = "", status: int = 200
) -> Response:
    html = renderer.render(
        "password.html",
        user=user,
        path=request.url.path,
        least=LEAST_PASSWORD_LETTERS,
        problem=problem,
        theme=theme_of(request),
    )
    return html_response(request, html, status=status, headers=_FRESH)
