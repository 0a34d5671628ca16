"""Where visitors subscribe, confirm and unsubscribe; none of it needs a key.

A link of a mail shows a page with one button, because mail scanners open links. The button, and
the one-click unsubscribe of mail programs (RFC 8058), send POST.
"""

from collections.abc import Mapping
from html import escape
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from contract.targets import format_value
from service.http.auth import limit_by_address, refuse_early
from service.http.dependencies import Backend
from service.http.errors import ConflictError, InvalidError, NotFoundError, TooLargeError
from service.http.rate_limit import RateClass, place_of
from service.mail.rules import find_address_problem
from service.status_pages import actions as status_pages
from service.status_pages.public import read_page_key
from service.subscriptions import actions
from service.subscriptions.actions import Moment

SUBSCRIBE: Final = "/status-pages/{url}/subscriptions"
_LINKS: Final = "/status-subscriptions"
CONFIRM: Final = _LINKS + "/confirm/{token}"
UNSUBSCRIBE: Final = _LINKS + "/unsubscribe/{subscription_id}/{signature}"
_MOST_BYTES: Final = 4096
SENT: Final = "A mail with a link was sent to the address, unless it had one before."
_NO_MAILS: Final = (
    "This service sends no mails, so nobody can subscribe; its operator sets SMTP_URL and"
    " SERVICE_PUBLIC_URL."
)
_HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width"><title>{title}</title>'
    "<h1>{title}</h1>{body}</html>"
)


def routes() -> list[Route]:
    """The routes; they stand in no OpenAPI document, since browsers use them."""
    return [
        Route(SUBSCRIBE, _subscribe, methods=["POST"]),
        Route(CONFIRM, _ask_to_confirm, methods=["GET"]),
        Route(CONFIRM, _confirm, methods=["POST"]),
        Route(UNSUBSCRIBE, _ask_to_unsubscribe, methods=["GET"]),
        Route(UNSUBSCRIBE, _unsubscribe, methods=["POST"]),
    ]


async def _subscribe(request: Request) -> Response:
    """The answer is the same whether the address is subscribed already, so that nobody can ask."""
    backend = _backend(request)
    refuse_early(backend.limits.wait_s(RateClass.SUBSCRIPTIONS, place_of(request)))
    address = read_address(await _read_body(request))
    url, key = str(request.path_params["url"]), read_page_key(request)
    await subscribe(backend, url, key, address)
    return JSONResponse({"message": SENT}, status_code=202, headers=dict(_HEADERS))


async def subscribe(backend: Backend, url: str, key: str | None, address: str) -> None:
    """Subscribe an address to the page that a visitor sees.

    `key`: the key of a private page. None: the visitor has sent none.

    Raises:
        ConflictError: the service sends no mails.
        NotFoundError: the visitor sees no page there.
    """
    if not backend.sends_status_mails:
        raise ConflictError(_NO_MAILS)

    def find(connection: Connection) -> str:
        return status_pages.find_visible(connection, url, key=key, pepper=backend.pepper).id

    def change(connection: Connection) -> None:
        at = Moment(backend.clock.now_ms(connection), backend.pepper)
        actions.subscribe(connection, find(connection), address, at)

    # Read first: who guesses takes none of the writer's time.
    await backend.database.read(find)
    await backend.database.write(change)


def read_address(sent: Mapping[str, Any]) -> str:
    """The mail address that a form or an object has.

    Raises:
        InvalidError: it has none, or it is none.
    """
    address = sent.get("address")
    if not isinstance(address, str):
        raise InvalidError('"address" is missing.', keys=("address",))
    if problem := find_address_problem(address.strip()):
        message = f'"address" is {format_value(address)}, which {problem}.'
        raise InvalidError(message, keys=("address",))
    return address.strip()


async def _read_body(request: Request) -> Mapping[str, Any]:
    """A JSON object or a form."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise TooLargeError(f"The body is too large; use at most {_MOST_BYTES} bytes.")
    if "urlencoded" in request.headers.get("content-type", ""):
        fields = parse_qs(body.decode("ascii", "replace"))
        return {name: values[0] for name, values in fields.items()}
    try:
        found: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict):
        raise InvalidError('The body must be as in {"address": "ann@example.com"}.', keys=())
    return found


async def _ask_to_confirm(request: Request) -> Response:
    limit_by_address(request, _backend(request))
    return _question("Confirm your subscription", "Confirm")


async def _confirm(request: Request) -> Response:
    backend = _backend(request)
    limit_by_address(request, backend)
    token = str(request.path_params["token"])

    def find(connection: Connection) -> bool:
        at = Moment(backend.clock.now_ms(connection), backend.pepper)
        return actions.find_by_link(connection, token, at) is not None

    def change(connection: Connection) -> bool:
        at = Moment(backend.clock.now_ms(connection), backend.pepper)
        return actions.confirm(connection, token, at)

    if not (await backend.database.read(find) and await backend.database.write(change)):
        raise NotFoundError("This link was used before, or has run out; subscribe again.")
    return _message("Subscribed", "You get a mail when there is news of an incident.")


async def _ask_to_unsubscribe(request: Request) -> Response:
    limit_by_address(request, _backend(request))
    return _question("End your subscription", "Unsubscribe")


async def _unsubscribe(request: Request) -> Response:
    backend = _backend(request)
    limit_by_address(request, backend)
    named = str(request.path_params["subscription_id"])
    signature = str(request.path_params["signature"])
    if not actions.is_signed(named, signature, pepper=backend.pepper):
        raise NotFoundError("There is no such link to unsubscribe.")
    await backend.database.write(lambda c: actions.unsubscribe(c, named))
    return _message("Unsubscribed", "You get no more mails of this status page.")


def _backend(request: Request) -> Backend:
    found: Backend = request.app.state.backend
    return found


def _question(title: str, button: str) -> Response:
    return _page(title, f'<form method="post"><button>{escape(button)}</button></form>')


def _message(title: str, sentence: str) -> Response:
    return _page(title, f"<p>{escape(sentence)}</p>")


def _page(title: str, body: str) -> Response:
    return HTMLResponse(_PAGE.format(title=escape(title), body=body), headers=dict(_HEADERS))
