"""The program that runs setup and teardown scripts keeps its own tests, which Node runs."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.builders.scripts import runtimes_here

SCRIPT_TESTS = Path(__file__).parent / "script"


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
def test_the_script_program_passes_its_own_tests_on_every_runtime(runtime_id: str) -> None:
    runtime = runtimes_here().get(runtime_id)
    files = [str(path) for path in sorted(SCRIPT_TESTS.glob("*.test.cjs"))]
    done = subprocess.run(
        [str(runtime.node), "--test", *files],
        env={**os.environ, "RUNTIME_MODULES": str(runtime.modules.resolve())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert files
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
