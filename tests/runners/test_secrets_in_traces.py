"""Real traces of a page that echoes a secret: none is left, and the trace viewer opens them."""

import asyncio
import base64
import html
import io
import json
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from contract.job import Variable
from contract.result import Artifact
from redaction.files_child import HiddenFile, hide_in_file
from runners.playwright import PlaywrightRunner
from runners.runner import RunContext
from sandbox.workspace import RunFile
from tests.builders.suites import a_bundle, a_suite_context
from tests.builders.trace_viewer import viewed
from tests.servers.echoing_site import echoing_site

SECRET = 'Zq7-p@$$ w/ö"rd&<x>%+='
BEARER = "bearer-0123456789"


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async with echoing_site() as url:
        yield url


def variables(site: str) -> tuple[Variable, ...]:
    secret = Variable(key="SERVICE_SECRET_TOKEN", value=SECRET, secret=True)
    return (secret, Variable(key="SITE", value=site))


def hide(ctx: RunContext, artifact: Artifact) -> HiddenFile:
    return hide_in_file(RunFile(ctx.workspace.folder / artifact.name, artifact), (SECRET,))


def members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """All that is in an archive, archives in it included."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for name in opened.namelist():
            content = opened.read(name)
            yield name, content
            if content.startswith(b"PK\3\4"):
                yield from members(content)


def written() -> set[bytes]:
    """The secret in the forms that a site and a browser usually write."""
    texts = {
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        html.escape(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        quote(quote(SECRET, safe=""), safe=""),
        base64.b64encode(f"user:{SECRET}".encode()).decode(),
        base64.b64encode(quote(SECRET, safe="~()*!'").encode()).decode(),
        base64.b64encode(SECRET.encode()).decode(),
        SECRET.encode().hex(),
        BEARER,
    }
    return {text.encode() for text in texts}


def assert_nothing_is_left(archive: bytes) -> None:
    for name, content in members(archive):
        for form in written():
            assert form not in name.encode(), name
            place = content.find(form)
            assert place < 0, (name, content[max(0, place - 200) : place + 60])


async def test_nothing_is_left_in_a_trace_and_the_viewer_opens_it(
    tmp_path: Path, site: str, playwright_version: str
) -> None:
    spec = a_bundle(tmp_path, "echoing", lock=f"versions/{playwright_version}")
    async with a_suite_context(tmp_path, variables=variables(site)) as ctx:
        ran = await PlaywrightRunner().observe(spec, ctx)
        assert ran.failure is not None
        assert "toBe(expected)" in ran.failure.message, ran.failure
        (trace,) = [one for one in ran.artifacts if one.kind == "trace"]
        found = await asyncio.to_thread(hide, ctx, trace)
        content = found.file.path.read_bytes()
        assert found.shows_secret
        assert_nothing_is_left(content)
        seen = await viewed(found.file.path)
    assert seen.problems == []
    assert any("attach" in action.lower() for action in seen.actions)
    assert any("echo" in request for request in seen.requests)
    assert seen.fields
    assert not any("Zq7" in value for value in (*seen.actions, *seen.requests, *seen.fields))
