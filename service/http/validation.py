"""What is wrong with a request, as sentences that say how to fix it."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, get_origin

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request

from contract.checks import SPEC_TYPES
from contract.suggestions import suggest_name
from contract.targets import format_value, kind_of
from service.http.errors import InvalidError, Source
from service.http.schema import find_typo

MAX_PROBLEMS: Final = 20
"""How many wrong fields a refusal names at most."""
_SOURCES: Final[dict[str, Source]] = {
    "body": "payload",
    "query": "query",
    "path": "path",
    "header": "headers",
}


_TYPES: Final = frozenset(kind.value for kind in SPEC_TYPES)
*_FIRST_TYPES, _LAST_TYPE = SPEC_TYPES
NAMED_TYPES: Final = f"{', '.join(_FIRST_TYPES)} or {_LAST_TYPE}"
_TAGS: Final = {
    "union_tag_not_found": f"is missing; use {NAMED_TYPES}",
    "union_tag_invalid": f"use {NAMED_TYPES}",
}
_NUMBERS: Final = frozenset(
    {"int_type", "int_parsing", "int_from_float", "float_type", "float_parsing", "number_type"}
)
"""Error types of fields that require a number."""
_BOOLEANS: Final = frozenset({"bool_type", "bool_parsing"})
_CHOICES: Final = frozenset({"literal_error", "enum"})
_LIKE_A_NUMBER: Final = re.compile(r"\s*[+-]?\d{1,15}(\.\d{1,15})?\s*", re.ASCII)
_LIKE_A_BOOLEAN: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "0", "1"})


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong field."""

    path: str
    """Path of the field, such as `request.headers[0].key`; empty for the body as a whole."""
    sentence: str
    source: Source


def problems_of(errors: Sequence[Mapping[str, Any]]) -> tuple[Problem, ...]:
    """Errors of pydantic as problems, in their order; one per field."""
    first: dict[str, Problem] = {}
    for error in errors[:MAX_PROBLEMS]:
        problem = _problem(error)
        first.setdefault(problem.path, problem)
    return tuple(first.values())


def _problem(error: Mapping[str, Any]) -> Problem:
    where, *path = error["loc"] or ("body",)
    source = _SOURCES.get(str(where), "payload")
    context = error.get("ctx") or {}
    if error["type"] == "json_invalid":
        return Problem("", f"The body is not JSON: {_json_problem(path, context)}.", source)
    if error["type"] in _TAGS:
        return Problem("checkType", f'"checkType" {_tag_problem(error)}.', source)
    # The tag of a body that says its type is no field, either.
    path = [part for part in path if part not in _TYPES]
    # A text with a bracket is pydantic's name for one member of a union, and no field.
    path = [part for part in path if not (isinstance(part, str) and "[" in part)]
    if field := context.get("field"):
        path = [*path, field]
    name = _dotted(path)
    subject = f'"{name}"' if name else "The body"
    return Problem(name, _ended(f"{subject} {_predicate(error, context, source)}"), source)


def _ended(sentence: str) -> str:
    """The sentence with a full stop, unless it ends with a question mark."""
    return sentence if sentence.endswith("?") else f"{sentence}."


def _dotted(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _json_problem(path: Sequence[object], context: Mapping[str, Any]) -> str:
    position = f" at character {path[0]}" if path else ""
    return f"{str(context.get('error', 'it cannot be read')).lower()}{position}"


def _tag_problem(error: Mapping[str, Any]) -> str:
    """The tag as it was sent: pydantic's own would be the text of an object, with all it holds."""
    remedy, body = _TAGS[error["type"]], error.get("input")
    if not isinstance(body, Mapping) or "checkType" not in body:
        return remedy
    return f"is {format_value(body['checkType'])}; {remedy}"


def _predicate(error: Mapping[str, Any], context: Mapping[str, Any], source: Source) -> str:
    say = _SAY.get(error["type"])
    if say:
        value, kind = error.get("input"), error["type"]
        if kind in _CHOICES and "'" not in context["expected"]:
            kind = "number_type"
        shown = f"is {_format_value(value, kind, source)}"
        return say(_with_unit(context, value), shown)
    return str(error["msg"]).removeprefix("Value error, ").rstrip(".")


def _with_unit(context: Mapping[str, Any], value: object) -> Mapping[str, Any]:
    """`actual_length`: of a text; pydantic tells that of a list."""
    unit, size = ("characters", len(value)) if isinstance(value, str) else ("items", None)
    return {"actual_length": size, "unit": unit, **context}


def _format_value(value: object, error: str, source: Source) -> str:
    """What a field with words of ours holds is shown; any other text of a body may be a secret."""
    if error in _CHOICES or source in {"query", "path"}:
        return format_value(value)
    if isinstance(value, str):
        return f'"{value}"' if _is_like_wanted(value, error) else kind_of(value)
    # A PIN beside `secret` is no more than its kind, either.
    is_of_wanted_kind = error not in _BOOLEANS or value in (0, 1, None)
    return format_value(value) if is_of_wanted_kind else kind_of(value)


def _is_like_wanted(text: str, error: str) -> bool:
    """Whether a text spells the number or the boolean that it should have been."""
    if error in _NUMBERS:
        return _LIKE_A_NUMBER.fullmatch(text) is not None
    return error in _BOOLEANS and text.lower() in _LIKE_A_BOOLEAN


def _must_be(what: str) -> Callable[[Mapping[str, Any], str], str]:
    return lambda _context, shown: f"{shown}; use {what}{_without_quotes(shown)}"


def _without_quotes(shown: str) -> str:
    return ", without quotes" if shown.endswith('"') else ""


def _choices(context: Mapping[str, Any], shown: str) -> str:
    choices = str(context["expected"]).replace(" or ", ", ")
    if shown.endswith('"') and "'" not in choices:
        return f"{shown}; use a number, without quotes: one of {choices}"
    return f"{shown}; use one of {choices}"


def _too_short(context: Mapping[str, Any], _shown: str) -> str:
    if context["min_length"] == 1:
        return "must not be empty"
    return f"is too short; use at least {context['min_length']} {context['unit']}"


def _too_long(context: Mapping[str, Any], _shown: str) -> str:
    return f"has {context['actual_length']} {context['unit']}; use at most {context['max_length']}"


def _plain(limit: float) -> str:
    """A limit as people write it: 1000000, not 1e+06."""
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


_SAY: Final[dict[str, Callable[[Mapping[str, Any], str], str]]] = {
    "missing": lambda _context, _shown: "is missing",
    "extra_forbidden": lambda _context, _shown: "is not a known field",
    "rule": lambda context, _shown: str(context["sentence"]),
    "literal_error": _choices,
    "enum": _choices,
    "string_type": _must_be("a string"),
    "int_type": _must_be("a whole number"),
    "int_parsing": _must_be("a whole number"),
    "int_from_float": _must_be("a whole number"),
    "int_parsing_size": _must_be("a smaller number"),
    "float_type": _must_be("a number"),
    "float_parsing": _must_be("a number"),
    "number_type": _must_be("a number"),
    "finite_number": _must_be("a finite number"),
    "bool_type": _must_be("true or false"),
    "bool_parsing": _must_be("true or false"),
    "list_type": _must_be("an array"),
    "dict_type": _must_be("an object"),
    "model_type": _must_be("an object"),
    "model_attributes_type": _must_be("a JSON object"),
    "greater_than": lambda context, shown: f"{shown}; use more than {_plain(context['gt'])}",
    "greater_than_equal": lambda context, shown: f"{shown}; use at least {_plain(context['ge'])}",
    "less_than_equal": lambda context, shown: f"{shown}; use at most {_plain(context['le'])}",
    "string_too_short": _too_short,
    "too_short": _too_short,
    "string_too_long": _too_long,
    "too_long": _too_long,
    "string_unicode": lambda _context, _shown: "contains half a surrogate pair",
    # Fields with a pattern of their own say in words what they take; this is the rule of all.
    "string_pattern_mismatch": lambda _context, _shown: "must not contain a NUL character",
}
"""Our sentences for pydantic's error types; other types keep pydantic's."""


HEADER: Final = "x-ignored-fields"
_MOST: Final = 20
_ANSWERED: Final = frozenset(
    {"id", "checkType", "created_at", "updated_at", "alertChannels", "pingUrl"}
)
"""Fields of responses that clients send back."""
_OF_OTHER_TYPES: Final = frozenset(
    [
        "agentRuntime",
        "aiAutoRepairEnabled",
        "alertChannelSubscriptions",
        "alertPolicyId",
        "alertSettings",
        "apiCheckDefaults",
        "assertions",
        "authScheme",
        "basicAuth",
        "body",
        "bodyType",
        "browserCheckDefaults",
        "browsers",
        "cacheHash",
        "codeBundlePath",
        "concurrency",
        "customDomain",
        "data",
        "degradedPacketLossThreshold",
        "degradedResponseTime",
        "deletedAt",
        "dependencies",
        "doubleCheck",
        "engine",
        "engineVersion",
        "environmentVariables",
        "environments",
        "followRedirects",
        "frequency",
        "frequencyOffset",
        "groupId",
        "groupOrder",
        "headers",
        "heartbeat",
        "hostname",
        "include",
        "installCommand",
        "intent",
        "ipFamily",
        "isPreview",
        "localSetupScript",
        "localTearDownScript",
        "logicalId",
        "maxPacketLossThreshold",
        "maxResponseTime",
        "member",
        "muteUntil",
        "nameServer",
        "physicalId",
        "pingCount",
        "pingToken",
        "playwrightConfig",
        "playwrightVersion",
        "port",
        "privateLocations",
        "projectId",
        "prompt",
        "protocol",
        "pwProjects",
        "pwTags",
        "query",
        "queryParameters",
        "recordType",
        "refreshCache",
        "repoUrl",
        "request",
        "retryStrategy",
        "runParallel",
        "runtimeId",
        "script",
        "scriptPath",
        "serverName",
        "setupScript",
        "setupSnippetId",
        "shouldFail",
        "skipSSL",
        "snapshots",
        "sourceFile",
        "sslCheckDomain",
        "sslChecksEnabled",
        "sslExpiry",
        "tearDownScript",
        "tearDownSnippetId",
        "testCommand",
        "traceId",
        "triggerIncident",
        "useGlobalAlertSettings",
        "v",
        "workingDir",
    ]
)
"""Fields that the established service has for other types, or in later versions: no misspelling."""
Ignored = tuple[str, tuple[str, ...]]
"""The path of an ignored field, and the fields that are known there."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.$-]{1,100}")


def ignored_header(body: object, read: BaseModel) -> dict[str, str]:
    """The header that names the ignored fields; empty when there are none."""
    # Likeness takes time, and a body may have a hundred thousand fields: few are named and tried.
    found = islice(sorted(dict(_ignored(body, read, "")).items()), _MOST)
    named = ", ".join(_with_near(path, known) for path, known in found)
    return {HEADER: named} if named else {}


def _with_near(path: str, known: tuple[str, ...]) -> str:
    name = path.rpartition(".")[2]
    meant = None if name in _OF_OTHER_TYPES else suggest_name(name, known)
    return f"{path} ({meant}?)" if meant else path


def _ignored(sent: object, read: object, path: str) -> Iterator[Ignored]:
    """Walk the body along the values that were read from it."""
    if isinstance(sent, Mapping) and isinstance(read, BaseModel):
        yield from _of_model(sent, read, path)
    if isinstance(sent, list) and isinstance(read, list):
        for order, (item, value) in enumerate(zip(sent, read, strict=False)):
            yield from _ignored(item, value, f"{path}[{order}]")


def _of_model(sent: Mapping[Any, object], read: BaseModel, path: str) -> Iterator[Ignored]:
    fields = {info.alias or name: name for name, info in type(read).model_fields.items()}
    known = tuple(fields)
    for key, item in sent.items():
        # A name that is not plain could break the header's line; it is named without its letters.
        name = key if _PLAIN_NAME.fullmatch(key) else "?"
        whole = f"{path}.{name}" if path else name
        if key in fields:
            yield from _ignored(item, getattr(read, fields[key]), whole)
        elif key not in _ANSWERED:
            yield whole, known


_TURNS_PAGES: Final = {"page": "nextId", "nextId": "page"}
"""Two ways to page through lists; ignoring the wrong one would return the same page again."""


def check_query(request: Request) -> None:
    """Refuse typos, and the paging of another list; other unknown parameters are ignored.

    Raises:
        InvalidError: a parameter is nearly one that the operation has, or does what another one
            does here.
    """
    check_repeated(request)
    route = request.scope.get("route")
    if not request.url.query or not isinstance(route, APIRoute):
        return
    names = request.query_params.keys()
    known = {name for name, _ in _parameters(route.dependant)}
    if found := find_typo(names, known) or _other_way(names, known):
        name, meant = found
        raise InvalidError(
            f'"{name}" is not a known parameter; did you mean {meant}?',
            keys=(name,),
            source="query",
        )


def _other_way(names: Iterable[str], known: Collection[str]) -> tuple[str, str] | None:
    pairs = ((name, _TURNS_PAGES[name]) for name in names if name in _TURNS_PAGES)
    return next((pair for pair in pairs if pair[0] not in known and pair[1] in known), None)


def check_repeated(request: Request) -> None:
    """Refuse a parameter that is there twice and is no list: one of its values would be ignored.

    Raises:
        InvalidError: it is there twice.
    """
    route = request.scope.get("route")
    if not request.url.query or not isinstance(route, APIRoute):
        return
    single = {name for name, is_list in _parameters(route.dependant) if not is_list}
    counts = Counter(name for name, _ in request.query_params.multi_items() if name in single)
    for name, count in counts.items():
        if count > 1:
            raise InvalidError(
                f'"{name}" is given {count} times; send it once.', keys=(name,), source="query"
            )


def _parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """The names of the query parameters of an operation, and whether each is a list."""
    for one in dependant.query_params:
        yield one.alias, get_origin(one.field_info.annotation) is list
    for part in dependant.dependencies:
        yield from _parameters(part)
