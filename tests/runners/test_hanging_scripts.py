"""Scripts that do not end: the result names what they hung in, and keeps what there is of them."""

from typing import Any
from zipfile import ZipFile

import pytest

from contract.checks import BrowserSpec, MultiStepSpec
from contract.result import Outcome, Status
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from runners.multi_step import MultiStepRunner
from tests.builders.patience import BLOCKS
from tests.builders.scripts import a_scripted_context, runtimes_here
from tests.servers.tcp import swallowing_port

PATIENT: dict[str, object] = {"timeout": 0, "use": {"navigationTimeout": 0}}
ENOUGH_S = (10.0, 30.0, 60.0)
"""Time limits to try in turn, where a script is to come to some step before time is up."""
BUSY = "is there a loop without an end, or a call that blocks?"

PLAIN = """\
const { chromium } = require('playwright')
const page = await (await chromium.launch()).newPage()
await page.goto('URL/plain')
console.log('there')
"""


class Hung:
    """What came of a run that was stopped."""

    def __init__(self, outcome: Outcome, traces: tuple[str, ...], limit_s: float) -> None:
        """`traces`: the text of all events in its traces."""
        assert outcome.status is Status.TIMED_OUT
        assert outcome.failure is not None
        limit = f" to keep its files within its limit of {limit_s:g} s: ".replace("60 s", "1 min")
        stopped, self.doing = outcome.failure.message.split(limit)
        assert stopped.startswith("The run was stopped after ")
        self.outcome, self.trace = outcome, "".join(traces)
        self.log = [line.message for line in outcome.log]


async def hung(
    script: str, *, until: str = "there", traces: str | None = "", **changes: Any
) -> Hung:
    """Run it with a limit that lets it print `until` and keep a trace with the text `traces`.

    None: it has no trace. A busy machine may not leave it the time to end one.
    """
    for limit_s in ENOUGH_S:
        spec = BrowserSpec(script=script, playwright_config=PATIENT, **changes)
        async with a_scripted_context(timeout_s=limit_s) as ctx:
            outcome = judge(spec, await BrowserRunner().observe(spec, ctx))
            archives = [one.name for one in outcome.artifacts if one.kind == "trace"]
            seen = Hung(
                outcome, tuple(_events(ctx.workspace.folder / a) for a in archives), limit_s
            )
        if until in seen.log and (traces is None or (seen.trace and traces in seen.trace)):
            break
    assert until in seen.log
    return seen


def _events(archive: Any) -> str:
    with ZipFile(archive) as opened:
        assert opened.testzip() is None
        names = (name for name in opened.namelist() if name.endswith(".trace"))
        return "".join(opened.read(name).decode() for name in names)


def a_test(site: str, body: str) -> str:
    return (
        "import { test, expect } from '@playwright/test'\n"
        f"test('shop', async ({{ page }}) => {{\nawait page.goto('{site}/plain')\n"
        f"console.log('there')\n{body}\n}})\n"
    )


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_a_test_is_stopped_in_its_step_with_trace_and_video(
    site: str, runtime_id: str
) -> None:
    click = "await test.step('order', async () => { await page.locator('#nope').click() })"
    seen = await hung(a_test(site, click), traces="order", runtime_id=runtime_id)
    assert "#nope" in seen.doing
    assert seen.doing.endswith(" (script.js:5:68), in “order”.")
    assert {one.kind for one in seen.outcome.artifacts} >= {"trace", "screenshot", "video"}
    assert "#nope" in seen.trace
    assert "order" in seen.trace
    evidence: Any = seen.outcome.evidence
    assert evidence.errors == ()
    assert [step.took_ms for step in evidence.steps][-1] is None


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_a_plain_script_is_stopped_in_its_call_with_trace_and_video(
    site: str, runtime_id: str
) -> None:
    click = "page.setDefaultTimeout(0)\nawait page.locator('#nope').click()"
    seen = await hung(PLAIN.replace("URL", site) + click, runtime_id=runtime_id)
    assert seen.doing == "it was in “locator.click #nope” (script.js:6:29)."
    assert {one.kind for one in seen.outcome.artifacts} >= {"trace", "screenshot", "video"}
    assert "#nope" in seen.trace
    assert "/plain" in seen.trace


@pytest.mark.parametrize(("kind", "keeps"), [("test", "for (;;) {}"), ("plain", BLOCKS)])
async def test_a_busy_script_says_so_and_keeps_the_trace_so_far(
    site: str, kind: str, keeps: str
) -> None:
    seen = await hung({"plain": PLAIN.replace("URL", site) + keeps}.get(kind, a_test(site, keeps)))
    assert seen.doing.startswith("the script itself was busy after “")
    assert seen.doing.endswith(f"(script.js:3:12): {BUSY}")
    assert "/plain" in seen.trace
    assert any("could not end its trace" in line for line in seen.log)
    assert seen.log[0] == "there", "what came of the run is told at its end"
    empty = [one.name for one in seen.outcome.artifacts if one.size_bytes == 0]
    assert empty == []


async def test_a_script_that_waits_for_nothing_of_ours_says_after_which_step(site: str) -> None:
    seen = await hung(a_test(site, "await new Promise(() => setInterval(() => {}, 500))"))
    assert seen.doing.startswith("no step was under way after “Navigate ")


async def test_a_hook_is_named(site: str) -> None:
    hook = (
        "import { test } from '@playwright/test'\n"
        "test.beforeEach(async ({ page }) => {\n"
        f"await page.goto('{site}/plain'); console.log('there')\n"
        "await page.locator('#nope').click()\n})\n"
        "test('shop', async () => {})\n"
    )
    seen = await hung(hook)
    assert seen.doing.endswith("(script.js:4:29), in “beforeEach hook”.")


async def test_a_request_without_an_answer_is_a_node_and_in_the_trace() -> None:
    with swallowing_port() as port:
        script = (
            "import { test } from '@playwright/test'\n"
            "test('steps', async ({ request }) => {\n"
            f"await request.get('http://127.0.0.1:{port}/', {{ timeout: 0 }})\n}})\n"
        )
        spec = MultiStepSpec(script=script, playwright_config=PATIENT)
        for limit_s in ENOUGH_S:
            async with a_scripted_context(timeout_s=limit_s) as ctx:
                outcome = judge(spec, await MultiStepRunner().observe(spec, ctx))
                archives = [one.name for one in outcome.artifacts if one.kind == "trace"]
                trace = "".join(_events(ctx.workspace.folder / name) for name in archives)
            if str(port) in trace:
                break
    assert outcome.failure is not None
    assert outcome.failure.detail["where"] == "script.js:3:15"
    evidence: Any = outcome.evidence
    assert [node.error for node in evidence.requests] == [
        "There was no answer when the run's time was up."
    ]
    assert str(port) in trace


@pytest.mark.parametrize("kind", ["test", "plain"])
async def test_a_script_that_ends_its_own_process_keeps_its_trace_or_says_that_there_is_none(
    site: str, kind: str
) -> None:
    leaves = "process.exit(3)"
    script = {"plain": PLAIN.replace("URL", site) + leaves}.get(kind, a_test(site, leaves))
    spec = BrowserSpec(script=script)
    async with a_scripted_context() as ctx:
        outcome = judge(spec, await BrowserRunner().observe(spec, ctx))
    kinds = {one.kind for one in outcome.artifacts}
    told = " ".join(line.message for line in outcome.log)
    assert outcome.status is Status.FAILED
    assert [kind for kind in ("trace", "video") if kind not in kinds and kind not in told] == []


async def test_a_script_that_hangs_as_it_is_loaded_says_that_there_are_no_files() -> None:
    script = f"import {{ test }} from '@playwright/test'\nconsole.log('there')\n{BLOCKS}\n"
    seen = await hung(script, traces=None)
    assert seen.doing == "it was still loading the script."
    assert "There is no trace and no video: " in " ".join(seen.log)
