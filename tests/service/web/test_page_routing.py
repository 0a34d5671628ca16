"""Who sees a page, and which forms are accepted."""

from dataclasses import replace

import pytest

from service.web.rendering import POLICY
from tests.servers.public_api import PublicApi
from tests.service.web.conftest import WebUser, sign_in


async def test_whoever_is_not_signed_in_is_asked_to_and_comes_back(web: WebUser) -> None:
    answer = await replace(web, session="").get("/ui?a=1")

    assert answer.status == 303
    assert answer.headers["location"] == "/sign-in?next=%2Fui%3Fa%3D1"


@pytest.mark.parametrize("session", ["wrong", "é", "x" * 5000])
async def test_a_session_that_nobody_made_opens_nothing(web: WebUser, session: str) -> None:
    assert (await replace(web, session=session).get("/ui")).status == 303


async def test_a_form_without_the_token_of_its_session_changes_nothing(
    api: PublicApi, web: WebUser
) -> None:
    colleague = await sign_in(api, (await api.colleague("Bob")).secrets.api_key)

    for token in ("", "zz", "00" * 64, await colleague.token()):
        refused = await web.post("/sign-out", {}, token=token)
        assert refused.status == 403
        assert "Nothing was changed" in refused.text

    assert (await web.get("/ui")).status == 200


async def test_tokens_differ_in_each_page(web: WebUser) -> None:
    assert await web.token() != await web.token()


async def test_whoever_signs_out_is_signed_out_on_the_server(web: WebUser) -> None:
    assert (await web.post("/sign-out", {})).status == 303

    assert (await web.get("/ui")).status == 303


async def test_a_page_allows_no_script_and_no_style_of_its_own(web: WebUser) -> None:
    answer = await web.get("/ui")

    assert answer.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert "<script>" not in answer.text
    assert " style=" not in answer.text


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:1", ""]
)
async def test_signing_in_leads_to_no_other_site(api: PublicApi, elsewhere: str) -> None:
    form = {"key": api.alice.secrets.api_key, "next": elsewhere}
    async with api.http.post(api.url + "/sign-in", data=form, allow_redirects=False) as answer:
        assert answer.headers["location"] == "/"


async def test_an_asset_is_kept_for_ever_and_has_one_address(web: WebUser) -> None:
    page = (await web.get("/ui")).text
    path = page.partition('href="/assets/')[2].partition('"')[0]

    answer = await web.get(f"/assets/{path}")
    other = await web.get(f"/assets/000000000000/{path.partition('/')[2]}")

    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert other.status == 404


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
async def test_pages_of_other_origins_can_fetch_and_change_nothing(web: WebUser, site: str) -> None:
    fetched = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    followed = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}

    assert (await web.get("/ui", headers=fetched)).status == 403
    assert (await web.get("/ui", headers=followed)).status == 200
    sent = await web.ask("POST", "/sign-out", data={"csrf": await web.token()}, headers=followed)
    assert sent.status == 403
    assert (await web.get("/ui")).status == 200


BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/nothing/here", 404, "There is no page at /nothing/here."),
        ("GET", "/settings/password", 405, "A form sends to this address"),
        ("DELETE", "/locations", 405, "DELETE is not supported at /locations"),
    ],
)
async def test_a_browser_is_shown_a_page_where_there_is_none(
    web: WebUser, method: str, path: str, status: int, said: str
) -> None:
    answer = await web.ask(method, path, headers=BROWSER)
    assert answer.status == status
    assert answer.headers["content-type"].startswith("text/html")
    assert said in answer.text
    assert 'aria-label="Main"' in answer.text, "whoever is signed in finds the way back"

    answer = await replace(web, session="").ask(method, path, headers=BROWSER)
    assert answer.status == status
    assert 'href="/sign-in"' in answer.text


@pytest.mark.parametrize(
    ("path", "accept"),
    [("/v1/nothing", BROWSER["accept"]), ("/nothing", "*/*"), ("/nothing", "application/json")],
)
async def test_programs_and_the_api_are_sent_the_one_error_body(
    web: WebUser, path: str, accept: str
) -> None:
    answer = await web.ask("GET", path, headers={"accept": accept})
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/json"
