"""JSON or YAML text to plain values, with a sentence and a place for whatever is wrong in it."""

import json
import re
from collections.abc import Hashable
from typing import Final

import yaml

LIMIT_BYTES: Final = 1024 * 1024
LIMIT_DEPTH: Final = 40
LIMIT_VALUES: Final = 50_000
"""A few aliases of YAML can stand for billions of values; a check needs a few hundred."""


_JSON_START: Final = re.compile(r'\s*(?:\{\s*["}]|\[\s*["{\[\]])')
"""What JSON begins with; YAML that begins like this means the same."""


class DocumentError(ValueError):
    """The text is no document; the sentence names line and column where they are known."""


def read_document(text: str) -> object:
    """The plain value that the text holds: JSON when it looks like JSON, else YAML.

    Raises:
        DocumentError: the text is neither, is empty, says a key twice, or is far too large.
    """
    if not text.strip():
        raise DocumentError("is empty")
    document = _read_json(text) if _JSON_START.match(text) else _read_yaml(text)
    _hold_limits(document)
    return document


def _read_json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise DocumentError(f"is no JSON: {where}: {problem.msg}") from problem
    except RecursionError as problem:
        raise DocumentError(f"is nested deeper than {LIMIT_DEPTH} levels") from problem
    except ValueError as problem:
        if isinstance(problem, DocumentError):
            raise
        raise DocumentError(f"is no JSON that can be read: {problem}") from problem


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise DocumentError(f"says {key} twice in one object; keep one of them")
        found[key] = value
    return found


def _no_constant(name: str) -> object:
    raise DocumentError(f"holds {name}, which is no JSON number")


class _StrictLoader(yaml.SafeLoader):
    """Plain values only, and no key twice.

    Its scalars are those of YAML 1.2: `no`, `12:30` and `2026-01-01` stay the text they are.
    """

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - the library's signature
    ) -> dict[Hashable, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key != "<<" and key in seen:
                line = key_node.start_mark.line + 1
                raise DocumentError(f"says {key} twice: again in line {line}; keep one of them")
            seen.add(key)
        return super().construct_mapping(node, deep)


_StrictLoader.yaml_implicit_resolvers = {}
_SCALARS: Final = (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    (
        "float",
        r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
    ("merge", r"^<<$", ["<"]),
)
for _tag, _pattern, _first in _SCALARS:
    _StrictLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


def _read_yaml(text: str) -> object:
    try:
        documents = list(yaml.load_all(text, Loader=_StrictLoader))
    except yaml.YAMLError as problem:
        raise DocumentError(f"is no YAML: {_yaml_sentence(problem)}") from problem
    except (RecursionError, TypeError, ValueError) as problem:
        if isinstance(problem, DocumentError):
            raise
        raise DocumentError(f"is no YAML that can be read: {problem}") from problem
    if len(documents) != 1:
        raise DocumentError(f"holds {len(documents)} documents; one check stands in one file")
    return documents[0]


def _yaml_sentence(problem: yaml.YAMLError) -> str:
    mark = getattr(problem, "problem_mark", None)
    text = str(getattr(problem, "problem", None) or getattr(problem, "reason", problem))
    if mark is None:
        return text
    return f"line {mark.line + 1}, column {mark.column + 1}: {text}"


def _hold_limits(document: object) -> None:
    values = 0
    waiting: list[tuple[object, int]] = [(document, 1)]
    while waiting:
        value, depth = waiting.pop()
        values += 1
        if values > LIMIT_VALUES:
            raise DocumentError(f"holds more than {LIMIT_VALUES} values")
        if depth > LIMIT_DEPTH:
            raise DocumentError(f"is nested deeper than {LIMIT_DEPTH} levels")
        waiting.extend((child, depth + 1) for child in _children(value))


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []
