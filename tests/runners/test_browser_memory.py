"""A browser check that takes too much memory is told so, wherever it took it."""

import pytest

from contract.result import FailureKind
from runners.kit import playwright_run
from tests.builders.scripts import a_scripted_context
from tests.runners.test_browser import a_test, look

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
    assert peak_mb > LIMIT_MB
