"""The release that the code names."""

import tomllib
from pathlib import Path

from contract.release import RELEASE

ROOT = Path(__file__).parents[2]


def test_the_release_is_the_packages_version() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == RELEASE
