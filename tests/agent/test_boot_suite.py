"""What the boot check's suite holds of a runtime."""

import subprocess
from pathlib import Path

import pytest

from agent.self_test import BOOT_SUITE


def programs(folder: Path, **codes: int) -> Path:
    folder.mkdir()
    for name, code in codes.items():
        file = folder / name
        file.write_text(f"#!/bin/sh\nexit {code}\n")
        file.chmod(0o755)
    return folder


@pytest.mark.parametrize("code", [0, 1])
def test_the_suite_is_installed_with_the_npm_beside_node_whatever_the_host_has(
    tmp_path: Path, code: int
) -> None:
    runtime, host = programs(tmp_path / "bin", node=0, npm=code), programs(tmp_path / "host", npm=0)
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (work := tmp_path / "work").mkdir()
    assert BOOT_SUITE.install_command is not None
    done = subprocess.run(
        ["/bin/sh", "-c", BOOT_SUITE.install_command],
        cwd=work,
        env={"PATH": f"{runtime}:{host}:/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == code
    assert ((work / "node_modules").resolve() == modules) is (code == 0)
