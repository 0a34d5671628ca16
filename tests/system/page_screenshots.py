"""`make screenshots`: pictures of the main pages into docs/pages, with what `picket up` shows.

The demo shop is closed first, so that there is a failing check, an alert and an incident.
"""

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
from playwright.async_api import Browser

from runners.installation.places import runtimes_folder
from service.db.sqlite import open_sqlite
from tests.builders.past_runs import add_runs
from tests.builders.projects import every_type
from tests.servers.smtp import serve_smtp
from tests.servers.web_browser import web_browser
from tests.system.alert_chain import PAGE, Chain, find_shop, picket_up, serve_receiver
from tests.system.waiting import until

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "docs/pages"
THEMES: Final = ("light", "dark")
SIZES: Final[Mapping[str, tuple[int, int]]] = {"desktop": (1440, 900), "phone": (390, 844)}
RESULTS: Final = 60
"""How many results there are before pictures are taken."""
_LIMIT_S: Final = 240.0
TROUBLED: Final = frozenset({"Place an order", "Shop in a browser", "Front page, secure"})
"""The checks that had outages."""


@asynccontextmanager
async def a_shop_that_is_closed(folder: Path) -> AsyncIterator[tuple[Chain, str]]:
    """Everything that it takes, on loopback, and the API key."""
    runtimes = str(runtimes_folder())
    async with serve_smtp() as box, serve_receiver() as receiver:
        environ = {
            "SMTP_URL": box.url,
            "SMTP_FROM": "picket@shop.example",
            "ALERT_EGRESS_ALLOW": "127.0.0.0/8",
            "PICKET_RUNTIMES": runtimes,
        }
        async with picket_up(folder, environ) as service:
            key = (folder / "data" / "api-key").read_text().strip()
            headers = {"authorization": f"Bearer {key}"}
            async with aiohttp.ClientSession(headers=headers) as http:
                shop = await find_shop(http, service)
                yield Chain(http, service, shop, box, receiver), key


async def add_past(chain: Chain, folder: Path) -> None:
    """Give the checks eight days of runs, so that strips and charts show what they are for."""
    database = open_sqlite(folder / "data/service/picket.db")
    now_ms = time.time_ns() // 1_000_000
    try:
        for check in await chain.ask("GET", "/v1/checks?limit=100"):
            if check["checkType"] == "HEARTBEAT" or "(" in check["name"]:
                continue  # those that fail on purpose
            await database.write(
                lambda connection, check=check: add_runs(
                    connection, check, now_ms=now_ms, every_min=max(check["frequency"], 5),
                    is_in_trouble=check["name"] in TROUBLED, goes_on=False,
                )
            )  # fmt: skip
    finally:
        await database.close()


async def has_results(chain: Chain) -> bool:
    """Whether there is enough to be seen; runs are numbered as they are queued."""
    newest = [one["lastCheckRunId"] for one in await chain.ask("GET", "/v1/check-statuses")]
    return max((int(one) for one in newest if one), default=0) >= RESULTS


async def failures(chain: Chain, check_id: str) -> list[dict[str, Any]]:
    """The newest result of a check that failed, or none."""
    path = f"/v1/check-results/{check_id}?limit=1&hasFailures=true"
    found: list[dict[str, Any]] = await chain.ask("GET", path)
    return found


async def find_paths(chain: Chain, check_id: str) -> dict[str, str]:
    """The main pages, by the names of their pictures."""
    checks: list[dict[str, Any]] = await chain.ask("GET", "/v1/checks?limit=100")
    browser = next(one for one in checks if one["name"].startswith("Opening hours"))
    results = await until(lambda: failures(chain, check_id), limit_s=_LIMIT_S)
    of_browser = await until(lambda: failures(chain, browser["id"]), limit_s=_LIMIT_S)
    locations = await chain.ask("GET", "/v1/private-locations")
    return {
        "overview": "/?range=24h",
        "check": f"/checks/{check_id}?range=24h",
        "result": f"/checks/{check_id}/results/{results[0]['id']}",
        "browser-result": f"/checks/{browser['id']}/results/{of_browser[0]['id']}",
        "edit": f"/checks/{check_id}/edit",
        "locations": "/locations",
        "location": f"/locations/{locations[0]['id']}",
        "alerts": "/alerts",
        "channels": "/channels",
        "projects": "/projects",
        "status-page": f"/status/{PAGE}",
    }


async def take_pictures(browser: Browser, service: str, key: str, paths: Mapping[str, str]) -> None:
    """A picture of each page in each theme and size."""
    FOLDER.mkdir(exist_ok=True)
    for size, (width, height) in SIZES.items():
        for theme in THEMES:
            context = await browser.new_context(
                base_url=service,
                color_scheme=theme,
                viewport={"width": width, "height": height},
                locale="en-GB",
                timezone_id="UTC",
            )
            page = await context.new_page()
            await page.goto("/sign-in")
            await page.get_by_label("API key").fill(key)
            await page.get_by_role("button", name="Sign in with the key").click()
            await page.wait_for_url(re.compile(rf"^{re.escape(service)}/$"))
            for name, path in paths.items():
                await page.goto(path)
                await page.wait_for_timeout(700)  # charts are drawn when they come into view
                await page.screenshot(path=FOLDER / f"{name}-{size}-{theme}.png")
            await context.close()


async def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory(prefix="picket-pages-") as name:
        async with a_shop_that_is_closed(Path(name)) as (chain, key):
            check_id = await chain.set_up()
            await until(lambda: chain.has_passed(check_id), limit_s=_LIMIT_S)
            await add_past(chain, Path(name))
            await chain.ask("POST", "/next-v2/projects/deploy", every_type())
            await chain.turn("close")
            await until(lambda: chain.incident("currentIncidents"), limit_s=_LIMIT_S)
            await until(lambda: has_results(chain), limit_s=_LIMIT_S)
            async with web_browser() as browser:
                paths = await find_paths(chain, check_id)
                await take_pictures(browser, chain.service, key, paths)
    print(f"pictures are in {FOLDER.relative_to(ROOT)}")  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
