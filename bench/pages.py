"""Pages over 10,000 checks and 1,000,000 results: the first byte, weight and paint of each.

The service is a process of its own; pages are asked for over HTTP, and by a real Chromium, signed
in. The last line is for machines: `pages overview_ms=… check_ms=… status_ms=… first_view_kb=…
lcp_ms=…`. See README.md beside this file.
"""

import argparse
import asyncio
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from playwright.async_api import Browser, Page
from processes import cpu_s, free_port, running, wait_for_port

from service.web.cookies import SESSION_COOKIE
from tests.builders.many_results import Many, many_results
from tests.servers.web_browser import web_browser

ROOT: Final = Path(__file__).resolve().parents[1]
_SETTLE_S: Final = 8
"""The service first settles what was due while it was down."""
STATUS_URL: Final = "bench-shop"
_SEE_OTHER, _OK = 303, 200
_MADE: Final = frozenset({200, 201})
_WATCH: Final = """
window.painted = 0; window.shifted = 0;
const watch = (type, note) => new PerformanceObserver((list) => list.getEntries().forEach(note))
  .observe({ type, buffered: true });
watch("largest-contentful-paint", (one) => { window.painted = one.startTime; });
watch("layout-shift", (one) => { if (!one.hadRecentInput) window.shifted += one.value; });
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A page that is asked for by its bytes."""

    first_byte_ms: float
    """The median."""
    cpu_ms: float
    """Of the service's process, for each."""
    packed_bytes: int
    plain_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A page that is looked at, each time with an empty cache; medians."""

    paint_ms: float
    """Largest contentful paint."""
    shift: float
    weight_bytes: int
    """All that is loaded, as it comes over the wire."""


class Visitor:
    """Somebody who is signed in, on one kept connection."""

    def __init__(self, port: int, api_key: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=120)
        form = urlencode({"key": api_key})
        kind = {"content-type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/sign-in", form, kind)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != _SEE_OTHER:
            raise RuntimeError(f"Signing in failed: {answer.status}")
        self.session = (answer.getheader("set-cookie") or "").partition("=")[2].partition(";")[0]

    def ask(self, path: str) -> tuple[float, int, bytes]:
        """Ms until the first byte of an answer, its status and its content as it came."""
        headers = {"cookie": f"{SESSION_COOKIE}={self.session}", "accept-encoding": "gzip"}
        began = time.perf_counter()
        self._connection.request("GET", path, headers=headers)
        answer = self._connection.getresponse()
        took_ms = (time.perf_counter() - began) * 1000
        return took_ms, answer.status, answer.read()

    def read(self, api_key: str, path: str) -> Any:
        """Read something by the API."""
        headers = {"authorization": f"Bearer {api_key}"}
        self._connection.request("GET", path, headers=headers)
        return json.loads(self._connection.getresponse().read())

    def call(self, api_key: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Make something by the API."""
        headers = {"authorization": f"Bearer {api_key}", "content-type": "application/json"}
        self._connection.request("POST", path, json.dumps(body), headers)
        answer = self._connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
        if answer.status not in _MADE:
            raise RuntimeError(f"POST {path}: {answer.status} {told}")
        return told


def measure(visitor: Visitor, pid: int, path: str, times: int) -> Asked | None:
    """Ask again and again. None: there is no such page."""
    _, status, packed = visitor.ask(path)
    if status != _OK:
        return None
    before_s = cpu_s(pid)
    took = [visitor.ask(path)[0] for _ in range(times)]
    used_ms = (cpu_s(pid) - before_s) * 1000 / times
    plain = gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    return Asked(
        first_byte_ms=statistics.median(took),
        cpu_ms=used_ms,
        packed_bytes=len(packed),
        plain_bytes=len(plain),
    )


async def look(browser: Browser, visitor: Visitor, url: str, times: int) -> Looked:
    """Load a page again and again."""
    seen = [await _look_once(browser, visitor, url) for _ in range(times)]
    return Looked(
        paint_ms=statistics.median(one.paint_ms for one in seen),
        shift=max(one.shift for one in seen),
        weight_bytes=round(statistics.median(one.weight_bytes for one in seen)),
    )


async def _look_once(browser: Browser, visitor: Visitor, url: str) -> Looked:
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    await context.add_cookies([{"name": SESSION_COOKIE, "value": visitor.session, "url": url}])
    page = await context.new_page()
    weights = await _weigh(page)
    await page.add_init_script(_WATCH)
    await page.goto(url, wait_until="load")
    await page.wait_for_timeout(700)
    painted, shifted = await page.evaluate("[window.painted, window.shifted]")
    await context.close()
    return Looked(paint_ms=painted, shift=shifted, weight_bytes=sum(weights))


async def _weigh(page: Page) -> list[int]:
    weights: list[int] = []
    wire = await page.context.new_cdp_session(page)
    await wire.send("Network.enable")
    # A result that comes in meanwhile may change the page, which is no part of loading it.
    await wire.send("Network.setBlockedURLs", {"urls": ["*/live*"]})
    wire.on("Network.loadingFinished", lambda one: weights.append(one["encodedDataLength"]))
    return weights


def show(name: str, asked: Asked, looked: Looked) -> None:
    """Print a page's row."""
    print(
        f"{name:10} first byte {asked.first_byte_ms:6.1f} ms   cpu {asked.cpu_ms:6.1f} ms"
        f"   html {asked.packed_bytes / 1000:6.1f} kB ({asked.plain_bytes / 1000:.0f} unpacked)"
        f"   whole {looked.weight_bytes / 1000:6.1f} kB   paint {looked.paint_ms:5.0f} ms"
        f"   shift {looked.shift:.5f}",
        flush=True,
    )


def make_status_page(visitor: Visitor, api_key: str) -> None:
    """A public page with a card; kept from an earlier run."""
    if visitor.read(api_key, "/v1/status-pages?limit=1")["entries"]:
        return
    service = visitor.call(api_key, "/v1/status-pages/services", {"name": "Shop"})
    card = {"name": "Shop", "services": [{"id": service["id"]}]}
    page = {"name": "Shop", "url": STATUS_URL, "cards": [card]}
    visitor.call(api_key, "/v1/status-pages", page)


async def run(options: argparse.Namespace, made: Many, port: int, pid: int) -> None:
    """Measure all pages that there are."""
    visitor = Visitor(port, made.api_key)
    make_status_page(visitor, made.api_key)
    pages = {
        "overview": "/",
        "filtered": "/?q=cart&tag=production",
        "7 days": "/?range=7d",
        "check": f"/checks/{made.busy_check_id}",
        "status": f"/status/{STATUS_URL}",
    }
    seen: dict[str, tuple[Asked, Looked]] = {}
    async with web_browser() as browser:
        for name, path in pages.items():
            asked = measure(visitor, pid, path, options.times)
            if asked is None:
                print(f"{name:10} is not there")
                continue
            looked = await look(browser, visitor, f"http://127.0.0.1:{port}{path}", options.looks)
            seen[name] = asked, looked
            show(name, asked, looked)
    first_view = max(looked.weight_bytes for _, looked in seen.values())
    slowest = max(looked.paint_ms for _, looked in seen.values())
    print(
        "pages"
        + "".join(
            f" {name}_ms={_first_byte(seen, name)}" for name in ("overview", "check", "status")
        )
        + f" first_view_kb={first_view / 1000:.1f} lcp_ms={slowest:.0f}"
    )
    if any(looked.shift > 0 for _, looked in seen.values()):
        sys.exit("Something moved while a page was loaded.")


def _first_byte(seen: dict[str, tuple[Asked, Looked]], name: str) -> str:
    return f"{seen[name][0].first_byte_ms:.1f}" if name in seen else "-"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=31, help="how often each page is asked for")
    parser.add_argument("--looks", type=int, default=5, help="how often each is looked at")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "picket-many")
    options = parser.parse_args()
    began = time.perf_counter()
    made = many_results(options.folder)
    print(f"filled     {time.perf_counter() - began:6.0f} s")
    port, log = free_port(), options.folder / "service.log"
    env = {
        **os.environ,
        "SERVICE_DATA_DIR": str(options.folder),
        "SERVICE_HOST": "127.0.0.1",
        "SERVICE_PORT": str(port),
        "PYTHONPATH": str(ROOT),
    }
    with running([sys.executable, "-m", "service"], log=log, env=env) as process:
        wait_for_port(port, process, log=log)
        time.sleep(_SETTLE_S)
        asyncio.run(run(options, made, port, process.pid))


if __name__ == "__main__":
    main()
