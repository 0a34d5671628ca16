"""`/status/{url}`: a status page as visitors see it, without script and without sign-in."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from service.db.engine import NoticesLost
from service.http.auth import limit_by_address, refuse_early
from service.http.errors import ApiError, NotFoundError, phrase
from service.http.rate_limits.rate_limit import RateClass, place_of
from service.incidents.model import StatusChanged
from service.status_pages.public import read_page_key
from service.status_pages.rules import find_slug_problem
from service.subscriptions import visitor_routes as subscriptions
from service.web.cookies import PrivateCookies
from service.web.form_data import read_form
from service.web.page_routing import Pages
from service.web.status_page.custom_domains import DOMAIN, PREFIX
from service.web.status_page.documents import (
    ARCHIVE,
    PAGE,
    SHEET,
    Document,
    PageDocuments,
    Place,
    make_document,
    respond,
    usual_frame,
    usual_sheet,
    write_policy,
)
from service.web.status_page.page_cache import FRESH_S, PageCache, Shown
from service.web.status_page.pictures import find_origin
from service.web.status_page.snapshot import Snapshot, take_snapshot
from service.web.status_page.subscription_pages import Message, SubscriptionPages

log = structlog.get_logger()

KEY_COOKIE: Final = "picket_status_key"
_KEPT_S: Final = 30 * 86_400
_SEE_OTHER: Final = 303
_PERMANENT: Final = 308
_NOT_FOUND: Final = 404
_UNSTORED: Final[dict[str, str]] = {"cache-control": "no-store"}
_PUBLIC: Final = f"public, max-age={FRESH_S:.0f}, stale-while-revalidate=30, stale-if-error=86400"
_FOREVER: Final = "max-age=31536000, immutable"
_READ_ELSEWHERE: Final = frozenset({"status.json", "feed.json", "feed.rss", "feed.atom"})
"""Files that other web sites may read."""
_NO_PAGE: Final = "The address may be misspelt, or the page may have been removed."
_NO_PAGE_TITLE: Final = "There is no status page here"
_WRONG_KEY: Final = "This key opens no page at this address."
_ASKED: Final = (
    "A mail with a link is on its way to {address}, unless that is subscribed already. Open the"
    " link to confirm."
)

Handler = Callable[[Request, str], Awaitable[Response]]


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The pages and all that they load."""
    site = _Site(pages)
    page = PREFIX + "/{url}"
    return (
        site.route(page, site.show),
        site.route(page + "/", site.go_home),
        site.route(page + "/key", site.take_key, method="POST"),
        site.route(page + "/subscribe", site.subscribe, method="POST"),
        site.route(page + "/{name}", site.show),
        *SubscriptionPages(site.say).routes(),
    )


class _Site:
    """All status pages of the service."""

    def __init__(self, pages: Pages) -> None:
        self._backend = pages.backend
        self._renderer = pages.renderer
        self._cookies = PrivateCookies(pages.backend.public_url)
        self._cache = PageCache(self._read, monotonic=self._backend.monotonic)
        self._backend.database.listen(StatusChanged, self._cache.expire)
        self._backend.database.listen(NoticesLost, self._expire_if_lost)

    def _expire_if_lost(self, notice: NoticesLost) -> None:
        if notice.is_certain:
            self._cache.expire(notice)

    def route(self, path: str, handler: Handler, *, method: str = "GET") -> Route:
        """A route whose refusals look like a page."""

        async def endpoint(request: Request) -> Response:
            try:
                return await handler(request, str(request.path_params["url"]))
            except ApiError as refusal:
                return self._refuse(request, refusal)

        return Route(path, endpoint, methods=[method], include_in_schema=False)

    async def show(self, request: Request, url: str) -> Response:
        """A page, or a file of it."""
        name = str(request.path_params.get("name", PAGE))
        shown = await self._find(request, url)
        if shown is None or not await self._opens(request, shown.documents.snapshot, name):
            if name == SHEET:
                return _send_usual_sheet(request)
            return self._say_not_found(request)
        place = self._place(request, url)
        if name == ARCHIVE:
            # It is made anew each time.
            refuse_early(self._backend.limits.wait_s(RateClass.ANALYTICS, place_of(request)))
            place = self._file_place(request, place)
        document = await shown.documents.find(name, place, age_s=shown.age_s * shown.is_last)
        if document is None:
            return self._say_not_found(request)
        headers = _cache_headers(request, shown.documents, name)
        return respond(request, document, headers=headers)

    async def go_home(self, request: Request, url: str) -> Response:
        """The page has one address."""
        return RedirectResponse(self._place(request, url).home, _PERMANENT)

    async def take_key(self, request: Request, url: str) -> Response:
        """Keep the key of a private page in a cookie of that page."""
        key = (await read_form(request)).text("key")
        shown = await self._find(request, url)
        if shown is None or not shown.documents.snapshot.opens_to(key, self._backend.pepper):
            refuse_early(self._backend.limits.wait_s(RateClass.REFUSED, place_of(request)))
            return self._say_not_found(request, problem=_WRONG_KEY)
        home = self._place(request, url).home
        answer = RedirectResponse(home, _SEE_OTHER, headers=_UNSTORED)
        answer.set_cookie(
            KEY_COOKIE,
            key,
            max_age=_KEPT_S,
            path=home,
            secure=self._cookies.is_secure(request),
            httponly=True,
            samesite="lax",
        )
        return answer

    async def subscribe(self, request: Request, url: str) -> Response:
        """Subscribe by mail; the link in a mail confirms it."""
        backend = self._backend
        shown = await self._find(request, url)
        if shown is None or not await self._opens(request, shown.documents.snapshot, PAGE):
            return self._say_not_found(request)
        try:
            refuse_early(backend.limits.wait_s(RateClass.SUBSCRIPTIONS, place_of(request)))
            typed = (await read_form(request)).text("address")
            address = subscriptions.read_address({"address": typed})
            await subscriptions.subscribe(backend, url, _key_of(request), address)
        except ApiError as refusal:
            status = int(refusal.status)
            text = refusal.message.replace('"address"', "The address")
            said = Message(title="No mail was sent", text=text, status=status)
            answer = await self.say(request, url, said)
            answer.headers.update(refusal.headers)
            return answer
        text = _ASKED.format(address=address)
        return await self.say(request, url, Message(title="Check your mail", text=text, status=202))

    async def say(self, request: Request, url: str | None, message: Message) -> Response:
        """A message in the look of a page; of none, where no page is known."""
        shown = await self._find(request, url) if url else None
        if url and shown:
            frame = shown.documents.frame(self._place(request, url))
        else:
            base = self._renderer.url(f"{PREFIX}/-/")
            frame = usual_frame(Place(home="", base=base, origin=""))
        document = self._write_message(
            frame,
            title=message.title,
            message=message.text,
            button=message.button,
            asks_key=False,
            problem="",
        )
        headers = {**_UNSTORED, "referrer-policy": "no-referrer"}
        return respond(request, document, status=message.status, headers=headers)

    async def _read(self, url: str) -> PageDocuments | None:
        backend = self._backend

        def query(connection: Connection) -> Snapshot | None:
            return take_snapshot(connection, url, now_ms=backend.clock.now_ms(connection))

        found = await backend.database.read(query)
        if found is None:
            return None
        return PageDocuments(found, self._renderer, takes_subscribers=backend.sends_status_mails)

    async def _find(self, request: Request, url: str) -> Shown | None:
        if find_slug_problem(url):
            return None
        if not self._cache.has(url):
            limit_by_address(request, self._backend)
        return await self._cache.find(url)

    async def _opens(self, request: Request, snapshot: Snapshot, name: str) -> bool:
        """Whether a visitor may see the page; who can read it over the API may export it, too."""
        key = _key_of(request)
        if snapshot.opens_to(key, self._backend.pepper):
            return True
        caller = await self._backend.keys.caller(key) if key and name == ARCHIVE else None
        return caller is not None and caller.account_id == snapshot.page.account_id

    def _place(self, request: Request, url: str) -> Place:
        host = request.scope.get(DOMAIN)
        if host is not None:
            return Place(home="/", base="/", origin=f"{request.url.scheme}://{host}")
        home = self._renderer.url(f"{PREFIX}/{url}")
        origin = find_origin(self._backend.base_url(request))
        return Place(home=home, base=home + "/", origin=origin)

    def _file_place(self, request: Request, place: Place) -> Place:
        """Where exported files will stand: where `at` says, else beside the page itself."""
        at = request.query_params.get("at", "").rstrip("/")
        origin = at if find_origin(at) else (place.origin + place.home).rstrip("/")
        return Place(home="", base="", origin=origin, is_file=True)

    def _say_not_found(self, request: Request, *, problem: str = "") -> Response:
        """Private pages and those that do not exist look the same."""
        refusal = NotFoundError(_NO_PAGE)
        return self._refuse(request, refusal, asks_key=True, problem=problem)

    def _refuse(
        self, request: Request, refusal: ApiError, *, asks_key: bool = False, problem: str = ""
    ) -> Response:
        if isinstance(refusal, NotFoundError) and not asks_key:
            return self._say_not_found(request)
        frame = usual_frame(self._place(request, str(request.path_params["url"])))
        status = int(refusal.status)
        document = self._write_message(
            frame,
            title=_NO_PAGE_TITLE if asks_key else phrase(status),
            message=refusal.message,
            asks_key=asks_key,
            problem=problem,
        )
        return respond(request, document, status=status, headers=_UNSTORED | refusal.headers)

    def _write_message(
        self, frame: Mapping[str, object], *, button: str = "", **values: object
    ) -> Document:
        html = self._renderer.render(
            "status_page/message.html", frame=frame, button=button, **values
        )
        policy = str(frame["policy"])
        return make_document("text/html; charset=utf-8", html.encode(), policy=policy)


def _key_of(request: Request) -> str | None:
    return read_page_key(request) or request.cookies.get(KEY_COOKIE)


def _send_usual_sheet(request: Request) -> Response:
    document = make_document("text/css; charset=utf-8", usual_sheet(), policy=write_policy())
    return respond(request, document, headers={"cache-control": "no-cache"})


def _cache_headers(request: Request, documents: PageDocuments, name: str) -> dict[str, str]:
    headers = {"vary": "accept-encoding"}
    is_private = documents.snapshot.page.is_private
    if name == SHEET and request.url.query == documents.sheet_digest:
        headers["cache-control"] = f"{'private' if is_private else 'public'}, {_FOREVER}"
    elif is_private:
        headers["cache-control"] = "private, no-cache"
        headers["vary"] = "accept-encoding, authorization, cookie"
    else:
        headers["cache-control"] = _PUBLIC
    if name in _READ_ELSEWHERE and not is_private:
        headers["access-control-allow-origin"] = "*"
    return headers
