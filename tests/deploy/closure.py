"""What a program imports, and what its extra brings: both read, nothing run."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOUSE = ("contract", "redaction", "sandbox", "runners", "agent", "service", "picket")


def imported_by(program: str) -> set[str]:
    """Every module that can be imported, in the end, by `python -m program`."""
    found: set[str] = set()
    waiting = {f"{program}.__main__"}
    while waiting:
        name = waiting.pop()
        found.add(name)
        file = _file(name)
        if file is not None:
            waiting |= _names(file) - found
    return found


def house_packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & set(HOUSE)


def libraries(modules: set[str]) -> set[str]:
    """The distributions, by their normal names, that hold what is neither ours nor Python's."""
    tops = {name.partition(".")[0] for name in modules}
    foreign = tops - set(HOUSE) - sys.stdlib_module_names
    holders = packages_distributions()
    return {holders[top][0].lower().replace("_", "-") for top in foreign}


def brought_by(*extras: str) -> set[str]:
    """What uv.lock installs for the project with these extras, markers left aside."""
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    packages = {package["name"]: package for package in locked}
    project = packages["picket-monitoring"]
    waiting = list(project["dependencies"])
    for extra in extras:
        waiting += project["optional-dependencies"][extra]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()["name"]
        if name not in found:
            found.add(name)
            waiting += packages[name].get("dependencies", [])
    return found


def _file(name: str) -> Path | None:
    """None: the module is not ours, or the name is of something within a module."""
    if name.partition(".")[0] not in HOUSE:
        return None
    path = ROOT.joinpath(*name.split("."))
    choices = (path.with_suffix(".py"), path / "__init__.py")
    return next((choice for choice in choices if choice.is_file()), None)


def _names(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(module)):
                names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names
