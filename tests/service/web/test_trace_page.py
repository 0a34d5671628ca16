"""A trace in Playwright's viewer, in a real browser."""

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Frame, Page, expect

from service.object_store.folder import FolderStore
from service.traces.trace_links import TraceLinks, ViewerAddress
from service.traces.viewer_app import viewer_app
from service.web.cookies import SESSION_COOKIE
from tests.builders.browser_checks import a_test, look
from tests.builders.scripts import a_scripted_context
from tests.builders.stored_results import passed, store
from tests.servers.echoing_site import echoing_site
from tests.servers.public_api import PEPPER, PublicApi, listening, serve_public_api
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import sign_in
from tests.service.web.test_result_page import (
    a_browser_check,
    an_artifact,
    keep,
    path_of_newest,
)

CODE: Final = "document.documentElement.dataset.ran = 1; top.postMessage('ran', '*')"
HOSTILE: Final[list[Any]] = [
    ["IMG", {"src": "http://shop.test/none.png", "onerror": CODE}],
    ["SCRIPT", {}, CODE],
    ["IFRAME", {"srcdoc": f"<script>{CODE}</script>"}],
    ["A", {"href": f"javascript:{CODE}", "id": "bait"}, "Continue"],
    ["META", {"http-equiv": "refresh", "content": f"0;url=javascript:{CODE}"}],
]


@dataclass(frozen=True, slots=True)
class Shop:
    """A service with a viewer, and somebody who is signed in."""

    api: PublicApi
    viewer: str
    session: str

    async def show(self, page: Page, trace: bytes) -> Frame:
        """Open a trace; the frame of the viewer."""
        check = await a_browser_check(self.api)
        outcome = passed(artifacts=(an_artifact("trace.zip", "trace", trace),))
        run_id = await store(self.api, check, outcome)
        keep(self.api, run_id, "trace.zip", trace)
        await page.goto(self.api.url + await path_of_newest(self.api, check))
        await page.get_by_role("link", name="Open trace").click()
        viewer = page.frame_locator("iframe.trace")
        await expect(viewer.locator(".action-title").first).to_be_visible()
        return next(one for one in page.frames if one.url.startswith(self.viewer))


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    viewer = viewer_app(TraceLinks(PEPPER), FolderStore(tmp_path / "artifacts"), public_url=None)
    async with listening(viewer) as url:
        port = int(url.rpartition(":")[2])
        address = ViewerAddress(port=port)
        async with serve_public_api(tmp_path, trace_viewer=address) as api:
            user = await sign_in(api, api.alice.secrets.api_key)
            yield Shop(api, f"http://localhost:{port}", user.session)


@pytest.fixture
async def page(browser: Browser, shop: Shop) -> AsyncIterator[Page]:
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    url = shop.api.url
    await context.add_cookies([{"name": SESSION_COOKIE, "value": shop.session, "url": url}])
    yield await context.new_page()
    await context.close()


@pytest.fixture(scope="module")
def trace() -> bytes:
    """One that our own runner made of a real page."""
    return asyncio.run(_record())


async def _record() -> bytes:
    async with echoing_site() as site, a_scripted_context(keeps_files=True) as ctx:
        outcome = await look(ctx, a_test(f"await page.goto('{site}');"))
        (name,) = (one.name for one in outcome.artifacts if one.kind == "trace")
        return (ctx.workspace.folder / name).read_bytes()


def make_hostile(trace: bytes) -> bytes:
    """The trace with code wherever a recorded page can have some."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(trace)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith(".trace"):
                content = b"\n".join(map(_poison, content.splitlines()))
            new.writestr(name, content)
    return made.getvalue()


def _poison(line: bytes) -> bytes:
    event = json.loads(line or b"{}")
    if event.get("type") != "frame-snapshot":
        return line
    event["snapshot"]["html"] = ["HTML", {"onload": CODE}, ["BODY", {"onload": CODE}, *HOSTILE]]
    return json.dumps(event).encode()


async def _snapshot_frame(page: Page) -> Frame:
    """The frame that shows the recorded page."""
    viewer = page.frame_locator("iframe.trace")
    await viewer.locator(".action-title").filter(has_text="Navigate").first.click()
    await expect(viewer.locator("iframe.snapshot-visible")).to_be_visible()
    for _ in range(100):
        for frame in page.frames:
            if "/snapshot/" in frame.url and await frame.locator("body").count():
                return frame
        await page.wait_for_timeout(100)
    raise AssertionError([frame.url for frame in page.frames])


async def test_a_trace_of_our_runner_opens_in_the_page(
    shop: Shop, page: Page, trace: bytes
) -> None:
    complaints = collect_complaints(page)

    await shop.show(page, trace)

    viewer = page.frame_locator("iframe.trace")
    titles = await viewer.locator(".action-title").all_inner_texts()
    assert any("Navigate" in one for one in titles)
    snapshot = await _snapshot_frame(page)
    assert snapshot.url.startswith(shop.viewer)
    assert page.url.startswith(shop.api.url)
    assert [one for one in complaints if "Content Security Policy" in one] == []
    assert await find_violations(page) == []


REACHES: Final = """async ([service, session]) => {
  const found = [];
  const attempt = async (name, act) => {
    try { if (await act()) found.push(name); } catch { /* refused */ }
  };
  await attempt("fetch", async () => (await fetch(service + "/v1/checks")).type);
  await attempt("no-cors", async () =>
    (await fetch(service + "/alerts", { mode: "no-cors", credentials: "include" })).type);
  await attempt("beacon", async () => {
    const request = new XMLHttpRequest();
    request.open("GET", service + "/alerts", false);
    request.send();
    return request.status;
  });
  await attempt("picture", () => new Promise((done) => {
    const picture = new Image();
    picture.onload = () => done(true);
    picture.onerror = () => done(false);
    picture.src = service + session.picture;
  }));
  await attempt("socket", () => new Promise((done) => {
    const events = new EventSource(service + "/live");
    events.onopen = () => done(true);
    events.onerror = () => done(false);
  }));
  await attempt("cookie", () => document.cookie.includes(session.value));
  await attempt("window", () => window.open(service + "/alerts"));
  await attempt("parent", () => top.document.title);
  await attempt("navigation", () => { top.location.href = service + "/sign-out"; return true; });
  return found;
}"""


@pytest.mark.parametrize("place", ["viewer", "snapshot"])
async def test_code_of_a_trace_reaches_neither_the_service_nor_the_session(
    shop: Shop, page: Page, trace: bytes, place: str
) -> None:
    """As if some code ran in spite of the viewer's own policy."""
    frame = await shop.show(page, trace)
    if place == "snapshot":
        frame = await _snapshot_frame(page)
    icon = (await page.locator("link[rel=icon]").get_attribute("href")) or ""
    assert await page.evaluate("async (icon) => (await fetch(icon)).ok", icon)

    found = await frame.evaluate(REACHES, [shop.api.url, {"value": shop.session, "picture": icon}])

    assert found == []
    assert page.url.startswith(shop.api.url + "/checks/")


async def test_a_recorded_page_runs_nothing(shop: Shop, page: Page, trace: bytes) -> None:
    await page.add_init_script("window.heard = []; onmessage = (e) => heard.push(e.data)")
    await shop.show(page, make_hostile(trace))

    snapshot = await _snapshot_frame(page)
    await expect(snapshot.locator("#bait")).to_be_visible()
    await snapshot.locator("#bait").click(force=True)

    assert await snapshot.evaluate("document.documentElement.dataset.ran") is None
    assert "ran" not in await page.evaluate("heard")


async def test_without_a_viewer_the_page_says_what_to_do(shop: Shop) -> None:
    check = await a_browser_check(shop.api)
    outcome = passed(artifacts=(an_artifact("trace.zip", "trace", b"a trace"),))
    run_id = await store(shop.api, check, outcome)
    keep(shop.api, run_id, "trace.zip", b"a trace")
    path = await path_of_newest(shop.api, check)
    headers = {"cookie": f"{SESSION_COOKIE}={shop.session}", "host": "picket.example.com"}
    async with shop.api.http.get(shop.api.url + path, headers=headers) as answer:
        text = await answer.text()

    assert "npx playwright show-trace trace.zip" in text
    assert "Set TRACE_VIEWER_URL" in text
    assert "Open trace" not in text
