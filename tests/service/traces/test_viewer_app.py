"""What answers at the trace viewer's origin."""

import hashlib
import json
from pathlib import Path

import aiohttp

from service.object_store.folder import FolderStore
from service.object_store.s3 import BucketStore
from service.results.assets import RunFile
from service.traces.trace_links import VERSION, TraceLinks
from service.traces.viewer_app import ARCHIVE, PREFIX, viewer_app
from tests.house.test_house import ROOT
from tests.servers.object_store import object_store
from tests.servers.public_api import PEPPER, listening

LOCK = ROOT / "runners/harness/runtimes/2026.04/package-lock.json"
FILE = RunFile(location_id="place", run_id=7, fence=3, name="trace.zip")
LINKS = TraceLinks(PEPPER)


def test_the_viewer_is_what_its_list_says_and_what_our_newest_runtime_has() -> None:
    (listed,) = json.loads((ARCHIVE.parent / "vendored.json").read_bytes())
    locked = json.loads(LOCK.read_bytes())["packages"]["node_modules/playwright-core"]

    assert hashlib.sha256(ARCHIVE.read_bytes()).hexdigest() == listed["sha256"]
    assert (listed["version"], listed["npmIntegrity"]) == (locked["version"], locked["integrity"])
    assert listed["file"] == ARCHIVE.name
    assert listed["version"] == VERSION
    assert (ARCHIVE.parent / listed["licenceFile"]).is_file()


async def test_only_the_viewer_and_signed_traces_are_served(tmp_path: Path) -> None:
    path = tmp_path / FILE.key
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a trace")
    app = viewer_app(LINKS, FolderStore(tmp_path), public_url="https://picket.example.com/below")
    async with listening(app) as url, aiohttp.ClientSession() as http:

        async def ask(where: str) -> tuple[int, bytes, str]:
            async with http.get(url + where) as answer:
                policy = answer.headers.get("content-security-policy", "")
                return answer.status, await answer.read(), policy

        status, page, policy = await ask(f"{PREFIX}/index.html")
        trace = await ask(f"{PREFIX}/traces/{LINKS.sign(FILE)}.zip")
        refused = [
            (await ask(where))[0]
            for where in (
                f"{PREFIX}/traces/{LINKS.sign(FILE)}A.zip",
                f"{PREFIX}/traces/trace.zip",
                f"{PREFIX}/../../secrets",
                "/v1/checks",
                "/",
            )
        ]

    assert (status, b"Playwright" in page) == (200, True)
    assert "connect-src 'self';" in policy
    assert "form-action 'none'" in policy
    assert policy.endswith("frame-ancestors 'self' https://picket.example.com")
    assert trace[:2] == (200, b"a trace")
    assert refused == [404] * 5


async def test_our_guard_runs_before_the_viewers_worker(tmp_path: Path) -> None:
    app = viewer_app(LINKS, FolderStore(tmp_path), public_url=None)
    async with (
        listening(app) as url,
        aiohttp.ClientSession() as http,
        http.get(f"{url}{PREFIX}/sw.bundle.js") as answer,
    ):
        script = await answer.text()

    guard = (ARCHIVE.parent / "guard.js").read_text()
    assert script.startswith(guard)
    assert len(script) > len(guard) + 10_000


async def test_a_part_of_a_trace_in_a_bucket_is_served(tmp_path: Path) -> None:
    file = tmp_path / "arriving"
    file.write_bytes(b"a trace")
    async with object_store(tmp_path / "remote") as bucket:
        store = BucketStore(bucket)
        await store.put_file(FILE.key, file)
        app = viewer_app(LINKS, store, public_url=None)
        async with listening(app) as url, aiohttp.ClientSession() as http:
            link = f"{url}{PREFIX}/traces/{LINKS.sign(FILE)}.zip"
            async with http.get(link, headers={"range": "bytes=-5"}) as answer:
                assert (answer.status, await answer.read()) == (206, b"trace")
                assert answer.headers["content-range"] == "bytes 2-6/7"
            async with http.head(link) as answer:
                assert (answer.status, answer.headers["content-length"]) == (200, "7")
            async with http.get(link, headers={"range": "bytes=7-"}) as answer:
                assert (answer.status, answer.headers["content-range"]) == (416, "bytes */7")
            (tmp_path / "remote" / "files").rename(tmp_path / "gone")
            async with http.get(link) as answer:
                assert answer.status == 404
