"""What links in mails of a status page lead to: confirm a subscription, or end it.

A link shows a page with one button, because mail scanners open links. The button, and the
one-click unsubscribe of mail programs (RFC 8058), send POST.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.http.auth import limit_by_address
from service.http.dependencies import Backend
from service.http.errors import ApiError, NotFoundError, phrase
from service.status_pages import actions as status_pages
from service.status_pages.model import StatusPage
from service.subscriptions import actions as subscriptions
from service.subscriptions.actions import Moment
from service.subscriptions.model import Subscription, SubscriptionStatus
from service.subscriptions.visitor_routes import CONFIRM, UNSUBSCRIBE

_RAN_OUT: Final = (
    "The link has run out, or the subscription has ended since. Subscribe again on the status page."
)
_NO_LINK: Final = "There is no such link to unsubscribe."


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a page says."""

    title: str
    text: str
    button: str = ""
    """What sends the page's address as POST. Empty: there is none."""
    status: int = 200


Say = Callable[[Request, str | None, Message], Awaitable[Response]]
"""Writes a message in the look of the page at an address. None: no page is known."""
_Step = Callable[[Request], Awaitable[tuple[str | None, Message]]]


@dataclass(frozen=True, slots=True)
class _Linked:
    """What the link of a mail is about."""

    url: str
    """The last part of the page's address."""
    page: str
    """The page's name."""
    address: str
    is_confirmed: bool


class SubscriptionPages:
    """The pages behind the links."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def routes(self) -> tuple[Route, ...]:
        """Each link, opened and confirmed."""
        return (
            self._route(CONFIRM, self._ask_to_confirm, "GET"),
            self._route(CONFIRM, self._confirm, "POST"),
            self._route(UNSUBSCRIBE, self._ask_to_unsubscribe, "GET"),
            self._route(UNSUBSCRIBE, self._unsubscribe, "POST"),
        )

    def _route(self, path: str, step: _Step, method: str) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                limit_by_address(request, _backend_of(request))
                url, message = await step(request)
            except ApiError as refusal:
                status = int(refusal.status)
                is_gone = isinstance(refusal, NotFoundError)
                title = "This link no longer works" if is_gone else phrase(status)
                said = Message(title=title, text=refusal.message, status=status)
                answer = await self._say(request, None, said)
                answer.headers.update(refusal.headers)
                return answer
            return await self._say(request, url, message)

        return Route(path, endpoint, methods=[method], include_in_schema=False)

    async def _ask_to_confirm(self, request: Request) -> tuple[str | None, Message]:
        found = await _backend_of(request).database.read(lambda c: _find_by_link(c, request))
        if found.is_confirmed:
            return found.url, _subscribed(found)
        text = f"{found.address} gets a mail when there is news of an incident of {found.page}."
        message = Message(title="Confirm your subscription", text=text, button="Confirm")
        return found.url, message

    async def _confirm(self, request: Request) -> tuple[str | None, Message]:
        def change(connection: Connection) -> bool:
            return subscriptions.confirm(
                connection, _token_of(request), _moment(connection, request)
            )

        # Read first: who guesses takes none of the writer's time.
        found = await _backend_of(request).database.read(lambda c: _find_by_link(c, request))
        if not await _backend_of(request).database.write(change):
            raise NotFoundError(_RAN_OUT)
        return found.url, _subscribed(found)

    async def _ask_to_unsubscribe(self, request: Request) -> tuple[str | None, Message]:
        url = await _backend_of(request).database.read(lambda c: _find_ended(c, request))
        text = "You get no more mails of this status page then."
        return url, Message(title="End your subscription", text=text, button="Unsubscribe")

    async def _unsubscribe(self, request: Request) -> tuple[str | None, Message]:
        url = await _backend_of(request).database.read(lambda c: _find_ended(c, request))
        named = str(request.path_params["subscription_id"])
        await _backend_of(request).database.write(lambda c: subscriptions.unsubscribe(c, named))
        text = "You get no more mails of this status page."
        return url, Message(title="Unsubscribed", text=text)


def _backend_of(request: Request) -> Backend:
    found: Backend = request.app.state.backend
    return found


def _moment(connection: Connection, request: Request) -> Moment:
    backend = _backend_of(request)
    return Moment(backend.clock.now_ms(connection), backend.pepper)


def _token_of(request: Request) -> str:
    return str(request.path_params["token"])


def _find_page(connection: Connection, found: Subscription) -> StatusPage | None:
    return status_pages.find_all(connection, [found.page_id]).get(found.page_id)


def _find_by_link(connection: Connection, request: Request) -> _Linked:
    """What a link confirms, or has confirmed before."""
    found = subscriptions.find_by_link(connection, _token_of(request), _moment(connection, request))
    page = _find_page(connection, found) if found else None
    if found is None or page is None:
        raise NotFoundError(_RAN_OUT)
    is_confirmed = found.status is SubscriptionStatus.VERIFIED
    return _Linked(page.url, page.name, found.address, is_confirmed)


def _subscribed(found: _Linked) -> Message:
    text = (
        f"{found.address} gets a mail when there is news of an incident of {found.page}. Each mail"
        " has a link that ends this."
    )
    return Message(title="You are subscribed", text=text)


def _find_ended(connection: Connection, request: Request) -> str | None:
    """The page of a link to unsubscribe. None: the subscription has ended before."""
    named = str(request.path_params["subscription_id"])
    signature = str(request.path_params["signature"])
    if not subscriptions.is_signed(named, signature, pepper=_backend_of(request).pepper):
        raise NotFoundError(_NO_LINK)
    found = subscriptions.find(connection, named)
    page = _find_page(connection, found) if found else None
    return page.url if page else None
