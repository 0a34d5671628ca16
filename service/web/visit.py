"""A request for a page, with what pages use."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.accounts.model import Role
from service.http.dependencies import Backend
from service.sign_in.actions import mask
from service.sign_in.model import Visitor
from service.vault.encryption import Viewer
from service.web.api_calls import ApiAnswer, call_api
from service.web.cookies import NEW_KEY_COOKIE, PrivateCookies
from service.web.rendering import Renderer, html_response, theme_of

T = TypeVar("T")

_SEE_OTHER: Final = 303
_UNSTORED: Final = {"cache-control": "no-store"}
"""For pages with secrets: a new key, or what was typed into a form."""
_NEW_KEY_S: Final = 60
"""How long a browser may take from the form to the page that shows the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request of somebody who is signed in."""

    request: Request
    backend: Backend
    renderer: Renderer
    cookies: PrivateCookies
    visitor: Visitor

    @property
    def account_id(self) -> str:
        """The account whose things are shown."""
        return self.visitor.caller.account_id

    @property
    def viewer(self) -> Viewer:
        """What may be shown of secrets."""
        return Viewer(self.backend.vault, may_write=self.visitor.caller.may_write)

    @property
    def base_url(self) -> str:
        """What addresses for programs begin with."""
        return self.backend.base_url(self.request)

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query on the database."""
        return await self.backend.database.read(query)

    def now_ms(self, connection: Connection) -> int:
        """The service's time."""
        return self.backend.clock.now_ms(connection)

    async def call(self, operation: str, body: object = None, *, once: str = "") -> ApiAnswer:
        """Carry out an operation of the API: `PUT /v1/snippets/42`.

        `once`: an Idempotency-Key, so that a form that is sent twice acts once.
        """
        headers = {"idempotency-key": once} if once else {}
        return await call_api(self.request, self.visitor, operation, body, headers=headers)

    async def look(self, operation: str) -> ApiAnswer:
        """Read what a key is shown that only reads: `GET /v1/snippets/42`; no secret is in it."""
        caller = replace(self.visitor.caller, role=Role.READ_ONLY)
        return await call_api(self.request, replace(self.visitor, caller=caller), operation)

    async def find(self, path: str) -> Any:
        """What a path of the API shows to a key that only reads.

        Raises:
            ApiError: there is no such thing.
        """
        answer = await self.look(f"GET {path}")
        if answer.is_error:
            raise answer.refusal
        return answer.body

    def page(self, template: str, *, status: int = 200, **values: object) -> Response:
        """A page."""
        shared = {
            "visitor": self.visitor,
            "csrf": mask(self.visitor.csrf),
            "theme": theme_of(self.request),
            "path": self.request.url.path,
            "may_write": self.visitor.caller.may_write,
        }
        html = self.renderer.render(template, **{**shared, **values})
        headers = {} if self.request.method == "GET" else _UNSTORED
        return html_response(self.request, html, status=status, headers=headers)

    def go(self, path: str) -> Response:
        """Go on to another page, after a form was accepted."""
        return RedirectResponse(self.renderer.url(path), _SEE_OTHER)

    def go_with_key(self, path: str, key: str, *, of: str) -> Response:
        """Go on to the page that shows a new key once, so that a reload makes no other one.

        `of`: what it is the key of, as its page names it.
        """
        answer = self.go(path)
        value = f"{of}:{key}"
        self.cookies.set(self.request, answer, NEW_KEY_COOKIE, value, max_age_s=_NEW_KEY_S)
        return answer

    def page_with_key(
        self, template: str, *, of: str, status: int = 200, **values: object
    ) -> Response:
        """A page that shows the key that was made right before as `new_key`; empty: none was."""
        found, _, key = self.cookies.read(self.request, NEW_KEY_COOKIE).rpartition(":")
        is_new = found == of
        answer = self.page(template, status=status, new_key=key if is_new else "", **values)
        if is_new:
            answer.headers.update(_UNSTORED)
            self.cookies.delete(self.request, answer, NEW_KEY_COOKIE)
        return answer
