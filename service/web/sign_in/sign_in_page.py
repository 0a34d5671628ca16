"""`/sign-in`: with a password, with an API key, or by a link that works once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import structlog
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from service.http.auth import refuse_early
from service.http.dependencies import Backend
from service.http.errors import TooManyError, UnauthorizedError
from service.http.rate_limits.rate_limit import RateClass, address_of, place_of
from service.sign_in import actions as sign_in
from service.sign_in.model import NewSession, Principal
from service.users import actions as users
from service.users.rules import fold_email
from service.web.cookies import SESSION_COOKIE
from service.web.form_data import FormData, read_form
from service.web.page_routing import Pages
from service.web.rendering import Renderer, html_response, theme_of
from service.web.sign_in.admission import admit, local_path
from service.web.sign_in.known_browsers import (
    is_known_browser,
    limit_stranger,
    remember_browser,
)
from service.web.visit import Visit

log = structlog.get_logger()

_MOST_EMAIL_LETTERS: Final = 254
_WRONG_KEY: Final = "No API key looks like this, or it has ended. A key begins with cu_ or sv_."
_WRONG_LOGIN: Final = "The e-mail address or the password is wrong, or the user is disabled."
_USED_LINK: Final = (
    "This sign-in link was used before, or is older than a day. Make a new one where the service"
    " runs: picket service sign-in"
)
_FRESH: Final[Mapping[str, str]] = {"cache-control": "no-store"}


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """Signing in and out."""
    return (
        pages.open("/sign-in", _show),
        pages.open("/sign-in", _sign_in, methods=("POST",)),
        pages.open("/sign-in/links", _make_link, methods=("POST",)),
        pages.open("/sign-in/{secret}", _follow_link),
        pages.open("/sign-in/{secret}", _redeem_link, methods=("POST",)),
        pages.change("/sign-out", _sign_out),
        pages.change("/sign-out/everywhere", _sign_out_everywhere),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why nobody was signed in."""

    problem: str
    by_key: bool = False
    """Whether it is said beside the field of the API key."""
    status: int = 422
    headers: Mapping[str, str] = field(default_factory=dict)


async def _show(request: Request, backend: Backend, renderer: Renderer) -> Response:
    form = FormData([("next", request.query_params.get("next", ""))])
    return await show_sign_in(request, backend, renderer, form)


async def _sign_in(request: Request, backend: Backend, renderer: Renderer) -> Response:
    form = await read_form(request)
    by_key = "key" in form
    try:
        entered = await (_enter_by_key if by_key else _enter_by_password)(
            request, backend, renderer, form
        )
        if entered is not None:
            return entered
        refusal = Refusal(problem=_WRONG_KEY if by_key else _WRONG_LOGIN, by_key=by_key)
    except TooManyError as early:
        refusal = Refusal(
            problem=early.message, by_key=by_key, status=int(early.status), headers=early.headers
        )
    log.info(
        "sign_in.refused",
        by="key" if by_key else "password",
        status=refusal.status,
        address=address_of(request),
    )
    return await show_sign_in(request, backend, renderer, form, refusal)


async def _enter_by_key(
    request: Request, backend: Backend, renderer: Renderer, form: FormData
) -> Response | None:
    caller = await backend.keys.caller(form.text("key"))
    if caller is None:
        refuse_early(backend.limits.wait_s(RateClass.REFUSED, place_of(request)))
        return None
    who = Principal.of_caller(caller)

    def begin(connection: Connection, now_ms: int) -> NewSession:
        return sign_in.start_session(connection, backend.pepper, who, now_ms=now_ms)

    return await admit(request, backend, renderer, begin, local_path(form.text("next")))


async def _enter_by_password(
    request: Request, backend: Backend, renderer: Renderer, form: FormData
) -> Response | None:
    """Check a password; whatever is wrong takes as long, so that it tells nothing."""
    email, password = form.text("email")[:_MOST_EMAIL_LETTERS], form.secret("password")
    found = await backend.database.read(lambda c: users.find_by_email(c, email))
    is_known = is_known_browser(request, backend, found)
    if found is not None and is_known:
        known = RateClass.SIGN_INS_OF_KNOWN, found.user.id
        refuse_early(await backend.sign_in_limits.wait_s(known))
    else:
        await limit_stranger(request, backend, found, email_key=fold_email(email))
    is_enabled = found is not None and found.user.disabled_ms is None
    stored = found.password_hash if found is not None and is_enabled else None
    verdict = await backend.passwords.verify(stored, password, by_stranger=not is_known)
    if found is None or stored is None or not verdict.is_right:
        return None
    user_id = found.user.id

    def begin(connection: Connection, now_ms: int) -> NewSession | None:
        now = users.find_credentials(connection, user_id)
        if now is None or now.user.disabled_ms is not None or now.password_hash != stored:
            return None  # while it was checked
        if verdict.renewed is not None:
            users.renew_hash(connection, user_id, before=stored, now=verdict.renewed)
        who = Principal(user_id=user_id)
        return sign_in.start_session(connection, backend.pepper, who, now_ms=now_ms)

    entered = await admit(request, backend, renderer, begin, local_path(form.text("next")))
    if entered is not None:
        kept = verdict.renewed or stored
        remember_browser(request, entered, backend, user_id=user_id, stored=kept)
    return entered


async def _follow_link(request: Request, backend: Backend, renderer: Renderer) -> Response:
    """Show a button, and change nothing: scanners of mails and previews of chats follow links.

    Nor can a link on another site sign somebody in as somebody else: a form from elsewhere is
    refused.
    """
    if not await _is_good(request, backend):
        return await _refuse_link(request, backend, renderer)
    html = renderer.render("sign_in_link.html", path=request.url.path, theme=theme_of(request))
    return html_response(request, html, headers=_FRESH)


async def _redeem_link(request: Request, backend: Backend, renderer: Renderer) -> Response:
    secret = str(request.path_params["secret"])

    def begin(connection: Connection, now_ms: int) -> NewSession | None:
        return sign_in.redeem_link(connection, backend.pepper, secret, now_ms=now_ms)

    # Guesses are read, and take no turn of what writes.
    if await _is_good(request, backend):
        entered = await admit(request, backend, renderer, begin, "/")
        if entered is not None:
            return entered
    return await _refuse_link(request, backend, renderer)


async def _is_good(request: Request, backend: Backend) -> bool:
    secret = str(request.path_params["secret"])

    def look(connection: Connection) -> bool:
        now_ms = backend.clock.now_ms(connection)
        return sign_in.is_link(connection, backend.pepper, secret, now_ms=now_ms)

    return await backend.database.read(look)


async def _refuse_link(request: Request, backend: Backend, renderer: Renderer) -> Response:
    refuse_early(backend.limits.wait_s(RateClass.REFUSED, place_of(request)))
    refusal = Refusal(problem=_USED_LINK)
    return await show_sign_in(request, backend, renderer, FormData([]), refusal)


async def _make_link(request: Request, backend: Backend, _renderer: Renderer) -> Response:
    """Exchange an API key for a link, which a person can open: what `picket up` prints."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    caller = await backend.keys.caller(key.strip()) if scheme.lower() == "bearer" else None
    if caller is None:
        refuse_early(backend.limits.wait_s(RateClass.REFUSED, place_of(request)))
        raise UnauthorizedError
    create = partial(sign_in.create_link, pepper=backend.pepper, who=Principal.of_caller(caller))
    raw = await backend.database.write(lambda c: create(c, now_ms=backend.clock.now_ms(c)))
    url = f"{backend.base_url(request)}/sign-in/{raw}"
    return JSONResponse({"url": url}, headers={**_FRESH})


async def _sign_out(visit: Visit) -> Response:
    raw, pepper = visit.cookies.read(visit.request, SESSION_COOKIE), visit.backend.pepper
    await visit.backend.database.write(lambda c: sign_in.end_session(c, pepper, raw))
    return _leave(visit)


async def _sign_out_everywhere(visit: Visit) -> Response:
    who = Principal.of_caller(visit.visitor.caller)
    await visit.backend.database.write(lambda c: sign_in.end_everywhere(c, who))
    return _leave(visit)


def _leave(visit: Visit) -> Response:
    answer = visit.go("/sign-in")
    visit.cookies.delete(visit.request, answer, SESSION_COOKIE)
    return answer


async def show_sign_in(
    request: Request,
    backend: Backend,
    renderer: Renderer,
    form: FormData,
    refusal: Refusal | None = None,
) -> Response:
    """The page, with why nobody was signed in."""
    problem, by_key = (refusal.problem, refusal.by_key) if refusal else ("", False)
    html = renderer.render(
        "sign_in.html",
        problem="" if by_key else problem,
        key_problem=problem if by_key else "",
        email=form.text("email"),
        next=local_path(form.text("next")),
        has_users=await backend.database.read(users.has_users),
        issuer=backend.oidc and urlsplit(backend.oidc.settings.issuer).hostname,
        theme=theme_of(request),
    )
    headers = {**(refusal.headers if refusal else {}), **_FRESH}
    status = refusal.status if refusal else 200
    return html_response(request, html, status=status, headers=headers)
