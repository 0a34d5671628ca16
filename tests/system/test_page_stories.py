"""What a person does with a new Picket, by clicking only: `picket up` runs, Chromium shows it."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from playwright.async_api import Page, expect

from runners.installation.places import runtimes_folder
from tests.servers.service import HELLO
from tests.servers.web_browser import collect_complaints, web_browser
from tests.system.alert_chain import find_shop, picket_up
from tests.system.waiting import until

LIVE_WITHIN_MS: Final = 10_000
SOON_MS: Final = 120_000
"""For what runs of checks lead to, on a busy machine."""
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody at a browser, signed in by the link that `picket up` printed."""

    page: Page
    service: str
    http: aiohttp.ClientSession
    shop: str

    async def turn(self, what: str) -> None:
        """`close` or `open` the demo shop, as its owner."""
        async with self.http.post(f"{self.shop}/{what}") as answer:
            answer.raise_for_status()

    async def go_to(self, place: str) -> None:
        """A place of the main navigation."""
        await self.page.get_by_role("navigation", name="Main").get_by_text(place).click()

    async def click(self, name: str, *, role: str = "button") -> None:
        """A button, or a link."""
        await self.page.get_by_role(role, name=name, exact=True).click()  # type: ignore[arg-type]

    async def fill(self, **fields: str) -> None:
        """Fields of a form, by their labels; `_` stands for a space."""
        for label, value in fields.items():
            await self.page.get_by_label(label.replace("_", " "), exact=True).first.fill(value)

    async def status_for(self, location_key: str) -> int:
        """What an agent that has this key is answered."""
        headers = {"authorization": f"Bearer {location_key}"}
        async with self.http.post(
            f"{self.service}/agent/v1/hello", json=HELLO, headers=headers
        ) as answer:
            return answer.status


@asynccontextmanager
async def a_person(folder: Path, runtimes: Path | None = None) -> AsyncIterator[Person]:
    """A first start, and the click that signs in."""
    environ = {} if runtimes is None else {"PICKET_RUNTIMES": str(runtimes)}
    async with picket_up(folder, environ) as service, web_browser() as browser:
        key = (folder / "data/api-key").read_text().strip()
        headers = {"authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            shop = await find_shop(http, service)
            page = await browser.new_page()
            complaints = collect_complaints(page)
            link = re.search(r"^pages +(\S+) ", (folder / "up.log").read_text(), re.MULTILINE)
            assert link is not None
            await page.goto(link[1])
            await page.get_by_role("button", name="Sign in").click()
            yield Person(page, service, http, shop)
            assert [one for one in complaints if "status of 422" not in one] == []


async def test_the_printed_link_leads_to_live_results_and_on_to_the_verdict_of_a_run(
    tmp_path: Path,
) -> None:
    async with a_person(tmp_path) as person:
        page = person.page
        await page.evaluate("window.isTheFirstPage = true")
        await expect(page.get_by_text(re.compile(r"^\d+ passing$"))).to_be_visible(
            timeout=LIVE_WITHIN_MS
        )
        await expect(page.get_by_text("The response status is 500")).to_be_visible(timeout=SOON_MS)
        assert await page.evaluate("window.isTheFirstPage")
        await person.click("Front page", role="link")
        await page.locator("table.runs tbody a").first.click(timeout=SOON_MS)
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Passed in")


async def test_a_failing_browser_check_leads_to_its_trace(tmp_path: Path) -> None:
    async with a_person(tmp_path, runtimes_folder()) as person:
        page = person.page
        failing = page.locator("li.in-trouble", has_text="Opening hours in a browser")
        await expect(failing).to_contain_text('received "Open"', timeout=SOON_MS)
        await failing.get_by_role("link").first.click()
        await person.click("See the run", role="link")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("toHaveText")
        await person.click("Open trace", role="link")
        viewer = page.frame_locator("iframe.trace")
        await expect(viewer.get_by_text('Expect "toHaveText"').first).to_be_visible(timeout=SOON_MS)


async def test_a_key_of_a_location_is_rotated_without_being_seen_twice(tmp_path: Path) -> None:
    async with a_person(tmp_path) as person:
        page = person.page
        await person.go_to("Locations")
        await person.click("New location", role="link")
        await person.fill(Name="Cellar", Slug="cellar")
        await person.click("Create location")
        first = await page.locator("#start code", has_text=re.compile("^pl_")).first.inner_text()
        await person.go_to("Locations")
        await person.click("Cellar", role="link")
        assert first not in await page.content()
        await person.click("Rotate key")
        second = await page.locator("#start code", has_text=re.compile("^pl_")).first.inner_text()
        assert first != second
        assert [await person.status_for(one) for one in (first, second)] == [200, 200]
        page.once("dialog", lambda dialog: dialog.accept())
        await page.get_by_role("row", name=f"pl_****{first[-4:]}").get_by_role("button").click()
        await expect(page.get_by_text(f"pl_****{first[-4:]}")).to_have_count(0)
        assert [await person.status_for(one) for one in (first, second)] == [401, 200]
        await page.reload()
        assert second not in await page.content()


async def test_an_incident_is_public_from_the_break_to_the_recovery(tmp_path: Path) -> None:
    async with a_person(tmp_path) as person:
        page = person.page
        await person.go_to("Status pages")
        await person.click("Add the first service", role="link")
        await person.fill(Name="Front door")
        await person.click("Create")
        await person.click("New status page", role="link")
        await person.fill(Name="Corner shop", URL="corner")
        cards = page.get_by_role("group", name="Cards")
        await cards.get_by_label("Name", exact=True).fill("Shop")
        await cards.get_by_role("combobox").first.select_option(label="Front door")
        await person.click("Create")
        await person.click("Open the page", role="link")
        await expect(page.get_by_role("heading", level=1)).not_to_contain_text("down")
        public = page.url

        await page.goto(person.service)
        await person.click("New check", role="link")
        await page.get_by_role("link", name="API check").click()
        await person.fill(Name="Shop is open", URL=f"{person.shop}/")
        await page.get_by_label("Runs every").select_option(label="10 s")
        incident = page.get_by_role("group", name="Open an incident")
        await incident.get_by_text("Yes", exact=True).click()
        await incident.get_by_role("combobox").first.select_option(label="Front door")
        await incident.get_by_label("Severity").select_option(label="Critical")
        await incident.get_by_label("Name", exact=True).fill("The shop is closed")
        await incident.get_by_label("Description").fill("We are looking into it.")
        await person.click("Create")
        await person.click("Run now")
        await expect(page.locator("#progress")).to_contain_text("passed in", timeout=SOON_MS)

        visitor = await page.context.browser.new_page()
        await person.turn("close")
        await visitor.goto(public)
        await until_shown(visitor, "Front door has been down since")
        await expect(visitor.get_by_role("heading", name="The shop is closed")).to_be_visible()
        await expect(visitor.get_by_text("We are looking into it.")).to_be_visible()
        await person.turn("open")
        await until_shown(visitor, "All services are operational")
        await expect(visitor.locator("section.past")).to_contain_text("The shop is closed")


async def until_shown(page: Page, heading: str) -> None:
    """A visitor asks for the page again, until its heading says so."""

    async def is_shown() -> bool:
        await page.reload()
        return heading in await page.get_by_role("heading", level=1).inner_text()

    await until(is_shown, limit_s=SOON_MS / 1000)


async def test_a_check_that_is_made_and_broken_by_hand_comes_to_the_top(tmp_path: Path) -> None:
    async with a_person(tmp_path) as person:
        page = person.page
        await person.click("New check", role="link")
        await page.get_by_role("link", name="URL monitor").click()
        await person.fill(Name="Home", URL="no address")
        await person.click("Create")
        await expect(page.locator(".problem").first).to_be_visible()
        await person.fill(URL=f"{person.shop}/")
        await person.click("Create")
        await person.click("Run now")
        progress = page.locator("#progress")
        await expect(progress).to_contain_text("passed in", timeout=SOON_MS)
        await progress.get_by_role("link").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Passed in")
        await page.get_by_role("navigation", name="Where this is").get_by_text("Home").click()
        await person.click("Edit", role="link")
        await person.fill(URL=f"{person.shop}/nowhere")
        await person.click("Save")
        await person.click("Run now")
        await expect(progress).to_contain_text("The response status is 404", timeout=SOON_MS)
        await person.go_to("Checks")
        await expect(page.locator("li.in-trouble", has_text="Home")).to_contain_text("404")
        assert await page.locator("li.check:not(.in-trouble) ~ li.in-trouble").count() == 0
