"""The house rules that a machine can hold: format, lint, types, layers, the mirror of tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PACKAGES = ("contract", "redaction", "sandbox", "runners", "agent", "service", "picket")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "format", "--check", "."),
        ("ruff", "check", "."),
        ("mypy",),
        ("lint-imports",),
    ],
    ids=["format", "lint", "types", "layers"],
)
def test_the_code_keeps_the_rule(command: tuple[str, ...]) -> None:
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def modules() -> list[Path]:
    """Every module that is more than a docstring, relative to the root."""
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return sorted(
        path.relative_to(ROOT)
        for path in found
        if path.name != "__init__.py" and "migrations" not in path.parts
    )


def test_every_test_file_stands_where_its_package_stands() -> None:
    packages = {path.parent for path in modules()}
    strays = [
        path.relative_to(ROOT)
        for package in PACKAGES
        for path in (ROOT / "tests" / package).rglob("test_*.py")
        if path.parent.relative_to(ROOT / "tests") not in packages
    ]
    assert strays == []


def test_an_init_file_holds_a_docstring_at_most() -> None:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("__init__.py"):
            rest = re.sub(r'\A"""[^"]*"""\s*\Z', "", path.read_text())
            assert rest.strip() == "", path


@pytest.mark.parametrize("place", sorted({*conftest.SLOW, *conftest.FIRST}))
def test_each_place_that_conftest_lists_has_tests(place: str) -> None:
    assert [*ROOT.glob(f"{place}*")] != []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has runs of other users")
def test_other_users_come_to_the_code_during_tests() -> None:
    code = str(Path(sys.prefix) / "pyvenv.cfg"), str(Path(conftest.__file__))
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", *code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
