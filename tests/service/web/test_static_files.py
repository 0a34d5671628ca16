"""Files that pages load."""

import hashlib
import json

import pytest

from service.web import static_files as module
from service.web.static_files import assets
from tests.service.web.conftest import WebUser

FOLDER = module._FOLDER
VENDORED = json.loads((FOLDER / "vendored.json").read_bytes())


@pytest.mark.parametrize("one", VENDORED, ids=lambda one: one["file"])
def test_a_vendored_file_is_what_its_list_says(one: dict[str, str]) -> None:
    assert hashlib.sha256((FOLDER / one["file"]).read_bytes()).hexdigest() == one["sha256"]
    assert one["version"] in one["file"]
    assert (FOLDER / one["licenceFile"]).is_file()


def test_every_minified_file_is_listed_as_vendored() -> None:
    minified = {path.name for path in FOLDER.iterdir() if ".min." in path.name}
    assert minified == {one["file"] for one in VENDORED}


def test_every_file_is_served_under_a_digest_of_its_content() -> None:
    for one in assets().values():
        assert hashlib.sha256(one.content).hexdigest().startswith(one.digest)


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_a_file_is_the_same_packed_and_plain(web: WebUser, encoding: str) -> None:
    style = assets()["picket.css"]

    answer = await web.get(style.path, headers={"accept-encoding": encoding})

    assert answer.text.encode() == style.content
    assert answer.headers["content-type"].startswith("text/css")


async def test_no_other_file_is_served(web: WebUser) -> None:
    digest = assets()["picket.css"].digest
    for name in ("vendored.json", "htmx-LICENSE", "..%2froutes.py", "none.css"):
        assert (await web.get(f"/assets/{digest}/{name}")).status == 404
