"""A status page in a real browser."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
from playwright.async_api import Browser, Page

from tests.builders.status_pages import a_page, a_service, an_incident, say
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.web_browser import collect_complaints, find_violations

HOSTILE: Final = (
    "<script>document.title='run'</script>",
    '"><img src=x onerror="document.title=\'run\'">',
    "' onmouseover='document.title=1' x='",
    "</style><svg onload=document.title=1>",
    'javascript:alert(1) https://a.example/"onclick=alert(1)',
    "\u202eright to left \u05d0\u05d1\u05d2",
    "\U0001f469\u200d\U0001f680" * 20,
    "W" * 200,
    "{{ 7 * 7 }} {% raw %}",
)
COLOURS: Final = {
    **dict.fromkeys(("bodyBackgroundColor", "cardBackgroundColor"), "#fdf6e3"),
    **dict.fromkeys(("bodyFontColor", "bodyFontColorMuted", "titleFontColor"), "#eee8d5"),
    **dict.fromkeys(("headerBackgroundColor", "linkFontColor", "borderColor"), "#b58900"),
    **dict.fromkeys(("headerFontColor", "navigationFontColor"), "url(https://evil.example)"),
    **dict.fromkeys(("primaryButtonBackgroundColor", "primaryButtonFontColor"), "red"),
}


@asynccontextmanager
async def visiting(
    browser: Browser, api: PublicApi, *, theme: str = "light", width: int = 1440
) -> AsyncIterator[tuple[Page, list[str], list[str]]]:
    """A visitor without an account: the page, what the browser complains of, what it asks for."""
    context = await browser.new_context(
        base_url=api.url, color_scheme=theme, viewport={"width": width, "height": 900}
    )
    page = await context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.resource_type} {request.url}"))
    yield page, collect_complaints(page), asked
    await context.close()


async def trouble(alice: ApiUser, **changes: object) -> None:
    """A page with something of everything."""
    checkout, search = await a_service(alice), await a_service(alice, "Search")
    await a_page(alice, checkout, search, description="How the shop is.", **changes)
    old = await an_incident(alice, search, name="Search is slow", severity="MINOR")
    await say(alice, old, "RESOLVED", description="It is quick again.")
    await an_incident(alice, checkout, severity="MEDIUM")


@pytest.mark.parametrize("colours", [None, {"light": COLOURS, "dark": COLOURS}])
async def test_everybody_can_read_it_and_it_loads_no_script(
    browser: Browser, api: PublicApi, alice: ApiUser, colours: object
) -> None:
    await trouble(alice, themeColors=colours)
    for theme, width in (("light", 1440), ("light", 390), ("dark", 1440), ("dark", 390)):
        async with visiting(browser, api, theme=theme, width=width) as (page, complaints, asked):
            await page.goto("/status/shop")
            await page.get_by_text("Search is slow").click()

            assert await page.get_by_text("It is quick again.").is_visible()
            assert complaints == []
            assert {one.split()[0] for one in asked} <= {"document", "stylesheet", "other"}
            assert all(one.split()[1].startswith(api.url) for one in asked)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert await find_violations(page) == []


async def test_all_its_messages_can_be_read(browser: Browser, api: PublicApi) -> None:
    for theme, width in (("light", 1440), ("dark", 390)):
        async with visiting(browser, api, theme=theme, width=width) as (page, _, _asked):
            await page.goto("/status/nothing")
            await page.get_by_label("key").fill("sp_wrong")
            await page.get_by_role("button").click()

            assert await page.get_by_text("This key opens no page").is_visible()
            assert await find_violations(page) == []


async def test_a_key_is_entered_once(browser: Browser, api: PublicApi, alice: ApiUser) -> None:
    made = await a_page(alice, await a_service(alice), isPrivate=True)
    async with visiting(browser, api) as (page, _, _asked):
        await page.goto("/status/shop")
        await page.get_by_label("key").fill(made["keys"][0]["rawKey"])
        await page.get_by_role("button").click()
        assert (
            await page.get_by_role("heading", level=1).inner_text()
            == "All services are operational."
        )

        await page.goto("/status/shop")
        assert (
            await page.get_by_role("heading", level=1).inner_text()
            == "All services are operational."
        )


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_that_a_person_wrote_runs_or_breaks_the_page(
    browser: Browser, api: PublicApi, alice: ApiUser, text: str
) -> None:
    service = await a_service(alice, text)
    card = {"name": text, "services": [{"id": service}]}
    logo = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/%3E"
    await a_page(alice, name=text, description=text, cards=[card], logo=logo)
    update = {"description": text, "status": "INVESTIGATING"}
    await an_incident(alice, service, name=text, incidentUpdates=[update])
    async with visiting(browser, api, width=390) as (page, complaints, asked):
        await page.goto("/status/shop")
        await page.mouse.move(190, 300)

        assert await page.title() not in {"run", "1"}
        assert (
            await page.evaluate("document.querySelectorAll('script, [onclick], [onload]').length")
            == 0
        )
        assert text.strip() in await page.locator("main").inner_text()
        assert complaints == []
        assert all(one.split()[1].startswith(api.url) for one in asked)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        links = await page.eval_on_selector_all("main a", "all => all.map(one => one.protocol)")
        assert set(links) <= {"https:", "http:"}


async def test_on_paper_the_past_is_unfolded_and_forms_are_left_out(
    browser: Browser, api: PublicApi, alice: ApiUser
) -> None:
    await trouble(alice)
    async with visiting(browser, api) as (page, _, _asked):
        await page.emulate_media(media="print")
        await page.goto("/status/shop")

        assert await page.get_by_text("It is quick again.").is_visible()
