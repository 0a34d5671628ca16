"""Pictures that nobody asked for get masks: whatever the secret is, they look the same."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent.outbox.redact import ArtifactRedactor
from contract.checks import BrowserSpec, CheckSpec
from contract.result import Artifact, Outcome
from redaction.result import Scrubber
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from runners.playwright import PlaywrightRunner
from runners.runner import RunContext
from tests.builders.agents import metrics
from tests.builders.patience import OFTEN
from tests.builders.scripts import a_scripted_context, runtimes_here
from tests.builders.specs import a_job
from tests.builders.suites import BUNDLES, a_suite_context, a_written_suite

SECRETS = ("Zq7-p@$$w/rd&x%+=01", "Yk8-r@$$v/se&z%+=02")
"""Of the same width in letters that all have the same."""
BOTH = dict(zip(("SERVICE_SECRET_TOKEN", "SERVICE_SECRET_OTHER"), SECRETS, strict=True))
PAGE = """
const page_of = (told) => `<!doctype html><style>* { font: 16px monospace }</style>
  <h1>An order</h1><p>Said: ${told}</p><p><b>${told.slice(0, 9)}</b>${told.slice(9)}</p>
  <input id="typed"><input placeholder="${told}"><textarea>${told}</textarea>
  <select><option>one</option><option selected>${told}</option></select>
  <select><option label="${told}">x</option></select>
  <select size="3"><optgroup label="${told}"><option>x</option></optgroup></select>
  <img src="data:," alt="${told}" width="300" height="50"><input type="image" alt="${told}">
  <p>${told.slice(0, 9)}&shy;\u200b${told.slice(9)}</p>
  <style style="display: block">/* ${told} */</style>
  <script style="display: block" type="text/plain">${told}</script>
  <p>${encodeURIComponent(told).length}</p><div id="host"></div>`;
const show = async (page, secret) => {
  const told = secret.replace(/&/g, '&amp;');
  await page.setContent(page_of(told) + `<iframe srcdoc='<pre>${told}</pre>'></iframe>`);
  await page.evaluate((text) => {
    document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML = `<p>${text}</p>`;
  }, told);
  await page.fill('#typed', secret);
  await page.frameLocator('iframe').locator('pre').waitFor();
};
"""
TEST = f"""
const {{ test, expect }} = require('@playwright/test');
{PAGE}
test('shows them', async ({{ page, context }}) => {{
  await show(page, process.env.SERVICE_SECRET_TOKEN);
  await show(await context.newPage(), process.env.SERVICE_SECRET_OTHER);
  throw new Error('no');
}});
"""
PLAIN = f"""
const {{ chromium }} = require('playwright');
{PAGE}
const browser = await chromium.launch();
await show(await browser.newPage(), process.env.SERVICE_SECRET_TOKEN);
await show(await browser.newPage(), process.env.SERVICE_SECRET_OTHER);
throw new Error('no');
"""


class Seen(NamedTuple):
    """What is left of a run's files."""

    outcome: Outcome
    pictures: tuple[Artifact, ...]

    @property
    def log(self) -> str:
        return "\n".join(line.message for line in self.outcome.log)


async def seen(
    script: str, secrets: dict[str, str], *, keeps_files: bool = True, **changes: Any
) -> Seen:
    spec = BrowserSpec(script=script, **changes)
    async with a_scripted_context(location_secrets=secrets, keeps_files=keeps_files) as ctx:
        outcome = judge(spec, await BrowserRunner().observe(spec, ctx))
        return await left_of(outcome, ctx, spec)


async def pictured(script: str, secrets: dict[str, str], **changes: Any) -> Seen:
    """With a picture for each: on a machine that stands still, a page does not tell in time."""
    for _ in OFTEN:
        one = await seen(script, secrets, **changes)
        if len(one.pictures) == len(secrets):
            break
    return one


async def left_of(outcome: Outcome, ctx: RunContext, spec: CheckSpec) -> Seen:
    """What an agent sends of it."""
    scrubber = Scrubber(ctx.location_secrets.values())
    enclosures = ArtifactRedactor(scrubber, metrics=metrics())
    enclosed = await enclosures.redact(a_job(spec), outcome, ctx.workspace)
    left = enclosed.outcome.artifacts
    return Seen(enclosed.outcome, tuple(one for one in left if one.kind == "screenshot"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
@pytest.mark.parametrize("script", [TEST, PLAIN])
async def test_a_picture_of_a_page_that_shows_a_secret_is_kept_and_is_the_same_for_any_secret(
    script: str, runtime_id: str
) -> None:
    one = await pictured(script, BOTH, runtime_id=runtime_id)
    first, second = one.pictures
    assert first.sha256 == second.sha256
    assert "video" not in {artifact.kind for artifact in one.outcome.artifacts}
    assert "it may show a secret, because a page of the run showed one" in one.log


TYPING = """
const { test, expect } = require('@playwright/test');
const type = async (page, secret) => {
  await page.setContent(`<style>* { font: 16px monospace }</style>
    <input id="field" size="40" oninput="said.textContent = value"><p id="said"></p>`);
  await page.locator('#field').pressSequentially(secret.slice(0, SIZE));
};
test('types', async ({ page, context }) => {
  await type(page, process.env.SERVICE_SECRET_TOKEN);
  await type(await context.newPage(), process.env.SERVICE_SECRET_OTHER);
  throw new Error('no');
});
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
@pytest.mark.parametrize("size", [4, 12])
async def test_a_picture_shows_nothing_of_a_secret_that_is_being_typed(
    runtime_id: str, size: int
) -> None:
    one = await pictured(TYPING.replace("SIZE", str(size)), BOTH, runtime_id=runtime_id)
    first, second = one.pictures
    assert first.sha256 == second.sha256


KNOWS = """
const { test } = require('@playwright/test');
test('sets it', async () => { process.env.SERVICE_SECRET_LATE = 'late-secret-of-one'; });
"""
TWO_AT_ONCE = "module.exports = { workers: 2, timeout: 0 };"
KNOWS_NOT = """
const { test } = require('@playwright/test');
test('shows it', async ({ page }) => {
  await page.setContent('<p>late-secret-of-one</p>');
  throw new Error('no');
});
"""


@pytest.mark.timeout(300)
async def test_a_picture_does_not_leave_whose_masks_knew_less_than_another_process_told(
    tmp_path: Path,
) -> None:
    files = {"a.spec.js": KNOWS, "b.spec.js": KNOWS_NOT, "playwright.config.js": TWO_AT_ONCE}
    spec = a_written_suite(tmp_path, files)
    secrets = {"SERVICE_SECRET_TOKEN": SECRETS[0]}
    async with a_suite_context(BUNDLES, location_secrets=secrets) as ctx:
        outcome = judge(spec, await PlaywrightRunner().observe(spec, ctx))
        assert any(one.kind == "screenshot" for one in outcome.artifacts)
        assert "late-secret-of-one" in ctx.workspace.secrets
        one = await left_of(outcome, ctx, spec)
    assert one.pictures == ()
    assert "it may show a secret" in one.log


@pytest.mark.timeout(300)
async def test_the_pictures_of_a_suites_failures_have_masks_too(tmp_path: Path) -> None:
    spec = a_written_suite(tmp_path, {"shows.spec.js": TEST})
    for _ in OFTEN:
        async with a_suite_context(BUNDLES, location_secrets=BOTH) as ctx:
            outcome = judge(spec, await PlaywrightRunner().observe(spec, ctx))
            one = await left_of(outcome, ctx, spec)
        if len(one.pictures) == len(BOTH):
            break
    assert "trace" in {artifact.kind for artifact in one.outcome.artifacts}
    first, second = one.pictures
    assert first.sha256 == second.sha256


OWN = """
const { test, expect } = require('@playwright/test');
test('takes pictures', async ({ page }) => {
  await page.setContent('<p>Nothing to hide</p>');
  await page.screenshot({ path: 'before.png' });
  await page.setContent(`<p>${process.env.SERVICE_SECRET_TOKEN}</p>`);
  await page.screenshot({ path: 'after.png' });
  process.env.SERVICE_SECRET_NEXT = LATE;
});
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("late", "kept"), [("''", ["before.png"]), ("'Nothing to hide'", [])])
async def test_where_no_trace_tells_a_scripts_own_picture_stays_if_its_page_showed_no_secret(
    late: str, kept: list[str]
) -> None:
    script = OWN.replace("LATE", late)
    if kept:
        one = await pictured(script, {"SERVICE_SECRET_TOKEN": SECRETS[0]}, keeps_files=False)
    else:
        one = await seen(script, {"SERVICE_SECRET_TOKEN": SECRETS[0]}, keeps_files=False)
    assert [picture.name for picture in one.pictures] == kept
    assert "The file after.png is missing: it may show a secret: the run knew secrets" in one.log


@pytest.mark.timeout(300)
async def test_a_page_learns_nothing_of_secrets_from_the_masks() -> None:
    """Its own functions are asked nothing, and what it sees of the masks holds no text."""
    spies = """
    await page.setContent('<p id="text">@</p><input id="field">'.replace('@', secret.length));
    await page.evaluate(() => {
      const told = window.told = [];
      const listen = (its, name) => {
        const real = its[name];
        its[name] = function (...given) {
          told.push(String(this), ...given.map(String));
          return real.apply(this, given);
        };
      };
      for (const name of ['test', 'exec']) listen(RegExp.prototype, name);
      for (const name of ['includes', 'match', 'indexOf', 'search']) listen(String.prototype, name);
      const note = (all) => all.forEach((one) => told.push(one.target.outerHTML));
      const whole = { subtree: true, childList: true, attributes: true, characterData: true };
      new MutationObserver(note).observe(document, whole);
    });
    await page.screenshot({ timeout: 5000, caret: 'initial', path: 'as-playwright-takes-it.png' });
    const told = await page.evaluate(() => window.told.map(String));
    expect(told.filter((text) => text.includes(secret.slice(0, 5)))).toEqual([]);
    """
    body = f"const secret = process.env.SERVICE_SECRET_TOKEN;\n{spies}"
    script = (
        "const { test, expect } = require('@playwright/test');\n"
        f"test('listens', async ({{ page }}) => {{ {body} }});"
    )
    for _ in range(3):
        one = await seen(script, {"SERVICE_SECRET_TOKEN": SECRETS[0]})
        if "as-playwright-takes-it.png" in {picture.name for picture in one.pictures}:
            break
    assert one.outcome.failure is None, one.outcome.failure
    assert "as-playwright-takes-it.png" in {picture.name for picture in one.pictures}
