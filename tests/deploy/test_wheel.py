"""The wheel holds all that the working copy has, and says what it is and what it needs."""

import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

import pytest

from contract.release import RELEASE
from picket.extras import LIBRARIES
from tests.deploy.closure import HOUSE, ROOT, brought_by, libraries

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NEEDS = {
    "agent": ("agent",),
    "run": ("agent",),
    "doctor": ("agent",),
    "scrub": ("agent",),
    "trace": ("agent",),
    "service": ("service",),
    "keys": ("service",),
    "openapi": ("service",),
    "up": ("agent", "service"),
    "setup": ("agent", "scripts"),
}
ARGUMENTS = {
    "run": ["check.yaml"],
    "trace": ["a.zip"],
    "scrub": ["a.zip", "--secret-file", "secrets"],
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as content:
        (name,) = [name for name in content.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(content.read(name).decode())


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of an environment with the wheel and no extra."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    for name in brought_by():
        files = distribution(name).files or ()
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(str(distribution(name).locate_file(top)))
    return site


def picket(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r});"
        "from picket.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    return subprocess.run(
        (sys.executable, "-I", "-S", "-B", "-c", code, *arguments),
        cwd=site,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_holds_every_file_of_our_packages(wheel: Path) -> None:
    here = {
        path.relative_to(ROOT).as_posix()
        for package in HOUSE
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as content:
        held = {name for name in content.namelist() if ".dist-info/" not in name}
    assert held == here


def test_the_wheel_names_its_release_and_the_pythons_that_it_runs_on(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("picket-monitoring", RELEASE)
    assert (metadata["Author"], metadata["License-Expression"]) == (
        "The Picket authors",
        "Apache-2.0",
    )
    classifiers = metadata.get_all("Classifier", [])
    for python in PYTHONS:
        assert f"Programming Language :: Python :: {python}" in classifiers
    assert f">={PYTHONS[0]}" in metadata["Requires-Python"].split(",")


def test_the_wheel_has_an_extra_for_each_part_and_one_for_all(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {*LIBRARIES, "clickhouse", "s3", "all"}
    assert brought_by("all") == brought_by(*LIBRARIES)


@pytest.mark.parametrize("extra", LIBRARIES)
def test_an_extra_is_known_by_a_library_that_it_alone_brings(extra: str) -> None:
    (library,) = libraries({LIBRARIES[extra]})
    assert library in brought_by(extra)
    assert library not in brought_by(*(LIBRARIES.keys() - {extra}))


@pytest.mark.parametrize("command", NEEDS)
def test_a_command_without_its_extra_ends_with_one_sentence(bare: Path, command: str) -> None:
    done = picket(bare, command, *ARGUMENTS.get(command, []))
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"; in the working copy run pip install '.[{','.join(NEEDS[command])}]'")


def test_debug_shows_no_traceback_of_a_missing_extra(bare: Path) -> None:
    done = picket(bare, "--debug", "agent")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["agent", "service"])
def test_settings_are_told_with_the_extra_alone(bare: Path, command: str) -> None:
    done = picket(bare, command, "--help")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"; in the working copy run pip install '.[{command}]'\n")


@pytest.mark.parametrize("command", ["run", "doctor", "scrub", "up", "setup"])
def test_every_other_command_tells_its_help_without_an_extra(bare: Path, command: str) -> None:
    done = picket(bare, command, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Usage: picket {command}")
