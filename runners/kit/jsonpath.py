"""JSONPath by RFC 9535, with `.length` at the end as a short form for arrays and texts."""

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError, JSONPathNode, JSONPathQuery
from jsonpath_rfc9535.filter_expressions import (
    Expression,
    FilterQuery,
)
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction
from jsonpath_rfc9535.parse import Parser
from jsonpath_rfc9535.tokens import TokenStream

from runners.kit.json_value import Json
from runners.kit.patterns import BadPatternError, as_bytes, compile_pattern

MAX_STEPS: Final = 10_000_000
"""Some 10 s of work, enough for `$..name` on a body of 25 MB; a filter that searches the whole
document for each of its places would take hours on a hundredth of that."""

_LENGTH: Final = ".length"


class BadPathError(ValueError):
    """A JSONPath that cannot be used; the text says why."""


def find_values(path: str, document: Json) -> Sequence[Json]:
    """Every value that the path leads to, in document order.

    Raises:
        BadPathError: the path is wrong, or the document too deep or too large for it.
    """
    if path == "$":
        return (document,)
    query, wants_length = _compile(path)
    _PURSE.set(_Purse(MAX_STEPS))
    try:
        values: list[Any] = query.find(document).values()
    except JSONPathError as problem:
        raise BadPathError(str(problem)) from None
    return _lengths(values) if wants_length else values


def hold_path(path: str) -> None:
    """Nothing, when the path can be used.

    Raises:
        BadPathError: it cannot be read.
    """
    _compile(path)


@dataclass(slots=True)
class _Purse:
    """The steps that one evaluation has left."""

    steps: int

    def pay_for(self, value: object) -> None:
        """Each place costs what it takes to go through its children."""
        self.steps -= 1 + len(value) if isinstance(value, (dict, list)) else 1
        if self.steps < 0:
            raise BadPathError(f"it goes over more than {MAX_STEPS} places of this document")


_PURSE: ContextVar[_Purse] = ContextVar("jsonpath_purse")
"""Of the evaluation under way; the library hands nothing of ours to the queries of a filter."""


class _Place(JSONPathNode):
    """A place in the document that was paid for; where it is, nobody asks."""

    __slots__ = ()

    def new_child(
        self, value: object, key: int | str, parent: JSONPathNode | None
    ) -> "JSONPathNode":
        del key, parent
        _PURSE.get().pay_for(value)
        return _Place(value=value, location=(), parent=None, root=self.root)


class _Query(JSONPathQuery):
    """A query that pays for each of its steps."""

    __slots__ = ()

    def finditer(self, value: Any) -> Iterable[JSONPathNode]:
        _PURSE.get().pay_for(value)
        nodes: Iterable[JSONPathNode] = [_Place(value=value, location=(), parent=None, root=value)]
        for segment in self.segments:
            nodes = segment.resolve(nodes)
        return nodes


def _paying(query: JSONPathQuery) -> _Query:
    return _Query(env=query.env, segments=query.segments)


class _Parser(Parser):
    """Makes the queries of filters pay, too."""

    def parse_root_query(self, stream: TokenStream) -> Expression:
        return _with_paying_query(super().parse_root_query(stream))

    def parse_relative_query(self, stream: TokenStream) -> Expression:
        return _with_paying_query(super().parse_relative_query(stream))


def _with_paying_query(expression: Expression) -> Expression:
    if isinstance(expression, FilterQuery):
        expression.query = _paying(expression.query)
    return expression


class _PatternFunction(FilterFunction):
    """`match` and `search` on RE2; the library's engine can be made to backtrack for hours."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012 - the library's shape
    return_type = ExpressionType.LOGICAL

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole

    def __call__(self, text: object, pattern: object) -> bool:
        if not isinstance(text, str) or not isinstance(pattern, str):
            return False
        try:
            compiled = compile_pattern(_re2_source(pattern))
        except BadPatternError:
            return False  # RFC 9535, 2.4.6: a pattern that is none matches nothing
        test = compiled.fullmatch if self._whole else compiled.search
        return test(as_bytes(text)) is not None


class _Environment(JSONPathEnvironment):
    parser_class = _Parser

    def compile(self, query: str) -> JSONPathQuery:
        return _paying(super().compile(query))

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions["match"] = _PatternFunction(whole=True)
        self.function_extensions["search"] = _PatternFunction(whole=False)


_ENVIRONMENT: Final = _Environment()


@lru_cache(maxsize=1024)
def _compile(path: str) -> tuple[JSONPathQuery, bool]:
    """The query to run, and whether lengths of its values are asked for."""
    if not path.startswith("$"):
        raise BadPathError("a JSONPath starts with $")
    try:
        whole = _ENVIRONMENT.compile(path)
        wants_length = path.endswith(_LENGTH) and not path.endswith("." + _LENGTH)
        if not wants_length:
            return whole, False
        return _ENVIRONMENT.compile(path.removesuffix(_LENGTH)), True
    except (JSONPathError, RecursionError) as problem:
        # Its own text ends with a place, in a query that may be ours and not the reader's.
        raise BadPathError(str(problem.args[0])) from None


def _lengths(values: Sequence[Json]) -> list[Json]:
    """A member called length where there is one, else how long an array or a text is."""
    lengths: list[Json] = []
    for value in values:
        if isinstance(value, dict):
            if "length" in value:
                lengths.append(value["length"])
        elif isinstance(value, (list, str)):
            lengths.append(len(value))
    return lengths


@lru_cache(maxsize=1024)
def _re2_source(pattern: str) -> str:
    """An I-Regexp for RE2: there a dot matches all but line feed and carriage return."""
    parts: list[str] = []
    escaped = in_class = False
    for char in pattern:
        if char == "." and not escaped and not in_class:
            parts.append(r"[^\n\r]")
            continue
        if not escaped and char in "[]":
            in_class = char == "["
        escaped = char == "\\" and not escaped
        parts.append(char)
    return "".join(parts)
