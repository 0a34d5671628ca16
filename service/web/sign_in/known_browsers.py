"""Browsers in which a user has signed in with the present password: device cookies, as OWASP says.

They have a limit of their own, so that nobody's guesses lock the right person out. The cookie is
worth nothing else, outlives a sign-out, and ends with the password.
"""

import hmac
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Pepper
from service.http.auth import refuse_early
from service.http.dependencies import Backend
from service.http.rate_limits.rate_limit import RateClass, place_of
from service.users.model import Credentials
from service.web.cookies import BROWSER_COOKIE, PrivateCookies

_KEPT_S: Final = 365 * 86_400
_PURPOSE: Final = b"picket: a browser that is known "


def remember_browser(
    request: Request, answer: Response, backend: Backend, *, user_id: str, stored: str
) -> None:
    """Have the browser keep that this user has signed in with this password, by its hash."""
    value = _sign(backend.pepper, user_id, stored)
    cookies = PrivateCookies(backend.public_url)
    cookies.set(request, answer, BROWSER_COOKIE, value, max_age_s=_KEPT_S)


def is_known_browser(request: Request, backend: Backend, found: Credentials | None) -> bool:
    """Whether the browser has signed this user in before, and the password is the same."""
    if found is None or found.password_hash is None:
        return False
    sent = PrivateCookies(backend.public_url).read(request, BROWSER_COOKIE)
    expected = _sign(backend.pepper, found.user.id, found.password_hash)
    return hmac.compare_digest(sent.encode(), expected.encode())


async def limit_stranger(
    request: Request, backend: Backend, found: Credentials | None, *, email_key: str
) -> None:
    """Count an attempt from a browser that is not known, before the password is checked.

    Raises:
        TooManyError: it comes too early.
    """
    place = place_of(request)
    # A name that nobody has is limited alike.
    name = f"nobody {email_key}" if found is None else found.user.id
    wait_s = await backend.sign_in_limits.wait_s(
        (RateClass.SIGN_INS, place),
        (RateClass.SIGN_INS_FROM_PLACE, f"{name} {place}"),
        (RateClass.SIGN_INS_OF_USER, name),
    )
    refuse_early(wait_s)


def _sign(pepper: Pepper, user_id: str, stored: str) -> str:
    return pepper.keyed(_PURPOSE + f"{user_id} {stored}".encode()).hex()
