"""A real Chromium, as people look at the pages with."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from runners.installation.places import runtimes_folder

AXE: Final = "2026.04/node_modules/axe-core/axe.min.js"
"""In the folder of the runtimes, wherever that is here."""
_NODE: Final = "2026.04/bin/node"
"""The library's own needs libatomic, which a bare Debian 12 has not."""
_NAMES: Final = ("chromium-headless-shell", "chromium", "google-chrome")


@asynccontextmanager
async def web_browser() -> AsyncIterator[Browser]:
    """A browser, closed at the end."""
    found = next(filter(None, map(shutil.which, _NAMES)))
    os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(runtimes_folder() / _NODE))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            await browser.close()


def collect_complaints(page: Page) -> list[str]:
    """What the browser complains of from now on: errors of scripts, and what the policy refuses."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


async def find_violations(page: Page) -> list[str]:
    """What axe-core finds wrong with a page for people who see, hear or move differently."""
    await page.evaluate((runtimes_folder() / AXE).read_text())
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]
