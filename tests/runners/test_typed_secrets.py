"""A secret that is typed letter by letter into a page that tells each state of its field."""

import base64
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from agent.outbox.redact import ArtifactRedactor
from contract.checks import BrowserSpec, CheckSpec, PlaywrightSpec
from contract.result import Outcome
from redaction.result import Scrubber
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from runners.playwright import PlaywrightRunner
from runners.runner import RunContext
from tests.builders.agents import metrics
from tests.builders.observations import a_result
from tests.builders.scripts import a_scripted_context, runtimes_here
from tests.builders.specs import a_job
from tests.builders.suites import BUNDLES, SUITES, a_suite_context, a_written_suite

SECRET = "Zebra+Quartz/91!\u00fc"
LONG_MS = 60_000
CUTS_MS = (4_000, 15_000, 45_000)
"""Limits to try in turn: on a slow machine nothing may be typed within the first one."""
SITE = """
const secret = process.env.SERVICE_SECRET_TOKEN;
const BODY = `<h1>Log in</h1><label>Password <input id="field"></label><p id="said"></p><script>
  document.querySelector('#field').addEventListener('input', ({ target: { value } }) => {
    console.log('typing ' + value);
    document.querySelector('#said').textContent = 'It is ' + value;
    const encoded = btoa(unescape(encodeURIComponent(value)));
    const body = JSON.stringify({ value, encoded });
    fetch('/strength?p=' + encodeURIComponent(value), { method: 'POST', body });
  });</script>`;
const open = async (page) => {
  await page.route('https://shop.example/**', (route) => {
    const request = route.request();
    if (request.url().endsWith('/')) return route.fulfill({ contentType: 'text/html', body: BODY });
    const echo = { asked: request.url(), sent: request.postData() };
    return route.fulfill({ contentType: 'application/json', body: JSON.stringify(echo) });
  });
  await page.goto('https://shop.example/');
};
"""
WAYS = {
    "all of it": "await field.pressSequentially(secret); throw new Error('no');",
    "cut by a time-out": "await field.pressSequentially(secret, { delay: LIMIT_MS / 16 });",
    "key by key": """
        await field.focus();
        for (const key of secret.slice(0, 16)) await page.keyboard.press(key);
        throw new Error('no');""",
    "with a letter that is taken off": """
        await field.pressSequentially(secret.slice(0, 3) + 'x');
        await field.press('Backspace');
        await field.pressSequentially(secret.slice(3, 14));
        throw new Error('no');""",
    "as single letters that are filled in": """
        const filled = [...secret.slice(0, 12)];
        await page.evaluate(() => {
          const one = '<input class="one" oninput="told()">';
          document.body.insertAdjacentHTML('beforeend', one.repeat(12));
          window.told = () => {
            const value = [...document.querySelectorAll('.one')].map((each) => each.value).join('');
            console.log('typing ' + value);
            fetch('/strength?p=' + encodeURIComponent(value), { method: 'POST', body: value });
          };
        });
        for (const at in filled) await page.locator('.one').nth(Number(at)).fill(filled[at]);
        throw new Error('no');""",
    "by the keyboard": """
        await field.focus();
        await page.keyboard.type(secret.slice(0, 12));
        throw new Error('no');""",
}


def a_test(way: str, *, limit_ms: int = LONG_MS) -> str:
    return f"""
const LIMIT_MS = {limit_ms};
const {{ test, expect }} = require('@playwright/test');
{SITE}
test('types', async ({{ page }}) => {{
  test.setTimeout(LIMIT_MS);
  await open(page);
  const field = page.locator('#field');
  {WAYS[way]}
}});
"""


PLAIN = f"""
const {{ chromium }} = require('playwright');
{SITE}
const browser = await chromium.launch();
const page = await browser.newPage();
await open(page);
await page.locator('#field').type(secret.slice(0, 15));
throw new Error('no');
"""


def forms(beginning: str) -> Iterator[bytes]:
    """A beginning as such a page tells it; of base64 the letters that it fills."""
    encoded = beginning.encode()
    yield encoded
    yield quote(beginning, safe="").encode()
    yield quote(quote(beginning, safe=""), safe="").encode()
    yield json.dumps(beginning)[1:-1].encode()
    yield encoded.hex().encode()
    yield base64.b64encode(encoded)[: len(encoded) * 8 // 6]


def members(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """The file, and all that is in it."""
    yield name, content
    if content.startswith(b"PK\3\4"):
        with zipfile.ZipFile(io.BytesIO(content)) as opened:
            for member in opened.namelist():
                yield from members(f"{name} {member}", opened.read(member))


def assert_no_beginning_is_left(left: dict[str, bytes]) -> None:
    for file, content in left.items():
        for name, member in members(file, content):
            for size in range(4, len(SECRET) + 1):
                for form in forms(SECRET[:size]):
                    place = member.find(form)
                    assert place < 0, (name, member[max(0, place - 100) : place + 60])


async def left_of(outcome: Outcome, ctx: RunContext, spec: CheckSpec) -> dict[str, bytes]:
    """What an agent sends of it: its files by their names, and its result."""
    scrubber, job, workspace = Scrubber(ctx.location_secrets.values()), a_job(spec), ctx.workspace
    enclosures = ArtifactRedactor(scrubber, metrics=metrics())
    enclosed = await enclosures.redact(job, outcome, workspace)
    result = a_result(outcome=enclosed.outcome)
    clean = scrubber.clean(
        result, job=job, found=workspace.secrets, typed_among=workspace.find_typed
    )
    files = {one.artifact.name: one.path.read_bytes() for one in enclosed.files}
    assert any("trace" in name for name in files), clean.body
    return {**files, "result": clean.body}


async def ran(script: str, runtime_id: str) -> dict[str, bytes]:
    spec = BrowserSpec(script=script, runtime_id=runtime_id)
    secrets = {"SERVICE_SECRET_TOKEN": SECRET}
    async with a_scripted_context(location_secrets=secrets, keeps_files=True) as ctx:
        outcome = judge(spec, await BrowserRunner().observe(spec, ctx))
        return await left_of(outcome, ctx, spec)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
@pytest.mark.parametrize("way", WAYS)
async def test_no_beginning_of_a_typed_secret_leaves_in_any_file(way: str, runtime_id: str) -> None:
    for limit_ms in CUTS_MS if way == "cut by a time-out" else (LONG_MS,):
        left = await ran(a_test(way, limit_ms=limit_ms), runtime_id)
        assert_no_beginning_is_left(left)
        if b"typing *********" in left["result"]:
            break
    assert b"typing *********" in left["result"]


@pytest.mark.timeout(300)
async def test_nothing_leaves_where_so_much_was_told_that_a_secret_could_be_set_unheard() -> None:
    flood = "'{}\\n'.repeat(100)"
    way = f"""
    const fs = require('node:fs');
    for (let at = 0; at < 201; at++) fs.writeSync(Number(process.env.PICKET_FACTS_FD), {flood});
    """
    script = a_test("by the keyboard").replace("  await open(page);", way + "await open(page);")
    (newest, *_) = runtimes_here().installed
    spec = BrowserSpec(script=script, runtime_id=newest)
    async with a_scripted_context(location_secrets={"SERVICE_SECRET_TOKEN": SECRET}) as ctx:
        outcome = judge(spec, await BrowserRunner().observe(spec, ctx))
        enclosures = ArtifactRedactor(Scrubber(), metrics=metrics())
        enclosed = await enclosures.redact(a_job(spec), outcome, ctx.workspace)
        assert any("trace" in one.name for one in outcome.artifacts)
        assert (enclosed.outcome.artifacts, enclosed.files) == ((), ())
        assert ctx.workspace.unsearchable_because is not None


@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_none_leaves_of_a_plain_script(runtime_id: str) -> None:
    assert_no_beginning_is_left(await ran(PLAIN, runtime_id))


@pytest.mark.timeout(300)
async def test_none_leaves_of_a_suite(tmp_path: Path, playwright_version: str) -> None:
    versions = SUITES / "versions" / playwright_version
    files = {path.name: path.read_text() for path in versions.iterdir()}
    files["types.spec.js"] = a_test("cut by a time-out", limit_ms=CUTS_MS[0])
    spec = PlaywrightSpec(bundle_sha256=a_written_suite(tmp_path, files).bundle_sha256)
    secrets = {"SERVICE_SECRET_TOKEN": SECRET}
    async with a_suite_context(BUNDLES, location_secrets=secrets) as ctx:
        outcome = judge(spec, await PlaywrightRunner().observe(spec, ctx))
        assert_no_beginning_is_left(await left_of(outcome, ctx, spec))
