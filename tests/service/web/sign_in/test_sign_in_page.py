"""Who is let in, and what strangers learn."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from aiohttp import ClientResponse
from argon2 import PasswordHasher
from sqlalchemy import Connection

from service.accounts.model import Role
from service.clock import Clock
from service.http.rate_limits.rate_limit import ALLOWANCES, Allowance, RateClass
from service.sign_in import actions as sign_in
from service.sign_in.attempts import SignInLimits
from service.sign_in.model import Principal
from service.users import actions as users
from service.users.passwords import Passwords, Verdict
from service.web.cookies import BROWSER_COOKIE
from tests.builders.web_users import PASSWORD, a_user
from tests.servers.public_api import PEPPER, PublicApi, serve_public_api
from tests.service.web.conftest import WebUser, enter, session_of, sign_in_user
from tests.service.web.conftest import sign_in as sign_in_key

WRONG = "The e-mail address or the password is wrong"


async def post(api: PublicApi, form: dict[str, str], **headers: str) -> ClientResponse:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with api.http.post(
        api.url + "/sign-in", data=form, headers=sent, allow_redirects=False
    ) as answer:
        await answer.read()
        return answer


async def refuse(api: PublicApi, email: str, password: str = PASSWORD) -> str:
    answer = await post(api, {"email": email, "password": password})
    assert answer.status == 422
    assert "set-cookie" not in answer.headers
    return await answer.text()


async def a_link(api: PublicApi, who: Principal) -> str:
    return await api.database.write(
        lambda c: sign_in.create_link(c, PEPPER, who, now_ms=api.backend.clock.now_ms(c))
    )


async def test_a_user_signs_in_with_address_and_password(api: PublicApi) -> None:
    await a_user(api)

    ann = await sign_in_user(api, "ANN@example.com ")

    text = (await ann.get("/settings")).text
    assert "ann@example.com" in text
    assert "read and write" in text


async def test_whatever_is_wrong_is_said_in_the_same_words(api: PublicApi) -> None:
    await a_user(api)
    await a_user(api, "new@example.com", password=None)
    gone = await a_user(api, "gone@example.com")
    await api.database.write(lambda c: sign_in.disable_user(c, gone.id, now_ms=1))

    pages = [
        (await refuse(api, email, password)).replace(email, "")
        for email, password in (
            ("ann@example.com", "wrong password"),
            ("nobody@example.com", PASSWORD),
            ("new@example.com", PASSWORD),
            ("gone@example.com", PASSWORD),
        )
    ]

    assert WRONG in pages[0]
    assert len(set(pages)) == 1


@dataclass(slots=True)
class Work:
    """What was checked, and against what."""

    stored: list[str | None] = field(default_factory=list)


class CountedPasswords(Passwords):
    """Passwords that note what they do."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    async def verify(
        self, stored: str | None, password: str, *, by_stranger: bool = False
    ) -> Verdict:
        self._work.stored.append(stored)
        return await super().verify(stored, password, by_stranger=by_stranger)


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[PublicApi]:
    """An API that allows three attempts a minute."""
    async with serve_public_api(tmp_path, per_minute=3) as running:
        yield running


async def test_a_refusal_takes_as_much_work_for_strangers_as_for_users(
    api: PublicApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_user(api)
    work = Work()
    object.__setattr__(api.backend, "passwords", CountedPasswords(work))

    await refuse(api, "ann@example.com", "wrong password")
    await refuse(api, "nobody@example.com")

    assert len(work.stored) == 2
    assert work.stored[1] is None


async def test_guesses_are_limited_by_address_and_by_user(strict: PublicApi) -> None:
    await a_user(strict)
    for _ in range(3):
        await refuse(strict, "ann@example.com", "wrong password")

    answer = await post(strict, {"email": "ann@example.com", "password": PASSWORD})

    assert answer.status == 429
    assert int(answer.headers["retry-after"]) > 0
    assert "Too many requests" in await answer.text()


async def test_guesses_at_one_user_are_limited_from_wherever_they_come(
    strict: PublicApi,
) -> None:
    await a_user(strict)
    places = [f"192.0.2.{number}" for number in range(4)]

    statuses = [
        (
            await post(
                strict,
                {"email": email, "password": "wrong password"},
                x_forwarded_for=place,
            )
        ).status
        for place, email in zip(places, ["ann@example.com", "ANN@example.com"] * 2, strict=True)
    ]

    assert statuses == [422, 422, 422, 429]


class StoppedClock(Clock):
    """No test of counts may depend on how quick the machine is."""

    def now_ms(self, _connection: Connection) -> int:
        return 1_790_000_000_000


@pytest.fixture
async def usual(api: PublicApi) -> PublicApi:
    """An API with the usual limits, but for that of a user from everywhere, which is low."""
    allowances = {**ALLOWANCES, RateClass.SIGN_INS_OF_USER: Allowance(30, 900)}
    limits = SignInLimits(api.database, StoppedClock(), PEPPER, allowances)
    object.__setattr__(api.backend, "sign_in_limits", limits)
    object.__setattr__(api.backend, "passwords", QuickPasswords())
    return api


class QuickPasswords(Passwords):
    """Passwords of which the right one is known: what is counted is not how long they take."""

    async def verify(
        self, stored: str | None, password: str, *, by_stranger: bool = False
    ) -> Verdict:
        return Verdict(is_right=stored is not None and password == PASSWORD)


async def attempt(api: PublicApi, place: str, **changes: str) -> ClientResponse:
    form = {"email": "ann@example.com", "password": PASSWORD, **changes}
    return await post(api, form, x_forwarded_for=place, cookie=form.pop("cookie", ""))


def known_browser(answer: ClientResponse) -> str:
    kept = SimpleCookie("\n".join(answer.headers.getall("set-cookie")).replace("\n", "; "))
    return f"{BROWSER_COOKIE}={kept[BROWSER_COOKIE].value}"


async def guess_from_everywhere(api: PublicApi, email: str = "ann@example.com") -> list[int]:
    """Guess until no stranger may any more: the statuses."""
    return [
        (await attempt(api, f"192.0.2.{place}", email=email, password="wrong password")).status
        for place in range(4)
        for _ in range(10)
    ]


async def test_guesses_from_one_address_keep_nobody_out_at_another(usual: PublicApi) -> None:
    await a_user(usual)
    guesses = [
        (await attempt(usual, "192.0.2.1", password="wrong password")).status for _ in range(40)
    ]
    assert guesses == [422] * 10 + [429] * 30

    assert (await attempt(usual, "192.0.2.2")).status == 303


async def test_guesses_from_everywhere_keep_out_no_browser_that_is_known(usual: PublicApi) -> None:
    await a_user(usual)
    cookie = known_browser(await attempt(usual, "198.51.100.1"))
    statuses = await guess_from_everywhere(usual)
    assert statuses.count(422) == 29  # the right one was counted, too

    assert (await attempt(usual, "198.51.100.2")).status == 429
    assert (await attempt(usual, "192.0.2.1", cookie=cookie)).status == 303


async def test_names_that_nobody_has_are_limited_like_users(usual: PublicApi) -> None:
    statuses = await guess_from_everywhere(usual, "nobody@example.com")

    assert statuses.count(422) == 30
    assert statuses[-1] == 429


async def test_a_known_browser_has_few_guesses_and_only_at_its_user(usual: PublicApi) -> None:
    await a_user(usual)
    await a_user(usual, "bob@example.com")
    cookie = known_browser(await attempt(usual, "198.51.100.1"))
    wrong = {"password": "wrong password", "cookie": cookie}

    own = [(await attempt(usual, f"192.0.2.{place}", **wrong)).status for place in range(11)]
    others = [
        (await attempt(usual, "192.0.2.99", email="bob@example.com", **wrong)).status
        for _ in range(11)
    ]

    assert own == others == [422] * 10 + [429]
    assert (await attempt(usual, "198.51.100.2")).status == 303


async def test_a_browser_is_known_no_longer_once_the_password_changes(usual: PublicApi) -> None:
    user = await a_user(usual)
    cookie = known_browser(await attempt(usual, "198.51.100.1"))
    await guess_from_everywhere(usual)

    await usual.database.write(lambda c: sign_in.set_password(c, user.id, "another hash"))

    assert (await attempt(usual, "192.0.2.1", cookie=cookie)).status == 429


async def test_guessed_keys_are_limited(strict: PublicApi) -> None:
    statuses = [(await post(strict, {"key": f"cu_{number}"})).status for number in range(4)]

    assert statuses == [422, 422, 422, 429]


async def test_a_hash_of_earlier_costs_is_stored_anew_at_sign_in(api: PublicApi) -> None:
    user = await a_user(api)
    weak = PasswordHasher(time_cost=1, memory_cost=1024).hash(PASSWORD)
    await api.database.write(lambda c: sign_in.set_password(c, user.id, weak))

    await sign_in_user(api, user.email)

    found = await api.database.read(lambda c: users.find_credentials(c, user.id))
    assert found is not None
    assert found.password_hash != weak
    await sign_in_user(api, user.email)


async def test_a_password_that_was_changed_while_it_was_checked_opens_nothing(
    api: PublicApi,
) -> None:
    user = await a_user(api)

    class Overtaken(Passwords):
        async def verify(
            self, stored: str | None, password: str, *, by_stranger: bool = False
        ) -> Verdict:
            verdict = await super().verify(stored, password, by_stranger=by_stranger)
            await api.database.write(lambda c: sign_in.set_password(c, user.id, "another"))
            return verdict

    object.__setattr__(api.backend, "passwords", Overtaken())
    assert WRONG in await refuse(api, user.email)


async def test_a_disabled_user_is_out_at_once_and_stays_out(api: PublicApi) -> None:
    user = await a_user(api)
    ann = await sign_in_user(api, user.email)
    link = await a_link(api, Principal(user_id=user.id))

    await api.database.write(lambda c: sign_in.disable_user(c, user.id, now_ms=1))

    assert (await ann.get("/settings")).status == 303
    assert (await replace(ann, session="").get(f"/sign-in/{link}")).status == 422
    await api.database.write(lambda c: users.enable(c, user.id))
    assert (await ann.get("/settings")).status == 303


async def test_sessions_end_when_the_password_changes(api: PublicApi) -> None:
    user = await a_user(api)
    ann = await sign_in_user(api, user.email)

    await api.database.write(lambda c: sign_in.set_password(c, user.id, "another"))

    assert (await ann.get("/settings")).status == 303


async def test_signing_out_everywhere_ends_the_sessions_of_all_browsers_and_of_nobody_else(
    api: PublicApi,
) -> None:
    await a_user(api)
    await a_user(api, "bob@example.com")
    here, there = [await sign_in_user(api, "ann@example.com") for _ in range(2)]
    bob = await sign_in_user(api, "bob@example.com")

    assert (await here.post("/sign-out/everywhere", {})).status == 303

    assert [(await one.get("/settings")).status for one in (here, there, bob)] == [303, 303, 200]


async def test_the_cookie_is_for_this_site_and_no_script(api: PublicApi) -> None:
    answer = await post(api, {"key": api.alice.secrets.api_key})
    cookie = SimpleCookie(answer.headers["set-cookie"])["picket_session"]

    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "lax", "/")
    assert not cookie["secure"]


async def test_by_https_the_cookie_is_bound_to_the_host(api: PublicApi) -> None:
    answer = await post(api, {"key": api.alice.secrets.api_key}, x_forwarded_proto="https")
    cookie = SimpleCookie(answer.headers["set-cookie"])["__Host-picket_session"]

    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "lax", "/")
    assert cookie["secure"]
    assert not cookie["domain"]
    # The one without the prefix, which a neighbour could have set, opens nothing there.
    for name, status in (("__Host-picket_session", 200), ("picket_session", 303)):
        headers = {"cookie": f"{name}={cookie.value}", "x-forwarded-proto": "https"}
        async with api.http.get(
            api.url + "/settings", headers=headers, allow_redirects=False
        ) as page:
            assert page.status == status


async def test_signing_in_makes_a_new_session_and_ends_the_one_before(
    api: PublicApi, web: WebUser
) -> None:
    """Whoever planted a session, or knows the old one, is not signed in."""
    headers = {"cookie": f"picket_session={web.session}"}
    form = {"key": api.alice.secrets.api_key}
    async with api.http.post(
        api.url + "/sign-in", data=form, headers=headers, allow_redirects=False
    ) as answer:
        new = session_of(answer.headers["set-cookie"])

    assert new != web.session
    assert (await web.get("/settings")).status == 303
    assert (await replace(web, session=new).get("/settings")).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "same-origin"}, 303),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "OWN"}, 303),
        ({}, 303),
    ],
)
async def test_another_site_cannot_sign_somebody_in(
    api: PublicApi, headers: dict[str, str], status: int
) -> None:
    sent = {name: value.replace("OWN", api.url) for name, value in headers.items()}
    answer = await post(api, {"key": api.alice.secrets.api_key}, **sent)

    assert answer.status == status


async def test_another_site_cannot_send_a_form_even_with_the_token(web: WebUser) -> None:
    token = await web.token()
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "same-site"}):
        data = [("csrf", token)]
        refused = await web.ask("POST", "/sign-out", data=data, headers=headers)
        assert refused.status == 403
        assert "another site" in refused.text

    assert (await web.get("/settings")).status == 200


async def test_a_link_signs_in_and_leads_to_the_first_page(api: PublicApi, web: WebUser) -> None:
    user = await a_user(api)
    link = await a_link(api, Principal(user_id=user.id))
    stranger = replace(web, session="")

    answer = await stranger.post(f"/sign-in/{link}", {}, token="")

    assert (answer.status, answer.headers["location"]) == (303, "/")
    ann = replace(web, session=session_of(answer.headers["set-cookie"]))
    assert "ann@example.com" in (await ann.get("/settings")).text
    assert "used before" in (await stranger.get(f"/sign-in/{link}")).text


async def test_whoever_only_looks_at_a_link_does_not_use_it_up(
    api: PublicApi, web: WebUser
) -> None:
    user = await a_user(api)
    link = await a_link(api, Principal(user_id=user.id))
    stranger = replace(web, session="")

    seen = await stranger.get(f"/sign-in/{link}")
    looked = await stranger.ask("HEAD", f"/sign-in/{link}")

    assert (seen.status, looked.status) == (200, 200)
    assert "set-cookie" not in seen.headers
    assert "Sign in" in seen.text
    ann = await enter(api, {}, f"/sign-in/{link}")
    assert "ann@example.com" in (await ann.get("/settings")).text


async def test_a_page_elsewhere_signs_nobody_in_by_a_link(api: PublicApi, web: WebUser) -> None:
    user = await a_user(api)
    link = await a_link(api, Principal(user_id=user.id))

    refused = await replace(web, session="").ask(
        "POST", f"/sign-in/{link}", headers={"origin": "https://evil.example"}
    )

    assert refused.status == 403
    assert "set-cookie" not in refused.headers


async def test_an_api_key_is_exchanged_for_a_link(api: PublicApi, web: WebUser) -> None:
    made = await api.alice.post("/sign-in/links")
    refused = await replace(api.alice, secrets=replace(api.alice.secrets, api_key="cu_x")).post(
        "/sign-in/links"
    )

    assert (made.status, refused.status) == (200, 401)
    assert made.body["url"].startswith(api.url)
    path = made.body["url"].removeprefix(api.url)
    entered = await replace(web, session="").post(path, {}, token="")
    assert entered.status == 303


async def test_a_link_that_two_open_at_once_lets_one_in(api: PublicApi, web: WebUser) -> None:
    user = await a_user(api)
    link = await a_link(api, Principal(user_id=user.id))
    stranger = replace(web, session="")

    answers = await asyncio.gather(
        *(stranger.post(f"/sign-in/{link}", {}, token="") for _ in range(5))
    )

    assert sorted(answer.status for answer in answers) == [303, 422, 422, 422, 422]


async def test_a_user_who_may_only_read_changes_nothing_by_a_form(
    api: PublicApi,
) -> None:
    await a_user(api, role=Role.READ_ONLY)
    ann = await sign_in_user(api, "ann@example.com")

    refused = await ann.post("/locations/new", {"name": "Cellar", "slug": "cellar"})

    assert "READ_ONLY" in refused.text
    listed = (await api.alice.get("/v1/private-locations")).body
    assert [one["slugName"] for one in listed] == ["default"]


async def test_who_signed_in_is_in_the_audit_log_by_name(api: PublicApi) -> None:
    await a_user(api)
    ann = await sign_in_user(api, "ann@example.com")
    key = await sign_in_key(api, api.alice.secrets.api_key)
    await key.get("/settings")

    text = (await ann.get("/settings/audit?what=sessions")).text

    assert text.count(">Signed in<") == 2
    assert "<td>Ann<br>" in text
