"""Where visitors subscribe, without a key; pages of the service follow the links in mails."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from contract.targets import format_value
from service.http.auth import refuse_early
from service.http.dependencies import Backend
from service.http.errors import ConflictError, InvalidError, TooLargeError
from service.http.rate_limits.rate_limit import RateClass, place_of
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


def routes() -> list[Route]:
    """The route; it stands in no OpenAPI document, since browsers use it."""
    return [
        Route(SUBSCRIBE, _subscribe, methods=["POST"]),
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


def _backend(request: Request) -> Backend:
    found: Backend = request.app.state.backend
    return found
