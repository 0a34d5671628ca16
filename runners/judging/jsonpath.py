"""JSONPath by RFC 9535, with `.length` at the end as a short form for arrays and texts.

The library reads a view of the document, which counts every place that is read. This bounds the
work of a path without knowing how the library parses or evaluates it.
"""

import re
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec
from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError, JSONPathQuery
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction

from runners.judging.assertions import BadPatternError, compile_pattern, encode_text
from runners.judging.comparisons import Json, read_json

MAX_STEPS: Final = 10_000_000
"""The most values that one path may visit: 10 s of work, enough for `$..name` on a body of 25 MB. A
filter that searches the whole document for each value would take hours on a hundredth of that."""

_CHARS_PER_STEP: Final = 100
"""How many characters of a text are compared or searched in the time of one step."""

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
    _BUDGET.set(_Budget(MAX_STEPS))
    try:
        values = [_unwrap(node.value) for node in query.finditer(_view(document))]
    except JSONPathError as problem:
        raise BadPathError(str(problem)) from None
    except RecursionError:
        raise BadPathError("the document is nested too deeply for it") from None
    return _measure_lengths(values) if wants_length else values


_PLAIN_STEP: Final = re.compile(
    r"""\.([A-Za-z_][A-Za-z0-9_]*)|\['([^'\\]*)'\]|\["([^"\\]*)"\]|\[(0|[1-9]\d*)\]"""
)
"""A name or an index, which lead to one value at most."""
_OF_EACH: Final = re.compile(rf"\[\*\]((?!.*{re.escape(_LENGTH)}$)(?:{_PLAIN_STEP.pattern})*)")
"""A path to a value of each element by names and indexes alone, whose cost needs no budget."""
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])


def find_in_text(path: str, text: str | bytes) -> Sequence[Json]:
    """Find the values, and build only the part that the beginning of the path leads to.

    A document takes ten times the memory of its text.

    Raises:
        BadPathError: as `find_values`.
        ValueError, msgspec.DecodeError: the text cannot be read in this way.
    """
    _compile(path)
    wants_length = path.endswith(_LENGTH) and not path.endswith("." + _LENGTH)
    end = len(path) - len(_LENGTH) if wants_length else len(path)
    part: str | bytes | msgspec.Raw = text
    at = 1
    while (step := _PLAIN_STEP.match(path, at, end)) is not None:
        at = step.end()
        *names, index = step.groups()
        try:
            if index is None:
                part = _MEMBERS.decode(part)[next(name for name in names if name is not None)]
            else:
                part = _ELEMENTS.decode(part)[int(index)]
        except (msgspec.ValidationError, LookupError):
            return ()
    rest = path[at:]
    if rest == _LENGTH and _starts_array(part):
        return (len(_ELEMENTS.decode(part)),)
    if (of_each := _OF_EACH.fullmatch(rest)) and _starts_array(part):
        found = (find_in_text(f"${of_each[1]}", one) for one in _ELEMENTS.decode(part))
        return [value for values in found for value in values]
    return find_values(f"${rest}", read_json(part))


def _starts_array(part: str | bytes | msgspec.Raw) -> bool:
    beginning = (
        part[:100] if isinstance(part, str) else bytes(memoryview(part)[:100]).decode("latin-1")
    )
    return beginning.lstrip().startswith("[")


def check_path(path: str) -> None:
    """Check that the path can be used.

    Raises:
        BadPathError: it cannot be read.
    """
    _compile(path)


@dataclass(slots=True)
class _Budget:
    """The work that one evaluation may still do."""

    steps: int

    def spend(self, steps: int) -> None:
        """Take the steps off, or end the evaluation."""
        self.steps -= steps
        if self.steps < 0:
            raise BadPathError(f"it visits more than {MAX_STEPS} places of this document")


_BUDGET: ContextVar[_Budget] = ContextVar("jsonpath_budget")
"""The budget of the evaluation under way."""


class _Object(dict[str, Any]):
    """A view of an object. It is a dict because the library asks for one, and is itself empty."""

    __slots__ = ("plain",)
    __hash__ = None

    def __init__(self, plain: dict[str, Any]) -> None:
        self.plain = plain

    def __len__(self) -> int:
        return len(self.plain)

    def __contains__(self, name: object) -> bool:
        return name in self.plain

    def __iter__(self) -> Iterator[str]:
        _BUDGET.get().spend(1 + len(self.plain))
        return iter(self.plain)

    def __getitem__(self, name: str) -> Any:
        return _read_value(self.plain[name])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Object)
            and self.plain.keys() == other.plain.keys()
            and all(value == other[name] for name, value in self.items())
        )

    def items(self) -> Any:
        """Every member, its value as a view."""
        _BUDGET.get().spend(1 + len(self.plain))
        return [
            (
                name,
                _Object(value)
                if type(value) is dict
                else _Array(value)
                if type(value) is list
                else value,
            )
            for name, value in self.plain.items()
        ]


class _Array(list[Any]):
    """A view of an array. It is a list because the library asks for one, and is itself empty."""

    __slots__ = ("plain",)
    __hash__ = None

    def __init__(self, plain: list[Any]) -> None:
        self.plain = plain

    def __len__(self) -> int:
        return len(self.plain)

    def __iter__(self) -> Iterator[Any]:
        _BUDGET.get().spend(1 + len(self.plain))
        return iter([_view(value) for value in self.plain])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _Array(self.plain[index])
        return _read_value(self.plain[index])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Array)
            and len(self.plain) == len(other.plain)
            and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        )


def _view(value: Any) -> Any:
    if type(value) is dict:
        return _Object(value)
    return _Array(value) if type(value) is list else value


def _unwrap(value: Any) -> Any:
    return value.plain if isinstance(value, (_Object, _Array)) else value


def _read_value(value: Any) -> Any:
    """One value on its own. A text may be long, and one filter may read it a million times."""
    _BUDGET.get().spend(1 + len(value) // _CHARS_PER_STEP if isinstance(value, str) else 1)
    return _view(value)


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
        _BUDGET.get().spend(len(text) // _CHARS_PER_STEP)
        test = compiled.fullmatch if self._whole else compiled.search
        return test(encode_text(text)) is not None


class _Environment(JSONPathEnvironment):
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


def _measure_lengths(values: Sequence[Json]) -> list[Json]:
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
