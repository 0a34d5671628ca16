"""The page of all components, in a real browser."""

import pytest
from playwright.async_api import Browser, Page

from service.web.cookies import SESSION_COOKIE
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
async def test_components_are_accessible(
    browser: Browser, web: WebUser, theme: str, width: int
) -> None:
    context = await browser.new_context(
        base_url=web.url, color_scheme=theme, viewport={"width": width, "height": 900}
    )
    await context.add_cookies([{"name": SESSION_COOKIE, "value": web.session, "url": web.url}])
    page = await context.new_page()
    complaints = collect_complaints(page)

    await page.goto("/ui")

    assert await find_violations(page) == []
    assert complaints == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_what_is_copied_is_what_the_block_says(page: Page) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto("/ui")

    await page.get_by_role("button", name="Copy").nth(1).click()

    assert await page.evaluate("navigator.clipboard.readText()") == (
        "docker run -e API_KEY=pl_… picket/agent"
    )


async def test_a_theme_is_kept(page: Page) -> None:
    await page.goto("/ui")
    await page.locator("details.account > summary").click()
    await page.get_by_text("Dark", exact=True).click()

    await page.reload()

    assert await page.locator("html").get_attribute("data-theme") == "dark"
