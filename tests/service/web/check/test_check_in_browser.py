"""The page of a check in a real browser."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Browser, Page, expect

from contract.result import Outcome, Status, Timings
from service.web.cookies import SESSION_COOKIE
from tests.builders.stored_results import a_record, failed, store_all
from tests.servers.public_api import PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.check.test_check_page import MINUTE_MS, a_check, now_ms
from tests.service.web.conftest import WebUser

HOSTILE = (
    "<script>window.hit=1</script>\"><img src=x onerror='window.hit=1'>\u202e\U0001f980" + "x" * 120
)
_SHIFTS = """() => new Promise((resolve) => {
  let total = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) total += one.value;
  }).observe({type: "layout-shift", buffered: true});
  setTimeout(() => resolve(total), 300);
})"""


async def a_past(api: PublicApi, **fields: Any) -> dict[str, Any]:
    """A check with an hour of runs, the last of which failed."""
    check = await a_check(api, frequency=1, **fields)
    place = api.alice.secrets.location_id
    phases = Timings(dns=4, tcp=9, tls=20, first_byte=60, download=7, total=100)
    good = Outcome(status=Status.PASSED, response_time_ms=100, timings=phases)
    runs = [
        a_record(
            check,
            location_id=place,
            outcome=failed("It broke.") if ago < 3 else good,
            started_ms=now_ms() - ago * MINUTE_MS - 1_000,
        )
        for ago in range(40, -1, -1)
    ]
    await store_all(api, runs)
    return check


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
async def test_each_part_is_accessible_and_still(
    browser: Browser, api: PublicApi, web: WebUser, theme: Any, width: int
) -> None:
    check = await a_past(api)
    context = await browser.new_context(
        base_url=web.url, color_scheme=theme, viewport={"width": width, "height": 900}
    )
    await context.add_cookies([{"name": SESSION_COOKIE, "value": web.session, "url": web.url}])
    page = await context.new_page()
    complaints = collect_complaints(page)

    for tab in ("runs", "alerts", "settings"):
        await page.goto(f"/checks/{check['id']}?tab={tab}")
        await page.locator("canvas").first.wait_for()
        assert await find_violations(page) == []
        assert await page.evaluate(_SHIFTS) < 0.001
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
    await context.close()


async def test_dragging_over_a_chart_zooms_in_and_stays_in_the_address(
    page: Page, api: PublicApi
) -> None:
    check = await a_past(api)
    await page.goto(f"/checks/{check['id']}?range=1h&tab=settings")
    box = await page.locator(".u-over").first.bounding_box()
    assert box is not None

    await page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 40, steps=4)
    await page.mouse.up()
    await page.wait_for_url(re.compile("from="))

    query = parse_qs(urlsplit(page.url).query)
    assert int(query["to"][0]) - int(query["from"][0]) == pytest.approx(900, abs=30)
    assert query["tab"] == ["settings"]
    assert "range" not in query


async def test_the_numbers_open_as_a_table_in_place(page: Page, api: PublicApi) -> None:
    check = await a_past(api)
    await page.goto(f"/checks/{check['id']}?range=1h")

    await page.get_by_text("The numbers as a table").click()

    await expect(page.locator("#numbers caption")).to_have_text("Response time by phase")
    await expect(page.locator("#numbers td").nth(6)).to_have_text("100 ms")


async def test_run_now_tells_how_far_it_is_without_leaving_the_page(
    page: Page, api: PublicApi
) -> None:
    check = await a_past(api)
    await page.goto(f"/checks/{check['id']}")

    await page.get_by_role("button", name="Run now").click()

    await expect(page.locator("#progress")).to_contain_text("queued, for")
    assert "run=" not in page.url


async def test_a_new_run_appears_on_an_open_page(page: Page, api: PublicApi) -> None:
    check = await a_past(api)
    async with page.expect_response(lambda answer: "/live?" in answer.url):
        await page.goto(f"/checks/{check['id']}")
    run = a_record(
        check,
        location_id=api.alice.secrets.location_id,
        outcome=failed("The till is on fire."),
        started_ms=now_ms(),
    )

    await store_all(api, [run])

    await expect(page.locator("#section")).to_contain_text("The till is on fire.", timeout=20_000)
    await expect(page.locator("#head")).to_contain_text("The till is on fire.")


async def test_a_preview_follows_the_form(page: Page, api: PublicApi) -> None:
    check = await a_past(api)
    await page.goto(f"/checks/{check['id']}?tab=alerts")
    await expect(page.locator("#preview")).to_contain_text("With these settings: 1 alert in")

    await page.get_by_label("Failed runs").last.select_option("5")

    await expect(page.locator("#preview")).to_contain_text("With these settings: 0 alerts in")


async def test_what_people_and_targets_write_runs_nowhere(page: Page, api: PublicApi) -> None:
    check = await a_check(api, name=HOSTILE, tags=[HOSTILE[:100]], description=HOSTILE, frequency=1)
    place = api.alice.secrets.location_id
    run = a_record(
        check, location_id=place, outcome=failed(HOSTILE), started_ms=now_ms() - MINUTE_MS
    )
    await store_all(api, [run])
    complaints = collect_complaints(page)

    for part in ("", "?tab=errors", "?tab=alerts", "?tab=settings", "/numbers"):
        await page.goto(f"/checks/{check['id']}{part}")
        assert await page.evaluate("window.hit") is None
        assert await page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
    assert complaints == []
