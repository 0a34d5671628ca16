"""What the code imports: declared, of one version on each Python, bounded where it is internal."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("contract", "redaction", "sandbox", "runners", "agent", "service", "picket")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())

INTERNALS = {
    "aiohttp": ("http_exceptions", "web_request", "web_response", "web_server"),
    "fastapi": ("dependencies",),
    "starlette": ("routing.compile_path", "routing.get_name"),
    "uvicorn": ("protocols",),
}
"""What is imported of a library and not in its manual. Tests of who imports it exercise it."""


def distribution_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def imports() -> dict[str, frozenset[str]]:
    """By distribution: each name that our code imports of it, with its module."""
    distributions = packages_distributions()
    found: dict[str, set[str]] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for name in imported_names(ast.parse(path.read_text())):
                top = name.partition(".")[0]
                if top in sys.stdlib_module_names or top in PACKAGES:
                    continue
                # One file of mypy's helpers may lie beside the library; the library comes first.
                distribution = distribution_name(distributions[top][0])
                found.setdefault(distribution, set()).add(name)
    return {name: frozenset(names) for name, names in found.items()}


def imported_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}" for one in node.names)


def requirements() -> dict[str, set[str]]:
    """By distribution: the specifiers that pyproject.toml gives it."""
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    found: dict[str, set[str]] = {}
    for one in (one for group in lists for one in group if isinstance(one, str)):
        name, specifiers = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?(.*)", one).groups()  # type: ignore[union-attr]
        found.setdefault(distribution_name(name), set()).add(specifiers)
    return found


def test_what_the_code_imports_has_one_version_for_all_pythons() -> None:
    versions: dict[str, list[str]] = {name: [] for name in imports()}
    for package in LOCK["package"]:
        if package["name"] in versions:
            versions[package["name"]].append(package["version"])
    split = {name: found for name, found in versions.items() if len(found) != 1}
    assert split == {}, "bound the requirement, so that each Python gets the same version"


def test_what_the_code_imports_is_declared() -> None:
    assert set(imports()) <= set(requirements())


def test_a_library_is_required_in_the_same_way_wherever_it_is_required() -> None:
    assert {name: found for name, found in requirements().items() if len(found) > 1} == {}


@pytest.mark.parametrize("library", INTERNALS)
def test_a_library_whose_internals_are_imported_has_an_upper_bound(library: str) -> None:
    assert all("<" in specifiers for specifiers in requirements()[library])


@pytest.mark.parametrize("library", INTERNALS)
def test_internals_that_nobody_imports_any_more_are_not_listed(library: str) -> None:
    names = imports()[library]
    unused = [
        internal
        for internal in INTERNALS[library]
        if not any(name.startswith(f"{library}.{internal}") for name in names)
    ]
    assert unused == []


def test_no_module_or_name_that_begins_with_an_underscore_is_imported() -> None:
    private = {name for names in imports().values() for name in names if "._" in name}
    assert private == set()
