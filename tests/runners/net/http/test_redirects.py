"""Chains of redirects: where they lead, what goes along, where they end."""

from collections.abc import AsyncIterator

import pytest

from contract.requests import BasicAuth, BodyType, HttpMethod, KeyValue
from contract.result import FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from tests.builders.patience import GROWING_S, LONG_S
from tests.builders.specs import an_http_request, headers
from tests.servers.http_origin import Page, http_origin, redirect, reply, silence


@pytest.fixture
async def engine() -> AsyncIterator[HttpEngine]:
    async with HttpEngine(EgressRules()) as engine:
        yield engine


async def test_each_hop_is_recorded_with_its_own_time(engine: HttpEngine) -> None:
    pages = {"/a": redirect("/b"), "/b": redirect("c?d=1", status="301 Moved"), "/c": reply()}
    async with http_origin(pages) as origin:
        seen = await engine.exchange(an_http_request(origin.url("/a")), timeout_s=LONG_S)
    assert seen.failure is None
    assert [(hop.url, hop.status_code, hop.location) for hop in seen.hops] == [
        (origin.url("/a"), 302, "/b"),
        (origin.url("/b"), 301, "c?d=1"),
        (origin.url("/c?d=1"), 200, None),
    ]
    total = sum(hop.total_ms or 0 for hop in seen.hops)
    assert seen.timings.total == pytest.approx(total)
    assert seen.sent.url == origin.url("/a")


async def test_a_redirect_stays_the_answer_when_it_is_not_to_be_followed(
    engine: HttpEngine,
) -> None:
    async with http_origin({"/a": redirect("/b")}) as origin:
        request = an_http_request(origin.url("/a"), follow_redirects=False)
        seen = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.answer is not None
    assert seen.answer.head.status_code == 302
    assert len(origin.asked) == 1


@pytest.mark.parametrize("status", ["300 Multiple Choices", "304 Not Modified", "201 Created"])
async def test_other_answers_with_a_location_are_no_redirect(
    engine: HttpEngine, status: str
) -> None:
    async with http_origin(redirect("/b", status=status)) as origin:
        seen = await engine.exchange(an_http_request(origin.url("/a")), timeout_s=LONG_S)
    assert len(seen.hops) == 1


async def test_a_loop_ends_after_ten_redirects_and_is_shown(engine: HttpEngine) -> None:
    pages = {"/a": redirect("/b"), "/b": redirect("/a")}
    async with http_origin(pages) as origin:
        seen = await engine.exchange(an_http_request(origin.url("/a")), timeout_s=LONG_S)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.REDIRECT
    assert seen.failure.message == (
        f"Gave up after 10 redirects; the last one pointed to {origin.url('/b')}, "
        "which goes round in a circle: /b → /a → /b."
    )
    assert len(seen.hops) == 11
    assert seen.answer is not None


async def test_ten_redirects_are_followed(engine: HttpEngine) -> None:
    pages: dict[str, Page] = {f"/{n}": redirect(f"/{n + 1}") for n in range(10)}
    async with http_origin({**pages, "/10": reply(b"there")}) as origin:
        seen = await engine.exchange(an_http_request(origin.url("/0")), timeout_s=LONG_S)
    assert seen.failure is None
    assert seen.answer is not None
    assert seen.answer.body == b"there"


async def test_a_long_chain_without_a_loop_names_the_last_location(engine: HttpEngine) -> None:
    pages: dict[str, Page] = {f"/{n}": redirect(f"/{n + 1}") for n in range(20)}
    async with http_origin(pages) as origin:
        seen = await engine.exchange(an_http_request(origin.url("/0")), timeout_s=LONG_S)
    assert seen.failure is not None
    assert seen.failure.message.endswith(f"the last one pointed to {origin.url('/11')}.")


NO_HOST = "it has no host"
NOT_HTTP = "it must start with http:// or https://"


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("ftp://127.0.0.1/", NOT_HTTP),
        ("javascript:alert(1)", NOT_HTTP),
        ("http://a:0/", "port 0 cannot be reached"),
        ("http://a:99999/", "its port is not a number from 1 to 65535"),
        ("http://[::1/", "its host cannot be read"),
        ("http:///login", NO_HOST),
        ("https:///login", NO_HOST),
        ("///login", NO_HOST),
        ("http:login", NO_HOST),
    ],
)
async def test_a_location_that_leads_nowhere_is_refused_and_says_why(
    engine: HttpEngine, location: str, why: str
) -> None:
    async with http_origin(redirect(location)) as origin:
        seen = await engine.exchange(an_http_request(origin.url("/a")), timeout_s=LONG_S)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.REDIRECT
    assert seen.failure.message == (
        f"{origin.url('/a')} redirects to {location}, "
        f"which is not a URL that can be followed: {why}."
    )
    assert len(origin.asked) == 1


@pytest.mark.parametrize(
    ("status", "method", "after"),
    [
        ("301 Moved", "POST", "GET"),
        ("302 Found", "POST", "GET"),
        ("302 Found", "PUT", "PUT"),
        ("303 See Other", "POST", "GET"),
        ("303 See Other", "DELETE", "GET"),
        ("303 See Other", "HEAD", "HEAD"),
        ("307 Temporary", "POST", "POST"),
        ("308 Permanent", "PATCH", "PATCH"),
    ],
)
async def test_method_and_body_follow_the_rules_of_the_status(
    engine: HttpEngine, status: str, method: str, after: str
) -> None:
    async with http_origin({"/a": redirect("/b", status=status), "/b": reply()}) as origin:
        request = an_http_request(
            origin.url("/a"), method=HttpMethod(method), body='{"a":1}', body_type=BodyType.JSON
        )
        seen = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.failure is None
    last = origin.asked[-1]
    assert last.method == after
    keeps_body = after == method and method != "HEAD"
    assert last.body == (b'{"a":1}' if keeps_body else b"")
    assert (last.one("content-type") is None) == (after != method)


async def test_credentials_stay_at_their_origin_and_do_not_come_back(engine: HttpEngine) -> None:
    async with http_origin(reply()) as away:
        pages: dict[str, Page] = {}
        async with http_origin(pages) as home:
            pages["/a"] = redirect("/b")
            pages["/b"] = redirect(away.url("/c"))
            request = an_http_request(
                home.url("/a"),
                basic_auth=BasicAuth(username="u", password="p"),
                headers=(
                    KeyValue(key="Cookie", value="id=1"),
                    KeyValue(key="x-key", value="secret", locked=True),
                    KeyValue(key="x-open", value="hello"),
                ),
            )
            seen = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.failure is None
    at_home, stranger = home.asked[-1], away.asked[-1]
    assert at_home.one("authorization") is not None
    assert at_home.one("cookie") == "id=1"
    assert at_home.one("x-key") == "secret"
    for name in ("authorization", "cookie", "x-key"):
        assert stranger.one(name) is None
    assert stranger.one("x-open") == "hello"
    assert stranger.one("host") == f"127.0.0.1:{away.port}"


async def test_cookies_set_on_the_way_are_sent_back(engine: HttpEngine) -> None:
    pages = {
        "/login": redirect("/home", set_cookie="session=42; Path=/; HttpOnly"),
        "/home": reply(),
    }
    async with http_origin(pages) as origin:
        request = an_http_request(origin.url("/login"), headers=headers({"Cookie": "mine=1"}))
        await engine.exchange(request, timeout_s=LONG_S)
        assert origin.asked[-1].one("cookie") == "mine=1; session=42"
        again = an_http_request(origin.url("/home"))
        await engine.exchange(again, timeout_s=LONG_S)
        assert origin.asked[-1].one("cookie") is None


async def test_cookies_set_on_the_way_do_not_leave_their_host(engine: HttpEngine) -> None:
    async with http_origin(reply()) as away:
        place = f"http://localhost:{away.port}/"
        async with http_origin(redirect(place, set_cookie="session=42")) as home:
            seen = await engine.exchange(an_http_request(home.url()), timeout_s=LONG_S)
    assert seen.failure is None
    assert away.asked[-1].one("cookie") is None


async def test_the_time_limit_is_for_the_whole_chain(engine: HttpEngine) -> None:
    async with http_origin({"/a": redirect("/b"), "/b": silence}) as origin:
        for timeout_s in GROWING_S:
            seen = await engine.exchange(an_http_request(origin.url("/a")), timeout_s=timeout_s)
            assert seen.failure is not None
            assert seen.failure.kind is FailureKind.TIMEOUT
            assert seen.failure.message.endswith(f"within {timeout_s:g} s.")
            assert seen.answer is None
            if seen.hops:
                break
    assert [hop.status_code for hop in seen.hops] == [302]


async def test_egress_rules_hold_on_every_hop(engine: HttpEngine) -> None:
    async with http_origin(redirect("http://169.254.169.254/latest")) as origin:
        seen = await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.EGRESS
    assert "169.254.169.254 is refused" in seen.failure.message
    assert len(seen.hops) == 1


async def test_a_cookie_that_is_set_again_is_sent_once_with_its_newest_value(
    engine: HttpEngine,
) -> None:
    pages = {
        "/a": redirect("/b", set_cookie="step=1; Path=/"),
        "/b": redirect("/c", set_cookie="step=2; Path=/"),
        "/c": redirect("/d", set_cookie="step=; Path=/; Max-Age=0"),
        "/d": reply(),
    }
    async with http_origin(pages) as origin:
        request = an_http_request(origin.url("/a"), headers=headers({"Cookie": "mine=1"}))
        await engine.exchange(request, timeout_s=LONG_S)
    assert [asked.one("cookie") for asked in origin.asked] == [
        "mine=1",
        "mine=1; step=1",
        "mine=1; step=2",
        "mine=1",
    ]


async def test_an_api_key_stays_at_its_origin(engine: HttpEngine) -> None:
    async with (
        http_origin(reply()) as away,
        http_origin(redirect(away.url("/c"))) as home,
    ):
        request = an_http_request(home.url(), headers=headers({"X-API-Key": "secret"}))
        await engine.exchange(request, timeout_s=LONG_S)
    assert home.asked[0].one("x-api-key") == "secret"
    assert away.asked[0].one("x-api-key") is None


async def test_an_endless_location_is_not_followed(engine: HttpEngine) -> None:
    async with http_origin(redirect("/" + "a" * 100_000)) as origin:
        seen = await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.REDIRECT
    assert "redirects to an address of 100001 characters; 8192 is" in seen.failure.message
    assert len(seen.failure.message) + len(str(seen.failure.detail["location"])) < 2000
