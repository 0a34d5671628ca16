"""The rules of style that a machine can check, for the modules of the product.

`offenders.txt` lists what broke a rule when the rule came; it may only become shorter.
`python -m tests.house.test_style` takes from it what offends no more.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.house.test_house import ROOT, modules

OFFENDERS: Final = Path(__file__).with_name("offenders.txt")
BAGS: Final = frozenset({"util", "utils", "common", "misc", "helper", "helpers"})
FLOORS: Final = re.compile(
    "__main__|api|model|store|actions|rules|views|loop|run|reporter|verdict|schemas|settings"
    "|sqlite|postgresql|secrets|errors|tls|registry"
)
"""Names that have the same role in sibling packages."""


@dataclass(frozen=True, slots=True)
class Module:
    path: Path
    text: str
    nodes: tuple[ast.AST, ...]
    """All nodes of its syntax tree."""


def parse(path: Path, text: str) -> Module:
    return Module(path, text, tuple(ast.walk(ast.parse(text))))


Rule = Callable[[Sequence[Module]], Iterable[str]]


def long_modules(found: Sequence[Module]) -> Iterator[str]:
    return (str(one.path) for one in found if one.text.count("\n") > 600)


def long_functions(found: Sequence[Module]) -> Iterator[str]:
    for one in found:
        for node in one.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines(node) > 60:
                yield f"{one.path} {node.name}"


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def crowded_folders(found: Sequence[Module]) -> Iterator[str]:
    folders = Counter(str(one.path.parent) for one in found)
    return (folder for folder, count in folders.items() if count > 15)


def fragments(found: Sequence[Module]) -> Iterator[str]:
    """Docstrings, and lines under a field, that need the line above to be understood."""
    for one in found:
        for text in _documentation(one):
            if re.match(r"(Of|So|As|The same)\b", text):
                yield f"{one.path} {text.splitlines()[0]}"


def _documentation(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield text.strip()


def bags_of_unrelated_things(found: Sequence[Module]) -> Iterator[str]:
    for one in found:
        if BAGS.intersection(one.path.with_suffix("").parts):
            yield str(one.path)


def modules_with_one_name(found: Sequence[Module]) -> Iterator[str]:
    paths = defaultdict(list)
    for one in found:
        if not FLOORS.fullmatch(one.path.stem):
            paths[one.path.parts[0], one.path.stem].append(str(one.path))
    return (" ".join(sorted(alike)) for alike in paths.values() if len(alike) > 1)


def protocols(found: Sequence[Module]) -> Iterator[str]:
    """All of them: each needs two shipped implementations, or an import that would go up."""
    for one in found:
        for node in one.nodes:
            if isinstance(node, ast.ClassDef) and any(map(_is_protocol, node.bases)):
                yield f"{one.path} {node.name}"


def _is_protocol(base: ast.expr) -> bool:
    return "Protocol" in re.split(r"\W", ast.unparse(base))


RULES: Final[dict[str, Rule]] = {
    rule.__name__: rule
    for rule in (
        long_modules,
        long_functions,
        crowded_folders,
        fragments,
        bags_of_unrelated_things,
        modules_with_one_name,
        protocols,
    )
}


def find_offenders() -> set[str]:
    """Each line begins with the name of the rule that it breaks."""
    found = [parse(path, (ROOT / path).read_text()) for path in modules()]
    return {f"{name} {one}" for name, rule in RULES.items() for one in rule(found)}


def test_no_module_breaks_a_rule_of_style_but_those_that_did_when_it_came() -> None:
    found, listed = find_offenders(), set(OFFENDERS.read_text().splitlines())
    assert sorted(found - listed) == []
    stale = sorted(listed - found)
    assert stale == [], "run `python -m tests.house.test_style`, which takes these from the list"


def module(path: str, text: str = "") -> Module:
    return parse(Path(path), text)


LONG_FUNCTION = "def late():\n" + "    pass\n" * 60
FULL = [module(f"agent/jobs/m{number}.py") for number in range(16)]
BROKEN: Final[dict[str, list[Module]]] = {
    "long_modules": [module("agent/a.py", "\n" * 601)],
    "long_functions": [module("agent/a.py", f"class A:\n{LONG_FUNCTION}".replace("\n", "\n  "))],
    "crowded_folders": FULL,
    "fragments": [module("agent/a.py", 'class A:\n    b: int\n    """Of a line, its type."""')],
    "bags_of_unrelated_things": [module("agent/common/a.py")],
    "modules_with_one_name": [module("agent/jobs/queue.py"), module("agent/outbox/queue.py")],
    "protocols": [module("agent/a.py", "class Taker(typing.Protocol[T]): pass")],
}
KEPT: Final[dict[str, list[Module]]] = {
    "long_modules": [module("agent/a.py", "\n" * 600)],
    "long_functions": [module("agent/a.py", LONG_FUNCTION.removesuffix("    pass\n"))],
    "crowded_folders": [*FULL[1:], module("agent/outbox/m0.py")],
    "fragments": [module("agent/a.py", 'x = 1\n"""Often a whole sentence."""')],
    "bags_of_unrelated_things": [module("agent/common_name.py")],
    "modules_with_one_name": [module("agent/queue.py"), module("service/queue.py")],
    "protocols": [module("agent/a.py", "class ProtocolError(Exception): pass")],
}


@pytest.mark.parametrize("rule", RULES)
def test_what_breaks_a_rule_is_found_and_what_keeps_it_is_not(rule: str) -> None:
    assert len([*RULES[rule](BROKEN[rule])]) == 1
    assert [*RULES[rule](KEPT[rule])] == []


if __name__ == "__main__":
    offending = find_offenders()
    kept = [one for one in OFFENDERS.read_text().splitlines() if one in offending]
    OFFENDERS.write_text("".join(f"{one}\n" for one in kept))
