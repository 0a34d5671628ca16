"""The overview as people use it, and how it stays true."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from service.accounts.model import Role
from service.web.cookies import SESSION_COOKIE
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import failed, passed, store
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser, sign_in

BROKEN = 'JSON_BODY $.status should equal "ok", but it is "degraded".'


async def a_check(user: ApiUser, kind: str = "url", **fields: Any) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", check_body(kind, **fields))
    assert answer.status == 201, answer.body
    body: dict[str, Any] = answer.body
    return body


async def now_ms(api: PublicApi) -> int:
    return await api.database.read(api.backend.clock.now_ms)


async def some_checks(api: PublicApi) -> None:
    at_ms = await now_ms(api)
    for name, outcome in (("Home", passed()), ("Cart", failed(BROKEN)), ("Search", None)):
        check = await a_check(api.alice, name=name, tags=["production", "team:shop"])
        if outcome is not None:
            await store(api, check, outcome, started_ms=at_ms - 60_000)


async def test_without_checks_the_page_says_what_to_do(page: Page) -> None:
    await page.goto("/")

    await expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()
    await expect(page.get_by_role("link", name="New check")).to_have_attribute(
        "href", "/checks/new"
    )
    await expect(page.get_by_text("/v1/checks/url")).to_be_visible()


async def test_without_a_script_filters_and_pages_work_and_stand_in_the_address(
    api: PublicApi, web: WebUser
) -> None:
    for number in range(101):
        await a_check(api.alice, name=f"Page {number:03}", tags=["odd"] if number % 2 else [])

    first, second = (await web.get("/")).text, (await web.get("/?page=2")).text
    odd = (await web.get("/?tag=odd&q=page")).text

    assert "Page 099" in first
    assert "Page 100" not in first
    assert 'href="/?page=2"' in first
    assert "Page 100" in second
    assert "50 checks match" in odd
    assert "Page 100" not in odd


async def test_a_filter_that_nothing_matches_can_be_cleared(api: PublicApi, page: Page) -> None:
    await a_check(api.alice, name="Home")
    await page.goto("/?q=nothing&status=failing&type=WRONG&page=-1&range=9y")

    await expect(page.get_by_role("heading", name="No check matches")).to_be_visible()
    await page.get_by_role("link", name="Clear the filter").first.click()
    await expect(page.get_by_role("link", name="Home")).to_be_visible()


async def test_the_next_page_comes_with_the_scroll(api: PublicApi, page: Page) -> None:
    for number in range(101):
        await a_check(api.alice, name=f"Page {number:03}")
    await page.goto("/")

    await page.keyboard.press("End")

    await expect(page.get_by_role("link", name="Page 100")).to_be_visible()
    await expect(page.get_by_role("link", name="Next 100")).to_have_count(0)


async def test_a_filter_swaps_the_list_and_goes_into_the_address(
    api: PublicApi, page: Page
) -> None:
    await some_checks(api)
    await page.goto("/")

    await page.get_by_role("searchbox").fill("hom")

    await expect(page.get_by_text("1 check matches")).to_be_visible()
    await expect(page.get_by_role("link", name="Cart")).to_have_count(0)
    await expect(page).to_have_url(f"{api.url}/?q=hom")
    await page.get_by_label("Status").select_option("Failing")
    await expect(page.get_by_role("heading", name="No check matches")).to_be_visible()
    await expect(page).to_have_url(f"{api.url}/?q=hom&status=failing")


async def test_checks_without_a_run_are_new_in_counts_filters_and_on_their_pages(
    api: PublicApi, web: WebUser
) -> None:
    made = await a_check(api.alice, name="Fresh")
    for path in ("/", "/?by=status", "/?status=unknown", f"/checks/{made['id']}"):
        shown = (await web.get(path)).text
        assert "New" in shown, path
        assert not re.search(r">\s*[\d ]*[Uu]nknown", shown), path
        assert 'aria-label="unknown"' not in shown, path


async def test_on_a_phone_every_filter_and_count_is_in_view(api: PublicApi, page: Page) -> None:
    await some_checks(api)
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto("/?q=a&tag=production&tag=team:shop")

    for one in await page.locator(".filter select, .filter .chip, .summary a").all():
        box = await one.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


async def test_results_appear_by_themselves_and_disturb_nobody(api: PublicApi, page: Page) -> None:
    await some_checks(api)
    complaints = collect_complaints(page)
    async with page.expect_response(lambda answer: answer.url.endswith("/live")):
        await page.goto("/")
    check = next(one for one in (await api.alice.get("/v1/checks")).body if one["name"] == "Search")
    await page.get_by_role("link", name="Search").focus()
    await page.locator("details.account > summary").click()
    await page.get_by_role("link", name="Search").focus()

    await store(api, check, failed("It answered 503."), started_ms=await now_ms(api))

    await expect(page.get_by_text("It answered 503.")).to_be_visible()
    await expect(page.get_by_text("2 failing")).to_be_visible()
    await expect(page.get_by_role("link", name="Search")).to_be_focused()
    await expect(page.locator("details.account")).to_have_attribute("open", "")
    assert complaints == []


async def test_where_streams_are_blocked_the_page_asks_now_and_then(
    api: PublicApi, page: Page
) -> None:
    await some_checks(api)
    await page.clock.install()
    await page.route("**/live", lambda route: route.abort())
    await page.goto("/")
    check = next(one for one in (await api.alice.get("/v1/checks")).body if one["name"] == "Home")
    await store(api, check, failed("It answered 503."), started_ms=await now_ms(api))

    await page.clock.run_for(20_000)

    await expect(page.get_by_text("It answered 503.")).to_be_visible()


async def test_keys_search_move_open_and_explain(api: PublicApi, page: Page) -> None:
    await some_checks(api)
    await page.route("**/checks/*", lambda route: route.fulfill(body="the check"))
    await page.goto("/")

    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await expect(page.get_by_role("searchbox")).to_be_focused()
    await page.keyboard.press("Escape")
    for key in "jjk":
        await page.keyboard.press(key)
    await expect(page.get_by_role("link", name="Cart")).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    check = next(one for one in (await api.alice.get("/v1/checks")).body if one["name"] == "Home")
    await expect(page).to_have_url(f"{api.url}/checks/{check['id']}")


async def test_a_check_is_run_by_a_key_and_its_end_is_said(api: PublicApi, page: Page) -> None:
    await some_checks(api)
    await page.goto("/")
    check = next(one for one in (await api.alice.get("/v1/checks")).body if one["name"] == "Home")
    await page.get_by_role("link", name="Home").focus()

    await page.keyboard.press("r")

    await expect(page.get_by_role("status")).to_have_text("Home runs now.")
    sessions = await api.database.read(
        lambda c: c.exec_driver_sql("SELECT id, check_id FROM session").all()
    )
    assert [one.check_id for one in sessions] == [check["id"]]
    run_id = await api.database.read(
        lambda c: c.exec_driver_sql("SELECT id FROM job WHERE session_id IS NOT NULL").scalar()
    )
    await store(api, check, passed(), session_id=sessions[0].id, run_id=run_id)
    await expect(page.get_by_role("status")).to_contain_text("Home: passed after")


async def test_whoever_may_only_read_runs_nothing_and_is_told_why(api: PublicApi) -> None:
    check = await a_check(api.alice)
    reader = await api.colleague("Reader", role=Role.READ_ONLY)
    web = await sign_in(api, reader.secrets.api_key)

    answer = await web.post("/overview/run", {"check": check["id"]})

    assert "READ_ONLY" in json.loads(answer.text)["line"]
    assert "next" not in json.loads(answer.text)


async def test_the_checks_of_a_filtered_list_are_run_together(api: PublicApi, web: WebUser) -> None:
    wanted = {(await a_check(api.alice, name=name, tags=["shop"]))["id"] for name in ("A", "B")}
    await a_check(api.alice, name="Paused", tags=["shop"], activated=False)
    await a_check(api.alice, name="Elsewhere")
    page = await web.get("/?tag=shop")

    answer = await web.post("/overview/run-listed", {"list": "tag=shop"})

    assert "Run all 3 now" in page.text
    assert (answer.status, answer.headers["location"]) == (303, "/?tag=shop")
    sessions = await api.database.read(
        lambda c: c.exec_driver_sql("SELECT check_id FROM session").scalars().all()
    )
    assert set(sessions) == wanted
    assert "Run all" not in (await web.get("/")).text


HOSTILE = (
    "<script>window.broken = 1</script>",
    '"><img src=x onerror="window.broken = 1">',
    "javascript:window.broken=1",
    "مرحبا بالعالم",
    "🛒🔥👩‍👩‍👧‍👦",
    "x" * 200,
    "{{ 7 * 7 }}",
)


async def test_what_others_have_written_is_shown_and_runs_nowhere(
    api: PublicApi, page: Page
) -> None:
    at_ms = await now_ms(api)
    for text in HOSTILE:
        check = await a_check(api.alice, name=text, tags=[text[:50].replace(",", " ")])
        await store(api, check, failed(text), started_ms=at_ms)
    complaints = collect_complaints(page)

    await page.goto("/?q=" + "%22%3E%3Cimg%20src=x%20onerror=window.broken=1%3E")
    await page.goto("/")

    assert await page.evaluate("window.broken") is None
    for text in HOSTILE:
        await expect(page.get_by_role("link", name=text, exact=True)).to_be_visible()
        await expect(page.locator(".reason", has_text=text)).to_be_visible()
    assert complaints == []
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_overview_is_accessible(
    browser: Browser, api: PublicApi, web: WebUser, theme: Any
) -> None:
    await some_checks(api)
    for width in (390, 1440):
        context = await browser.new_context(
            base_url=web.url, color_scheme=theme, viewport={"width": width, "height": 900}
        )
        cookie = {"name": SESSION_COOKIE, "value": web.session, "url": web.url}
        await context.add_cookies([cookie])  # type: ignore[list-item]
        page = await context.new_page()
        complaints = collect_complaints(page)
        for path in ("/", "/?by=status", "/?q=none"):
            await page.goto(path)
            assert await find_violations(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
        await context.close()
