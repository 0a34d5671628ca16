"""`/settings`: who is signed in, and where to change what."""

from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.http.auth import refuse_early
from service.http.errors import ApiError, InvalidError, NotFoundError, TooManyError
from service.http.rate_limits.rate_limit import RateClass
from service.sign_in import actions as sign_in
from service.sign_in.model import LONGEST_SESSION_MS, SESSION_MS, NewSession, Principal
from service.users import actions as users
from service.users.model import LEAST_PASSWORD_LETTERS, Credentials
from service.users.rules import require_password
from service.web.cookies import SESSION_COOKIE
from service.web.form_data import read_form
from service.web.page_routing import Pages
from service.web.settings.recorded_change import change_own
from service.web.sign_in.known_browsers import remember_browser
from service.web.visit import Visit

_UNPROCESSABLE: Final = 422
_NOT_PRESENT: Final = "This is not your present password."


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The first page of the settings."""
    return (
        pages.show("/settings", _show),
        pages.change("/settings/password", _change_password),
    )


async def _show(visit: Visit) -> Response:
    return await _page(visit)


async def _change_password(visit: Visit) -> Response:
    """Set one's own password, which ends all other sessions of the user."""
    form = await read_form(visit.request)
    password = form.secret("password")
    try:
        user_id = await _prove(visit, form.secret("present"))
        require_password(password)
    except (InvalidError, TooManyError) as wrong:
        return await _page(visit, wrong=wrong)
    hashed = await visit.backend.passwords.hash(password)
    who, pepper = Principal(user_id=user_id), visit.backend.pepper

    def act(connection: Connection, now_ms: int) -> tuple[str, NewSession]:
        sign_in.set_password(connection, user_id, hashed)
        return user_id, sign_in.start_session(connection, pepper, who, now_ms=now_ms)

    session = await change_own(visit, "users password", act, fields=("password",))
    answer = visit.go("/settings?saved=password")
    visit.cookies.set(
        visit.request, answer, SESSION_COOKIE, session.raw, max_age_s=LONGEST_SESSION_MS // 1000
    )
    remember_browser(visit.request, answer, visit.backend, user_id=user_id, stored=hashed)
    return answer


async def _prove(visit: Visit, present: str) -> str:
    """The id of the user who has typed their present password.

    Raises:
        InvalidError: it is wrong.
        NotFoundError: it is no user who is signed in, but an API key.
    """
    found = await _read_own(visit)
    if found is None:
        raise NotFoundError("An API key has no password.")
    known = RateClass.SIGN_INS_OF_KNOWN, found.user.id
    refuse_early(await visit.backend.sign_in_limits.wait_s(known))
    # Whoever has none needs a link for the first: an open browser is not proof enough.
    if not (await visit.backend.passwords.verify(found.password_hash, present)).is_right:
        raise InvalidError(_NOT_PRESENT, keys=("present",))
    return found.user.id


async def _read_own(visit: Visit) -> Credentials | None:
    """What the visitor's password is checked against. None: it is an API key."""
    user_id = visit.visitor.caller.user_id
    if user_id is None:
        return None
    return await visit.read(lambda c: users.find_credentials(c, user_id))


async def _page(visit: Visit, *, wrong: ApiError | None = None) -> Response:
    own = await _read_own(visit)
    wrong_keys = wrong.keys if isinstance(wrong, InvalidError) else ("present",)
    return visit.page(
        "settings.html",
        status=_UNPROCESSABLE if wrong else 200,
        user=own and own.user,
        is_saved=visit.request.query_params.get("saved") == "password",
        least=LEAST_PASSWORD_LETTERS,
        problems=dict.fromkeys(wrong_keys, wrong.message) if wrong else {},
        session_ms=SESSION_MS,
        longest_ms=LONGEST_SESSION_MS,
    )
