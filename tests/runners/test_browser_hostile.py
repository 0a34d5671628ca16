"""A browser check that takes too much, or tells lies, changes its own result alone."""

import pytest

from contract.result import FailureKind
from runners.scripting.playwright import run as playwright_run
from tests.builders.browser_checks import a_test, look
from tests.builders.scripts import a_scripted_context

LIMIT_MB = 700
"""What a browser with an empty page takes, twice."""
MUCH = "const held = []; for (;;) held.push(new Uint8Array(1e7).fill(1));"
TAKERS = {
    "a page's scripts": f"await page.evaluate(() => {{ {MUCH} }});",
    "the script": "const held = []; for (;;) held.push(Buffer.alloc(1e7, 1));",
}


@pytest.mark.parametrize("body", TAKERS.values(), ids=TAKERS)
async def test_memory_past_the_limit_is_named_whoever_took_it(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playwright_run, "BROWSER_MB", LIMIT_MB)
    async with a_scripted_context() as ctx:
        outcome = await look(ctx, a_test(body))
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.OUT_OF_MEMORY, outcome.failure.message
    assert outcome.failure.detail["limitMb"] == LIMIT_MB
    peak_mb = outcome.failure.detail["peakMb"]
    assert isinstance(peak_mb, int)
    assert peak_mb >= LIMIT_MB


JUNK = """
const { writeSync } = require('fs');
const lines = [
  '\\xff\\xfe', '['.repeat(200000), '{"fact":"page","index":1e999}', 'null', '{"fact":[]}',
  '{"fact":"ended","status":"passed","extra":"' + 'x'.repeat(900000) + '"}', '{"fact":"began"',
];
for (const line of lines) {
  const bytes = Buffer.from(line + '\\n', 'latin1');
  for (let at = 0; at < bytes.length;) {
    try { at += writeSync(3, bytes, at); }
    catch (error) { if (error.code !== 'EAGAIN') throw error; }
  }
}
throw new Error('no tea');
"""


async def test_junk_among_the_facts_leaves_the_failure_as_it_was() -> None:
    async with a_scripted_context() as ctx:
        outcome = await look(ctx, a_test(JUNK))
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    assert "no tea" in outcome.failure.message
    assert any("Not all that the run reported was kept" in one.message for one in outcome.log)


async def test_a_forged_end_is_no_fault_of_ours() -> None:
    forged = (
        'require("fs").writeSync(3, \'{"fact":"ended","status":"failed"}\\n\'); process.exit(0);'
    )
    async with a_scripted_context() as ctx:
        outcome = await look(ctx, a_test(forged))
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
