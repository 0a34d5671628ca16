"""Leaves out of answers what a body need not say, by the description of the API. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from contract.checks import CheckType

_Schema = Mapping[str, Any]
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
_ABSENT: Final = object()


class ApiDefaults:
    """The bodies that an OpenAPI document describes."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._paths: Mapping[str, Any] = document["paths"]
        self._schemas: Mapping[str, Any] = document["components"]["schemas"]

    def of_check(self, kind: CheckType, answer: Mapping[str, Any]) -> dict[str, Any]:
        """What a check says, without defaults and without what only answers have."""
        return self._prune_object(answer, self._body(f"/v1/checks/{kind.path_segment}"))

    def of_other(self, path: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """What else is created by a POST to this path."""
        return self._prune_object(answer, self._body(path, answer.get("type")))

    def _body(self, path: str, kind: object = None) -> _Schema:
        content = self._paths[path]["post"]["requestBody"]["content"]
        schema: _Schema = content["application/json"]["schema"]
        choices = [self._resolve(one) for one in schema.get("oneOf", [schema])]
        for one in choices:
            if one["properties"].get("type", {}).get("const", kind) == kind:
                return one
        return choices[0]

    def _resolve(self, schema: _Schema) -> _Schema:
        while "$ref" in schema:
            schema = self._schemas[str(schema["$ref"]).rpartition("/")[2]]
        return schema

    def _prune_object(self, value: Mapping[str, Any], schema: _Schema) -> dict[str, Any]:
        required = schema.get("required", ())
        pruned: dict[str, Any] = {}
        for name, one in schema.get("properties", {}).items():
            if name not in value:
                continue
            given, default = self._prune(value[name], one), one.get("default", _ABSENT)
            is_bare = given == {} and default is _ABSENT
            if name in required or not (is_bare or _is_default(value[name], default)):
                pruned[name] = given
        return pruned

    def _prune(self, value: Any, schema: _Schema) -> Any:
        for one in self._branches(schema):
            if isinstance(value, dict) and "properties" in one:
                return self._prune_object(value, one)
            if isinstance(value, list) and "items" in one:
                return [self._prune(each, one["items"]) for each in value]
        return value

    def _branches(self, schema: _Schema) -> list[_Schema]:
        schema = self._resolve(schema)
        choices: Sequence[_Schema] = schema.get("anyOf") or schema.get("oneOf") or ()
        return [branch for one in choices for branch in self._branches(one)] or [schema]


def _is_default(value: Any, default: object) -> bool:
    if value in _EMPTY:
        return default is _ABSENT or default in _EMPTY
    if isinstance(value, bool) or isinstance(default, bool):
        return value is default
    return bool(value == default)
