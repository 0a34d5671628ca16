"""What tests of the pages share."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Browser, Page

from service.web.cookies import SESSION_COOKIE
from tests.builders.web_users import PASSWORD
from tests.servers.public_api import PublicApi
from tests.servers.web_browser import web_browser


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """One page, read whole."""

    status: int
    text: str
    headers: Any


@dataclass(frozen=True, slots=True)
class WebUser:
    """Somebody who is signed in, without a browser."""

    url: str
    http: aiohttp.ClientSession
    session: str

    async def get(self, path: str, **more: Any) -> WebAnswer:
        """A page."""
        return await self.ask("GET", path, **more)

    async def post(self, path: str, data: Any, *, token: str | None = None) -> WebAnswer:
        """Send a form, with the token that the first page has, or with another one."""
        csrf = token if token is not None else await self.token()
        return await self.ask("POST", path, data=[*data.items(), ("csrf", csrf)])

    async def follow(self, answer: WebAnswer) -> WebAnswer:
        """The page that a form leads to, as a browser loads it with what it was told to keep."""
        kept = SimpleCookie()
        for one in answer.headers.getall("set-cookie", ()):
            kept.load(one)
        cookies = "; ".join(f"{one.key}={one.coded_value}" for one in kept.values())
        headers = {"cookie": f"{SESSION_COOKIE}={self.session}; {cookies}"}
        return await self.ask("GET", answer.headers["location"], headers=headers)

    async def token(self) -> str:
        """The token of a page."""
        text = (await self.get("/ui")).text
        return text.partition('data-csrf="')[2].partition('"')[0]

    async def ask(self, method: str, path: str, **more: Any) -> WebAnswer:
        """The answer to any request."""
        cookies = {"cookie": f"{SESSION_COOKIE}={self.session}"} if self.session else {}
        headers = {**cookies, **more.pop("headers", {})}
        async with self.http.request(
            method, self.url + path, headers=headers, allow_redirects=False, **more
        ) as answer:
            return WebAnswer(answer.status, await answer.text(), answer.headers)


async def sign_in(api: PublicApi, key: str) -> WebUser:
    """Sign in with an API key."""
    return await enter(api, {"key": key})


async def sign_in_user(api: PublicApi, email: str, password: str = PASSWORD) -> WebUser:
    """Sign in with a password."""
    return await enter(api, {"email": email, "password": password})


async def enter(api: PublicApi, form: dict[str, str], path: str = "/sign-in") -> WebUser:
    """Send a form that signs in."""
    async with api.http.post(api.url + path, data=form, allow_redirects=False) as answer:
        assert answer.status == 303, await answer.text()
        return WebUser(api.url, api.http, session_of(answer.headers["set-cookie"]))


def session_of(set_cookie: str) -> str:
    """The secret of the session that an answer sets."""
    return SimpleCookie(set_cookie)[SESSION_COOKIE].value


@pytest.fixture
async def web(api: PublicApi) -> WebUser:
    """Alice, signed in."""
    return await sign_in(api, api.alice.secrets.api_key)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A real Chromium."""
    async with web_browser() as running:
        yield running


@pytest.fixture
async def page(browser: Browser, web: WebUser) -> AsyncIterator[Page]:
    """A page of a browser in which Alice is signed in."""
    context = await browser.new_context(base_url=web.url)
    await context.add_cookies([{"name": SESSION_COOKIE, "value": web.session, "url": web.url}])
    yield await context.new_page()
    await context.close()


@pytest.fixture
def postgresql_url() -> None:
    """These tests are of what lies above the database: SQLite is enough for them."""
