"""A bundle becomes a suite on disk with the Node that it asks for, or a sentence."""

from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from contract.checks import PlaywrightSpec
from contract.result import CheckFailed, FailureKind
from runners.scripting.node.runtimes import MissingRuntimeError, Runtime, Runtimes
from runners.scripting.suites.bundle_archive import pack
from runners.scripting.suites.project import Project, add_programs, choose_runtime, open_project
from sandbox.workspace import Workspace


def a_runtime(folder: Path, name: str, node: str) -> Runtime:
    place = folder / name
    return Runtime(
        id=name,
        node=place / "bin/node",
        modules=place / "node_modules",
        playwright="1.65.1",
        node_version=node,
        compile_cache=None,
    )


@pytest.fixture
def runtimes(tmp_path: Path) -> Runtimes:
    found = [
        a_runtime(tmp_path / "runtimes", "2026.04", "24.19.0"),
        a_runtime(tmp_path / "runtimes", "2025.04", "22.20.0"),
    ]
    return Runtimes(by_id=MappingProxyType({one.id: one for one in found}))


def a_spec(**changes: Any) -> PlaywrightSpec:
    return PlaywrightSpec(**{"bundle_sha256": "0" * 64, **changes})


def opened(tmp_path: Path, runtimes: Runtimes, **changes: Any) -> Project:
    suite = tmp_path / "suite"
    (suite / "e2e").mkdir(parents=True)
    (suite / "e2e/a.spec.ts").write_text("")
    pack(suite, tmp_path / "bundle.tar.gz")
    workspace = Workspace(tmp_path)
    return open_project(tmp_path / "bundle.tar.gz", a_spec(**changes), workspace, runtimes)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, "24.19.0"),
        ("", "24.19.0"),
        ("24", "24.19.0"),
        ("22", "22.20.0"),
        ("v22.20", "22.20.0"),
        ("22.x", "22.20.0"),
        ("22.20.0", "22.20.0"),
    ],
)
def test_the_newest_node_that_fits_is_taken(
    runtimes: Runtimes, wanted: str | None, found: str
) -> None:
    assert choose_runtime(a_spec(engine_version=wanted), runtimes).node_version == found


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"runtime_id": "2025.04"}, "22.20.0"),
        ({"runtime_id": "2026.04"}, "24.19.0"),
        ({"runtime_id": "2025.04", "engine": "bun"}, "22.20.0"),
        ({"runtime_id": "2025.04", "engine_version": "22"}, "22.20.0"),
        ({"runtime_id": "2025.04", "engine_version": "24"}, "24.19.0"),
        ({"runtime_id": "2024.09", "engine_version": "24"}, "24.19.0"),
    ],
)
def test_the_checks_runtime_says_which_node_where_no_version_does(
    runtimes: Runtimes, asked: dict[str, str], found: str
) -> None:
    assert choose_runtime(a_spec(**asked), runtimes).node_version == found


def test_a_runtime_that_is_not_here_is_not_the_suites_fault(runtimes: Runtimes) -> None:
    with pytest.raises(MissingRuntimeError, match=r"2024\.09 is not installed"):
        choose_runtime(a_spec(runtime_id="2024.09"), runtimes)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"engine": "bun", "engine_version": "2"}, "Bun 2 is not available at .*; it has 1.3.14"),
        ({"engine_version": "26"}, "Node 26 is not available at this location; it has 24.19.0, 22"),
        ({"engine_version": "2"}, "Node 2 is not available"),
    ],
)
def test_an_engine_that_nobody_has_is_refused_with_what_there_is(
    runtimes: Runtimes, asked: dict[str, str], said: str
) -> None:
    with pytest.raises(CheckFailed, match=said) as refused:
        choose_runtime(a_spec(**asked), runtimes)
    assert refused.value.failure.kind is FailureKind.SCRIPT


@pytest.mark.parametrize("version", [None, "1", "1.3", "1.3.14"])
def test_with_bun_playwright_runs_on_the_newest_node(
    runtimes: Runtimes, version: str | None
) -> None:
    asked = a_spec(engine="bun", engine_version=version)
    assert choose_runtime(asked, runtimes).node_version == "24.19.0"


def test_a_machine_without_node_is_our_fault() -> None:
    with pytest.raises(MissingRuntimeError):
        choose_runtime(a_spec(), Runtimes())


@pytest.mark.parametrize("named", ["e2e", "./e2e", "/e2e", "e2e/"])
def test_the_working_directory_is_one_of_the_bundle(
    tmp_path: Path, runtimes: Runtimes, named: str
) -> None:
    project = opened(tmp_path, runtimes, working_dir=named)
    assert project.working_dir == project.root / "e2e"


@pytest.mark.parametrize("named", [None, "", ".", "/", "./"])
def test_without_a_name_it_is_the_bundles_root(
    tmp_path: Path, runtimes: Runtimes, named: str | None
) -> None:
    project = opened(tmp_path, runtimes, working_dir=named)
    assert project.working_dir == project.root


@pytest.mark.parametrize("named", ["nowhere", "../..", "e2e/../..", "e2e/a.spec.ts", "a\0b"])
def test_a_working_directory_that_is_not_in_the_bundle_is_refused(
    tmp_path: Path, runtimes: Runtimes, named: str
) -> None:
    with pytest.raises(CheckFailed, match="is not in the code bundle"):
        opened(tmp_path, runtimes, working_dir=named)


def test_a_bundle_that_cannot_be_unpacked_is_the_suites_fault(
    tmp_path: Path, runtimes: Runtimes
) -> None:
    (tmp_path / "bundle.tar.gz").write_bytes(b"no archive")
    workspace = Workspace(tmp_path)
    with pytest.raises(CheckFailed, match=r"no readable tar\.gz"):
        open_project(tmp_path / "bundle.tar.gz", a_spec(), workspace, runtimes)


def test_programs_can_be_executed(tmp_path: Path, runtimes: Runtimes) -> None:
    project = opened(tmp_path, runtimes)
    add_programs(project, {"pnpm": "#!/bin/sh\n"})
    assert (project.programs / "pnpm").stat().st_mode & 0o111
