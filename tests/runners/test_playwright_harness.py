"""What we load into Playwright keeps its own tests, which Node runs."""

import subprocess
from pathlib import Path

from tests.builders.scripts import runtimes_here

PLAYWRIGHT_TESTS = Path(__file__).parent / "playwright"


def test_what_is_loaded_into_playwright_passes_its_own_tests() -> None:
    files = [str(path) for path in sorted(PLAYWRIGHT_TESTS.glob("*.test.cjs"))]
    done = subprocess.run(
        [str(runtimes_here().get(None).node), "--test", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert files
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
