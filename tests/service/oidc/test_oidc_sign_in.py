"""Signing in by a real OpenID provider, and what cannot be trusted."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestServer

from service.accounts.model import Role
from service.alert_channels.sending.egress import EgressRule
from service.http.rate_limits.rate_limit import Allowance, RateClass, RateLimits
from service.oidc.login_state import (
    ATTEMPT_MS,
    challenge_of,
    read_attempt,
    write_attempt,
)
from service.oidc.model import OidcSettings
from service.oidc.provider import OpenIdProvider
from service.sign_in import actions as sign_in
from service.sign_in.attempts import SignInLimits
from service.users import actions as users
from tests.builders.web_users import a_user
from tests.servers.identity_provider import IdentityProvider, identity_provider
from tests.servers.public_api import PEPPER, PublicApi
from tests.service.web.conftest import WebUser, session_of

BACK = "/sign-in/oidc/callback?code=x&state=y"
ANN = {"email": "ann@example.com", "email_verified": True, "name": "Ann Lee"}


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


@dataclass(frozen=True, slots=True)
class Login:
    """A browser that signs in by the provider."""

    api: PublicApi
    provider: IdentityProvider

    async def allow(self, **changes: Any) -> None:
        """Set the provider of the service."""
        client_id, secret = await self.provider.register(
            self.api.http, f"{self.api.url}/sign-in/oidc/callback"
        )
        settings = OidcSettings(issuer=self.provider.url, client_id=client_id, client_secret=secret)
        self.use(replace(settings, **changes))

    def use(self, settings: OidcSettings) -> None:
        made = OpenIdProvider(settings, EgressRule(), monotonic=time.monotonic)
        object.__setattr__(self.api.backend, "oidc", made)

    async def leave(self, path: str = "/settings") -> tuple[str, str]:
        """Where the service sends a browser, and the cookie that this keeps."""
        answer = await self._get(f"{self.api.url}/sign-in/oidc?next={path}", "")
        assert answer.status == 303, await answer.text()
        cookie = SimpleCookie(answer.headers["set-cookie"])["picket_login"].value
        return answer.headers["location"], cookie

    async def enter(self, subject: str = "ann") -> ClientResponse:
        """All of it: what the service answers at last."""
        url, cookie = await self.leave()
        back = await self.provider.answer(self.api.http, url, sub=subject)
        return await self.come_back(back, cookie)

    async def come_back(self, url: str, cookie: str) -> ClientResponse:
        return await self._get(url, f"picket_login={cookie}")

    async def _get(self, url: str, cookie: str) -> ClientResponse:
        headers = {"cookie": cookie} if cookie else {}
        async with self.api.http.get(url, headers=headers, allow_redirects=False) as answer:
            await answer.read()
            return answer


@pytest.fixture
async def login(api: PublicApi, provider: IdentityProvider) -> AsyncIterator[Login]:
    made = Login(api, provider)
    await made.allow()
    await provider.know(api.http, "ann", **ANN)
    return made


async def refusal(answer: ClientResponse, status: int = 403) -> str:
    assert answer.status == status, await answer.text()
    assert "picket_session" not in str(answer.headers.getall("set-cookie", []))
    return await answer.text()


async def settings_page(login: Login, answer: ClientResponse) -> str:
    assert answer.status == 303, await answer.text()
    assert answer.headers["location"] == "/settings"
    cookies = "\n".join(answer.headers.getall("set-cookie"))
    session = session_of(next(one for one in cookies.splitlines() if "picket_session" in one))
    user = WebUser(login.api.url, login.api.http, session)
    return (await user.get("/settings")).text


async def test_a_user_signs_in_by_the_provider(login: Login) -> None:
    await a_user(login.api, password=None)

    page = await settings_page(login, await login.enter())

    assert "ann@example.com" in page


async def test_the_page_offers_it_only_where_it_is_set(api: PublicApi, login: Login) -> None:
    async with api.http.get(api.url + "/sign-in") as answer:
        assert "Sign in by" in await answer.text()
    object.__setattr__(api.backend, "oidc", None)
    async with api.http.get(api.url + "/sign-in") as answer:
        assert "Sign in by" not in await answer.text()
    async with api.http.get(api.url + "/sign-in/oidc") as answer:
        assert answer.status == 404


async def test_pkce_state_and_nonce_are_of_this_attempt(login: Login) -> None:
    url, cookie = await login.leave()
    asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    attempt = read_attempt(PEPPER, cookie, now_ms=0)
    assert attempt is not None

    assert asked["state"] == attempt.state
    assert asked["nonce"] == attempt.nonce
    assert asked["code_challenge_method"] == "S256"
    assert asked["code_challenge"] == challenge_of(attempt)
    assert attempt.verifier not in url
    assert len({attempt.state, attempt.nonce, attempt.verifier}) == 3


async def test_once_connected_the_name_at_the_provider_counts_and_not_the_address(
    login: Login,
) -> None:
    user = await a_user(login.api, password=None)
    await login.enter()
    await login.provider.know(login.api.http, "ann", **{**ANN, "email": "married@example.com"})
    await login.provider.know(login.api.http, "thief", **ANN)

    assert "ann@example.com" in await settings_page(login, await login.enter())
    assert "another person" in await refusal(await login.enter("thief"))
    await login.api.database.write(lambda c: sign_in.disable_user(c, user.id, now_ms=1))
    await login.api.database.write(lambda c: users.enable(c, user.id))
    assert "ann@example.com" in await settings_page(login, await login.enter("thief"))


async def test_whoever_is_not_added_is_refused(login: Login) -> None:
    assert "no user with the address ann@example.com" in await refusal(await login.enter())


async def test_an_address_that_is_not_verified_is_nobodys(login: Login) -> None:
    await a_user(login.api, password=None)
    await login.provider.know(login.api.http, "mallory", **{**ANN, "email_verified": False})

    assert "verified no mail address" in await refusal(await login.enter("mallory"))


async def test_a_disabled_user_is_refused(login: Login) -> None:
    user = await a_user(login.api, password=None)
    await login.enter()
    await login.api.database.write(lambda c: sign_in.disable_user(c, user.id, now_ms=1))

    assert "disabled" in await refusal(await login.enter())


async def test_people_of_allowed_domains_become_users_who_may_read(login: Login) -> None:
    await login.allow(domains=("example.com",))
    await login.provider.know(login.api.http, "eve", email="eve@evil.example", email_verified=True)

    page = await settings_page(login, await login.enter())

    assert "Ann Lee" in page
    assert "read only" in page
    assert "eve@evil.example is not one" in await refusal(await login.enter("eve"))


async def test_groups_give_roles_at_each_sign_in(login: Login) -> None:
    await login.allow(roles={"sre": Role.READ_WRITE, "staff": Role.READ_ONLY})
    pages = []
    for groups in (["staff", "sre"], ["staff"]):
        await login.provider.know(login.api.http, "ann", **ANN, groups=groups)
        pages.append(await settings_page(login, await login.enter()))
    await login.provider.know(login.api.http, "ann", **ANN, groups=["guests"])

    assert "read and write" in pages[0]
    assert "read only" in pages[1]
    assert "None of your groups" in await refusal(await login.enter())


async def test_an_answer_is_good_for_the_browser_that_asked_and_once(login: Login) -> None:
    await a_user(login.api, password=None)
    url, cookie = await login.leave()
    _, other = await login.leave()
    back = await login.provider.answer(login.api.http, url, sub="ann")

    assert "begun in another browser" in await refusal(await login.come_back(back, other))
    assert "begun in another browser" in await refusal(await login.come_back(back, "x.y"))
    assert (await login.come_back(back, cookie)).status == 303
    assert "or is over" in await refusal(await login.come_back(back, cookie))


async def test_an_attempt_that_failed_is_not_tried_again(login: Login) -> None:
    url, cookie = await login.leave()
    state = parse_qs(urlsplit(url).query)["state"][0]
    back = f"{login.api.url}/sign-in/oidc/callback?code=guessed&state={state}"

    assert "answered 400" in await refusal(await login.come_back(back, cookie), 502)
    assert "or is over" in await refusal(await login.come_back(back, cookie))


async def test_ways_to_the_provider_and_false_ways_back_are_limited(login: Login) -> None:
    few = {RateClass.OIDC: Allowance(2), RateClass.REFUSED: Allowance(2)}
    limits = RateLimits(monotonic=time.monotonic, allowances=few)
    object.__setattr__(login.api.backend, "limits", limits)

    away = [(await login._get(f"{login.api.url}/sign-in/oidc", "")).status for _ in range(3)]
    back = [(await login.come_back(f"{login.api.url}{BACK}", "x.y")).status for _ in range(3)]

    assert away == [303, 303, 429]
    assert back == [403, 403, 429]


async def test_ways_back_from_the_provider_are_limited_by_address(login: Login) -> None:
    few = {RateClass.OIDC: Allowance(1)}
    api = login.api
    limits = SignInLimits(api.database, api.backend.clock, PEPPER, few)
    object.__setattr__(api.backend, "sign_in_limits", limits)
    await a_user(api, password=None)

    assert [(await login.enter()).status for _ in range(2)] == [303, 429]


async def test_an_attempt_ends(login: Login) -> None:
    _, cookie = await login.leave()
    attempt = read_attempt(PEPPER, cookie, now_ms=0)
    assert attempt is not None

    began_ms = attempt.expires_ms - ATTEMPT_MS
    assert read_attempt(PEPPER, cookie, now_ms=began_ms + ATTEMPT_MS - 1) == attempt
    assert read_attempt(PEPPER, cookie, now_ms=began_ms + ATTEMPT_MS) is None
    forged = write_attempt(PEPPER, replace(attempt, state="mine")).partition(".")[0]
    assert read_attempt(PEPPER, forged + "." + cookie.partition(".")[2], now_ms=0) is None


async def test_a_person_who_declines_is_told_so(login: Login) -> None:
    url, cookie = await login.leave()
    state = parse_qs(urlsplit(url).query)["state"][0]
    back = f"{login.api.url}/sign-in/oidc/callback?error=access_denied&state={state}"

    assert "signed nobody in: access_denied" in await refusal(await login.come_back(back, cookie))


async def test_an_answer_of_another_issuer_is_refused(login: Login) -> None:
    await a_user(login.api, password=None)
    url, cookie = await login.leave()
    back = await login.provider.answer(login.api.http, url, sub="ann")

    answer = await login.come_back(f"{back}&iss=https://evil.example", cookie)

    assert "does not come from" in await refusal(answer, 502)


async def test_a_token_for_another_attempt_is_refused(login: Login) -> None:
    """The code of one attempt, with the state of another: the nonce is not that of the browser."""
    await a_user(login.api, password=None)
    (first, _), (second, cookie) = await login.leave(), await login.leave()
    stolen = await login.provider.answer(login.api.http, first, sub="ann")
    code = parse_qs(urlsplit(stolen).query)["code"][0]
    state = parse_qs(urlsplit(second).query)["state"][0]
    back = f"{login.api.url}/sign-in/oidc/callback?code={code}&state={state}"

    assert "cannot be trusted" in await refusal(await login.come_back(back, cookie), 502)


async def test_a_wrong_secret_is_said_as_the_provider_says_it(login: Login) -> None:
    await login.allow(client_secret="wrong")

    assert "answered 401 (" in await refusal(await login.enter(), 502)


@pytest.fixture
async def impostor() -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """A web server that says of itself what a test wants."""
    said: dict[str, Any] = {}

    async def handle(_request: web.BaseRequest) -> web.Response:
        return web.json_response(said)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}", said
    await runner.cleanup()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"issuer": "https://other.example"}, "calls itself https://other.example"),
        ({"issuer": "OWN"}, "names no https address as its authorization_endpoint"),
        (
            {
                "issuer": "OWN",
                "authorization_endpoint": "OWN/a",
                "token_endpoint": "file:///etc/passwd",
                "jwks_uri": "OWN/k",
            },
            "names no https address as its token_endpoint",
        ),
    ],
)
async def test_what_a_provider_says_of_itself_is_checked(
    login: Login,
    impostor: tuple[str, dict[str, Any]],
    said: Mapping[str, str],
    words: str,
) -> None:
    url, served = impostor
    served.update({name: value.replace("OWN", url) for name, value in said.items()})
    login.use(OidcSettings(issuer=url, client_id="picket"))

    async with login.api.http.get(login.api.url + "/sign-in/oidc", allow_redirects=False) as answer:
        assert words in await refusal(answer, 502)


async def test_other_hosts_are_reached_under_the_rule_of_the_service(
    login: Login, impostor: tuple[str, dict[str, Any]]
) -> None:
    """The issuer is 127.0.0.1, which the operator chose; localhost is another name."""
    url, served = impostor
    elsewhere = url.replace("127.0.0.1", "localhost")
    served.update(
        issuer=url,
        authorization_endpoint=url,
        token_endpoint=elsewhere,
        jwks_uri=url,
    )
    login.use(OidcSettings(issuer=url, client_id="picket"))
    asked, cookie = await login.leave()
    state = parse_qs(urlsplit(asked).query)["state"][0]
    back = f"{login.api.url}/sign-in/oidc/callback?code=x&state={state}"

    text = await refusal(await login.come_back(back, cookie), 502)

    assert "a loopback address; ALERT_EGRESS_ALLOW can allow it" in text


async def test_a_provider_that_is_away_is_said_to_be(login: Login) -> None:
    login.use(OidcSettings(issuer="http://127.0.0.1:9", client_id="picket"))

    async with login.api.http.get(login.api.url + "/sign-in/oidc", allow_redirects=False) as answer:
        assert "identity provider at 127.0.0.1:9 cannot be reached" in await refusal(answer, 502)


async def test_a_provider_that_failed_is_left_alone_for_a_moment(login: Login) -> None:
    asked: list[str] = []
    passed_s = [0.0]

    async def fail(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=500)

    app = web.Application()
    app.router.add_get("/{path:.*}", fail)
    async with TestServer(app) as server:
        settings = OidcSettings(issuer=str(server.make_url("")), client_id="picket")
        made = OpenIdProvider(settings, EgressRule(), monotonic=lambda: passed_s[0])
        object.__setattr__(login.api.backend, "oidc", made)
        start = f"{login.api.url}/sign-in/oidc"

        clicks = await asyncio.gather(*(login._get(start, "") for _ in range(4)))
        assert all(["answered 500" in await refusal(one, 502) for one in clicks])
        assert len(asked) == 1
        passed_s[0] += 11
        await refusal(await login._get(start, ""), 502)
        assert len(asked) == 2
