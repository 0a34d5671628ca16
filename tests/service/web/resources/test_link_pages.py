"""The links that run a check or a group, as whoever is signed in manages them."""

from html import unescape

import pytest
from playwright.async_api import Browser, Page

from service.accounts.model import Role
from service.web.cookies import SESSION_COOKIE
from tests.builders.check_bodies import check_body
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser, sign_in

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)> \u202e ' + "W" * 120
KINDS = pytest.mark.parametrize("kind", ["checks", "groups"])


async def make(user: ApiUser, kind: str, name: str = "Shop") -> tuple[str, str]:
    """A check or a group: its page, and its trigger in the API."""
    if kind == "checks":
        made = await user.post("/v1/checks/url", check_body("url", name=name))
        path = f"/v1/triggers/checks/{made.body['id']}"
    else:
        made = await user.post("/v2/check-groups", {"name": name})
        path = f"/v1/triggers/check-groups/{made.body['id']}"
    assert made.status == 201, made.body
    return f"/{kind}/{made.body['id']}", path


@KINDS
async def test_a_link_is_made_shown_once_and_deleted(
    alice: ApiUser, page: Page, web: WebUser, kind: str
) -> None:
    here, trigger = await make(alice, kind)
    await page.goto(f"{here}?tab=settings" if kind == "checks" else f"{here}/edit")
    await page.get_by_role("link", name="Run by link").click()
    await page.get_by_role("button", name="Make a link").click()
    link, example = await page.locator(".copy code").all_inner_texts()

    stored = (await alice.get(trigger)).body
    assert link.startswith(f"{web.url}/{trigger.removeprefix('/v1/triggers/')}/trigger/tr_")
    assert link.endswith(f"/{stored['token']}")
    assert example.endswith(link)
    await page.reload()
    assert link not in await page.content()
    assert f"tr_****{link[-4:]}" in await page.content()

    await page.get_by_role("link", name="Delete").click()
    assert (await alice.get(trigger)).status == 200
    await page.get_by_role("button", name="Delete link").click()
    await page.get_by_role("button", name="Make a link").wait_for()
    assert (await alice.get(trigger)).status == 404


async def test_a_new_link_takes_the_place_of_the_former_one(alice: ApiUser, web: WebUser) -> None:
    here, trigger = await make(alice, "checks")
    former = (await alice.post(trigger)).body

    shown = await web.follow(await web.post(f"{here}/link", {}))

    assert (await alice.get(trigger)).body["id"] != former["id"]
    link = unescape(shown.text).partition("<code>http")[2].partition("</code>")[0]
    assert link.rpartition("/")[2].startswith("tr_")
    assert former["token"] not in shown.text
    async with web.http.get(f"{web.url}/{trigger[13:]}/trigger/{former['token']}") as answer:
        assert answer.status == 404


@KINDS
async def test_the_link_of_another_account_is_not_found(
    api: PublicApi, alice: ApiUser, kind: str
) -> None:
    here, trigger = await make(alice, kind)
    before = (await alice.post(trigger)).body["id"]
    bob = await sign_in(api, (await api.another_user("Bob")).secrets.api_key)

    assert (await bob.get(f"{here}/link")).status == 404
    assert (await bob.post(f"{here}/link", {})).status == 404
    assert (await bob.get(f"{here}/link/delete")).status == 404
    await bob.post(f"{here}/link/delete", {})
    assert (await alice.get(trigger)).body["id"] == before


async def test_who_may_only_read_is_offered_nothing_to_change(
    api: PublicApi, alice: ApiUser
) -> None:
    here, trigger = await make(alice, "checks")
    reader = await sign_in(api, (await api.colleague("Rita", role=Role.READ_ONLY)).secrets.api_key)

    assert "Make a link" not in (await reader.get(f"{here}/link")).text
    assert (await reader.post(f"{here}/link", {})).status == 403
    await alice.post(trigger)
    assert "Replace the link" not in (await reader.get(f"{here}/link")).text
    assert (await reader.post(f"{here}/link/delete", {})).status == 422
    assert (await alice.get(trigger)).status == 200


@KINDS
async def test_its_pages_are_accessible_and_nothing_in_them_runs(
    browser: Browser, alice: ApiUser, web: WebUser, kind: str
) -> None:
    here, trigger = await make(alice, kind, HOSTILE)
    await alice.post(trigger)
    for theme, width in (("light", 1440), ("dark", 390)):
        context = await browser.new_context(
            base_url=web.url, color_scheme=theme, viewport={"width": width, "height": 900}
        )
        await context.add_cookies([{"name": SESSION_COOKIE, "value": web.session, "url": web.url}])
        page = await context.new_page()
        complaints = collect_complaints(page)
        for path in (f"{here}/link", f"{here}/link/delete"):
            await page.goto(path)
            assert await find_violations(page) == [], path
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert complaints == []
        await context.close()
