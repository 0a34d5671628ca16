"""The program that runs setup and teardown scripts keeps its own tests, which Node runs."""

import subprocess
from pathlib import Path

import pytest

from runners.kit.runtimes import find_runtimes

SCRIPT_TESTS = Path(__file__).parent / "script"


@pytest.mark.parametrize("runtime_id", find_runtimes().installed)
def test_the_script_program_passes_its_own_tests_on_every_runtime(runtime_id: str) -> None:
    node = find_runtimes().get(runtime_id).node
    files = [str(path) for path in sorted(SCRIPT_TESTS.glob("*.test.cjs"))]
    done = subprocess.run(
        [str(node), "--test", *files], capture_output=True, text=True, check=False
    )
    assert files
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
