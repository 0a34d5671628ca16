import gzip
import hashlib
import json
import re
from pathlib import Path

import aiohttp
import pytest

from service.http import docs_page
from service.routers import document
from tests.builders.docs_reader import read_docs
from tests.servers.public_api import ApiUser

VIEWER = Path(docs_page.__file__).with_name("viewer")
VENDORED = json.loads((VIEWER / "vendored.json").read_bytes())
OURS = {"page.html", "start.js", "vendored.json"}


@pytest.mark.timeout(300)
async def test_a_browser_shows_searches_and_sends_without_another_host(alice: ApiUser) -> None:
    reading = await read_docs(alice.url, key=alice.secrets.api_key)
    assert (reading.problems, reading.foreign) == ([], [])
    for tag in document()["tags"]:
        assert tag["name"] in reading.shown
    assert "Create URL check" in reading.shown
    assert [one for one in reading.found if "List heartbeat events" in one]
    assert reading.answer == "200 OK"
    assert alice.secrets.api_key not in reading.stored


async def test_the_page_loads_files_that_the_service_has(alice: ApiUser) -> None:
    page = await alice.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    scripts = re.findall(r'src="([^"]+)"', page.body)
    assert len(scripts) == 2
    for script in scripts:
        answer = await alice.get(f"/{script}")
        assert (answer.status, answer.headers["x-content-type-options"]) == (200, "nosniff")
        assert answer.headers["content-type"].startswith("text/javascript")


async def test_the_page_runs_no_inline_script_and_stands_in_no_frame(alice: ApiUser) -> None:
    page = await alice.get("/docs")
    assert not re.search(r"<script>|<style|\son\w+=", page.body)
    policy = dict(
        part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert page.headers["x-frame-options"] == "DENY"


async def test_a_browser_keeps_the_viewer_and_asks_again_for_the_page(alice: ApiUser) -> None:
    viewer = await alice.get(f"/docs/{docs_page.VIEWER}")
    assert viewer.headers["content-encoding"] == "gzip"
    assert "immutable" in viewer.headers["cache-control"]
    assert (await alice.get("/docs")).headers["cache-control"] == "no-cache"


async def test_who_takes_no_gzip_gets_the_viewer_unpacked(alice: ApiUser) -> None:
    plain = await alice.get(f"/docs/{docs_page.VIEWER}", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert hashlib.sha256(plain.body.encode()).hexdigest() == VENDORED[0]["sha256"]


@pytest.mark.parametrize("name", ["page.html", "vendored.json", "scalar-0.0.0.js", "..%2fauth.py"])
async def test_no_other_file_is_served(alice: ApiUser, name: str) -> None:
    assert (await alice.get(f"/docs/{name}")).status == 404


@pytest.mark.parametrize("one", VENDORED, ids=lambda one: one["name"])
def test_a_vendored_file_is_what_its_list_says(one: dict[str, str]) -> None:
    content = gzip.decompress((VIEWER / one["file"]).read_bytes())
    assert hashlib.sha256(content).hexdigest() == one["sha256"]
    assert one["version"] in one["file"]
    assert one["licence"] in (VIEWER / one["licenceFile"]).read_text()


def test_every_vendored_file_is_listed() -> None:
    listed = {one[key] for one in VENDORED for key in ("file", "licenceFile")}
    assert {path.name for path in VIEWER.iterdir()} == listed | OURS


def test_the_page_loads_the_version_that_is_listed() -> None:
    assert f"{docs_page.VIEWER}.gz" == VENDORED[0]["file"]
    assert f'src="docs/{docs_page.VIEWER}"' in (VIEWER / "page.html").read_text()


async def test_the_front_of_the_service_asks_a_stranger_to_sign_in(alice: ApiUser) -> None:
    async with (
        aiohttp.ClientSession() as stranger,
        stranger.get(f"{alice.url}/", allow_redirects=False) as answer,
    ):
        assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
