"""Package managers are packages themselves, installed apart from those of the suite."""

from pathlib import Path

import pytest

from runners.scripting.suites.install import build_programs, plan_tool
from runners.scripting.suites.package_manager import Installation, Manager, Tool

MODULES = Path("/kept packages/node_modules")


def a_tool(manager: Manager) -> Tool:
    return Tool(manager=manager, package=f"{manager}@1.2.3", install=(manager, "install"))


@pytest.mark.parametrize(
    ("manager", "names"),
    [
        (Manager.PNPM, {"pnpm", "pnpx"}),
        (Manager.YARN_CLASSIC, {"yarn"}),
        (Manager.YARN_BERRY, {"yarn"}),
        (Manager.BUN, {"bun", "bunx"}),
    ],
)
def test_a_package_manager_is_started_from_where_it_is_kept(
    manager: Manager, names: set[str]
) -> None:
    found = build_programs(a_tool(manager), MODULES)
    assert set(found) == names
    for name, script in found.items():
        assert f"'/kept packages/node_modules/.bin/{name}' \"$@\"\n" in script


def test_a_package_manager_hears_of_the_suites_registry_alone() -> None:
    whole = Installation(
        folder=Path("/suite"),
        tool=a_tool(Manager.PNPM),
        command="pnpm install && make",
        inputs=("package.json", "pnpm-lock.yaml", ".npmrc", ".pnpmfile.cjs"),
        in_place_because="its install command does more than install",
    )
    only = plan_tool(whole)
    assert only.inputs == (".npmrc",)
    assert only.command is None
    assert only.in_place_because is None
    assert only.tool.install[-1] == "pnpm@1.2.3"


def test_the_script_that_brings_bun_runs_whatever_the_suite_wants_of_others() -> None:
    only = plan_tool(
        Installation(
            folder=Path("/suite"),
            tool=a_tool(Manager.BUN),
            command=None,
            inputs=(".npmrc",),
            in_place_because=None,
        )
    )
    assert "--ignore-scripts=false" in only.tool.install
