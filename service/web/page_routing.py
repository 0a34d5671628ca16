"""How pages are declared: who may see one, and how its errors look."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from service.http.dependencies import Backend
from service.http.errors import ApiError, ForbiddenError, phrase
from service.sign_in import actions as sign_in
from service.sign_in.model import Visitor
from service.web.cookies import SESSION_COOKIE, PrivateCookies
from service.web.form_data import read_form
from service.web.rendering import Renderer, html_response, theme_of
from service.web.same_origin import require_same_origin
from service.web.visit import Visit

CSRF_FIELD: Final = "csrf"
_CSRF_HEADER: Final = "x-csrf-token"
_SEE_OTHER: Final = 303
_READING: Final = frozenset({"GET", "HEAD"})

_WRONG_FORM: Final = (
    "This form was open for too long, or came from elsewhere. Nothing was changed: load the page"
    " again and send it once more."
)

_TITLES: Final[Mapping[int, str]] = {
    400: "This cannot be read",
    403: "Not allowed",
    404: "Not found",
    405: "No page here",
    409: "Not possible now",
    429: "Too many requests",
    500: "The service failed",
    503: "The service is busy",
}
"""What the page of a refusal is called; others have the name of their status."""
_FOREIGN: Final = "A page of another site asked for this; open it from Picket's own pages."
_OURS: Final = frozenset({"same-origin", "none"})
"""`none`: a person typed the address, or followed a bookmark."""

Page = Callable[[Visit], Awaitable[Response]]
OpenPage = Callable[[Request, Backend, Renderer], Awaitable[Response]]


class Pages:
    """Makes routes of pages."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.renderer = Renderer(backend.public_url)
        self.cookies = PrivateCookies(backend.public_url)

    @property
    def backend(self) -> Backend:
        """What routes use."""
        return self._backend

    def show(self, path: str, page: Page) -> Route:
        """A page for whoever is signed in."""

        async def endpoint(request: Request) -> Response:
            if _is_foreign(request) and request.headers.get("sec-fetch-mode") != "navigate":
                return self._problem(request, ForbiddenError(_FOREIGN))
            visitor = await self.find_visitor(request)
            if visitor is None:
                return self._ask_to_sign_in(request)
            return await self._answer(request, page, visitor)

        return Route(path, endpoint, methods=["GET"], include_in_schema=False)

    def change(self, path: str, page: Page) -> Route:
        """What a form of such a page is sent to."""

        async def endpoint(request: Request) -> Response:
            if _is_foreign(request):
                return self._problem(request, ForbiddenError(_FOREIGN))
            visitor = await self.find_visitor(request)
            if visitor is None:
                return self._ask_to_sign_in(request)
            return await self._answer(request, self._from_own_page(page), visitor)

        return Route(path, endpoint, methods=["POST"], include_in_schema=False)

    def open(self, path: str, page: OpenPage, *, methods: tuple[str, ...] = ("GET",)) -> Route:
        """A page for anybody."""

        async def endpoint(request: Request) -> Response:
            try:
                if request.method not in _READING:
                    require_same_origin(request, self._backend.public_url)
                return await page(request, self._backend, self.renderer)
            except ApiError as refusal:
                return self._problem(request, refusal)

        return Route(path, endpoint, methods=list(methods), include_in_schema=False)

    def _from_own_page(self, page: Page) -> Page:
        async def checked(visit: Visit) -> Response:
            require_same_origin(visit.request, self._backend.public_url)
            return await _with_token(page)(visit)

        return checked

    async def _answer(self, request: Request, page: Page, visitor: Visitor) -> Response:
        visit = Visit(
            request=request,
            backend=self._backend,
            renderer=self.renderer,
            cookies=self.cookies,
            visitor=visitor,
        )
        try:
            return await page(visit)
        except ApiError as refusal:
            return self._problem(request, refusal, visitor)
        except HTTPException as refusal:
            return self.explain(request, refusal.status_code, str(refusal.detail), visitor)

    async def find_visitor(self, request: Request) -> Visitor | None:
        """Whoever is signed in in the browser that asks. None: nobody."""
        raw = self.cookies.read(request, SESSION_COOKIE)
        if not raw:
            return None
        backend = self._backend
        visitor = await backend.database.read(
            lambda c: sign_in.find_visitor(c, backend.pepper, raw, now_ms=backend.clock.now_ms(c))
        )
        if visitor is not None and visitor.is_stale:
            await backend.database.write(
                lambda c: sign_in.extend_session(
                    c, backend.pepper, raw, now_ms=backend.clock.now_ms(c)
                )
            )
        return visitor

    def _ask_to_sign_in(self, request: Request) -> Response:
        back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        where = "" if request.method != "GET" or back == "/" else f"?next={quote(back, safe='')}"
        return RedirectResponse(self.renderer.url("/sign-in") + where, _SEE_OTHER)

    def _problem(
        self, request: Request, refusal: ApiError, visitor: Visitor | None = None
    ) -> Response:
        answer = self.explain(request, int(refusal.status), refusal.message, visitor)
        answer.headers.update(refusal.headers)
        return answer

    def explain(
        self, request: Request, status: int, message: str, visitor: Visitor | None = None
    ) -> Response:
        """The page that says why there is no other one; with the navigation for a visitor."""
        html = self.renderer.render(
            "problem.html",
            title=_TITLES.get(status) or phrase(status),
            message=message,
            theme=theme_of(request),
            visitor=visitor,
            csrf=sign_in.mask(visitor.csrf) if visitor else "",
            path=request.url.path,
            may_write=visitor is not None and visitor.caller.may_write,
        )
        return html_response(request, html, status=status)


def _is_foreign(request: Request) -> bool:
    """Whether a page of another origin asks; SameSite takes other ports and subdomains for ours.

    Clients that are no browsers do not say.
    """
    return request.headers.get("sec-fetch-site", "none") not in _OURS


def _with_token(page: Page) -> Page:
    async def checked(visit: Visit) -> Response:
        sent = visit.request.headers.get(_CSRF_HEADER)
        if sent is None:
            sent = (await read_form(visit.request)).text(CSRF_FIELD)
        if not sign_in.is_csrf_token(visit.visitor, sent):
            raise ForbiddenError(_WRONG_FORM)
        return await page(visit)

    return checked
