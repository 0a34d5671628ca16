"""`/sign-in/oidc`: to the identity provider, and back."""

from typing import Final

import structlog
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from service.http.auth import refuse_early
from service.http.dependencies import Backend
from service.http.errors import ApiError, NotFoundError
from service.http.rate_limits.rate_limit import RateClass, address_of, place_of
from service.oidc.actions import sign_in_identity
from service.oidc.login_state import ATTEMPT_MS, new_attempt, read_attempt, write_attempt
from service.oidc.model import LoginAttempt, OidcFailedError, OidcIdentity, OidcRefusedError
from service.oidc.provider import OpenIdProvider
from service.sign_in.model import NewSession
from service.web.cookies import LOGIN_COOKIE, PrivateCookies
from service.web.form_data import FormData
from service.web.page_routing import Pages
from service.web.rendering import Renderer
from service.web.sign_in.admission import admit, local_path
from service.web.sign_in.sign_in_page import Refusal, show_sign_in

log = structlog.get_logger()

_SEE_OTHER: Final = 303
_BACK: Final = "/sign-in/oidc/callback"
_MOST_LETTERS: Final = 200
_LOST: Final = (
    "This sign-in was begun in another browser or more than ten minutes ago, or is over. Begin"
    " again here."
)


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """Signing in by an identity provider."""
    return (
        pages.open("/sign-in/oidc", _leave),
        pages.open(_BACK, _return),
    )


async def _leave(request: Request, backend: Backend, renderer: Renderer) -> Response:
    provider = _require_provider(backend)
    refuse_early(backend.limits.wait_s(RateClass.OIDC, place_of(request)))
    path = local_path(request.query_params.get("next", ""))
    attempt = new_attempt(path, now_ms=await _now_ms(backend))
    try:
        url = await provider.authorization_url(attempt, _redirect_url(request, backend))
    except OidcFailedError as problem:
        return await _explain(request, backend, renderer, problem)
    answer = RedirectResponse(url, _SEE_OTHER)
    cookies = PrivateCookies(backend.public_url)
    value = write_attempt(backend.pepper, attempt)
    cookies.set(request, answer, LOGIN_COOKIE, value, max_age_s=ATTEMPT_MS // 1000)
    return answer


async def _return(request: Request, backend: Backend, renderer: Renderer) -> Response:
    provider = _require_provider(backend)
    cookies = PrivateCookies(backend.public_url)
    try:
        attempt = await _use_up_attempt(request, backend)
        who = await _identify(request, backend, provider, attempt)
        answer = await _admit(request, backend, renderer, attempt, who)
    except (OidcFailedError, OidcRefusedError) as problem:
        answer = await _explain(request, backend, renderer, problem)
    cookies.delete(request, answer, LOGIN_COOKIE)
    return answer


async def _admit(
    request: Request,
    backend: Backend,
    renderer: Renderer,
    attempt: LoginAttempt,
    who: OidcIdentity,
) -> Response:
    settings = _require_provider(backend).settings

    def begin(connection: Connection, now_ms: int) -> NewSession:
        return sign_in_identity(connection, backend.pepper, settings, who, now_ms=now_ms)

    answer = await admit(request, backend, renderer, begin, attempt.path)
    if answer is None:
        raise OidcRefusedError(_LOST)
    return answer


async def _use_up_attempt(request: Request, backend: Backend) -> LoginAttempt:
    """The attempt that this browser began; each does once, whichever replica it comes back to."""
    now_ms = await _now_ms(backend)
    kept = PrivateCookies(backend.public_url).read(request, LOGIN_COOKIE)
    attempt = read_attempt(backend.pepper, kept, now_ms=now_ms)
    place, limits = place_of(request), backend.sign_in_limits
    if attempt is not None and request.query_params.get("state") == attempt.state:
        refuse_early(await limits.wait_s((RateClass.OIDC, place)))
        if await limits.use_up(attempt.state, until_ms=attempt.expires_ms):
            return attempt
    refuse_early(backend.limits.wait_s(RateClass.REFUSED, place))
    raise OidcRefusedError(_LOST)


async def _identify(
    request: Request, backend: Backend, provider: OpenIdProvider, attempt: LoginAttempt
) -> OidcIdentity:
    query, issuer = request.query_params, provider.settings.issuer
    if query.get("iss", issuer) != issuer:  # RFC 9207
        raise OidcFailedError(f"This answer does not come from {issuer}.")
    if "error" in query:
        said = query.get("error_description") or query["error"]
        raise OidcRefusedError(f"{issuer} signed nobody in: {said[:_MOST_LETTERS]}.")
    code = query.get("code", "")
    return await provider.identify(attempt, code, _redirect_url(request, backend))


async def _explain(
    request: Request, backend: Backend, renderer: Renderer, problem: ApiError
) -> Response:
    log.warning("oidc.refused", reason=problem.message, address=address_of(request))
    refusal = Refusal(problem=problem.message, status=int(problem.status))
    return await show_sign_in(request, backend, renderer, FormData([]), refusal)


def _require_provider(backend: Backend) -> OpenIdProvider:
    if backend.oidc is None:
        raise NotFoundError("This service has no identity provider; OIDC_ISSUER names one.")
    return backend.oidc


def _redirect_url(request: Request, backend: Backend) -> str:
    return backend.base_url(request) + _BACK


async def _now_ms(backend: Backend) -> int:
    return await backend.database.read(backend.clock.now_ms)
