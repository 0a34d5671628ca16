"""Finds all wrong fields of a check file, each with a remedy.

msgspec stops at the first error. A value that it refuses is therefore split, and each part is
validated against its own type, until the smallest wrong parts are found.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from contract.assertion_rules import Wrong, assertion_problem, expression_of, path_of
from contract.assertions import Assertion
from contract.checks import (
    ApiSpec,
    BrowserSpec,
    CheckSpec,
    DnsSpec,
    HostRequest,
    HttpSpec,
    MultiStepSpec,
    PlaywrightSpec,
    RequestSpec,
    check_type,
)
from contract.requests import HttpRequest
from contract.scripts import (
    config_problem,
    dependencies_problem,
    folder_problem,
    is_like_a_path,
    path_problem,
    script_problem,
)
from contract.suggestions import suggest_name
from contract.targets import (
    connect_to_problem,
    dns_name_problem,
    header_problem,
    hostname_problem,
    status_codes_problem,
    url_problem,
)
from runners.judging.assertions import BadPatternError, compile_pattern
from runners.judging.jsonpath import BadPathError, check_path

_PATH: Final = re.compile(r" - at `(?P<path>[^`]*)`$")
_STEP: Final = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>\d+|\.\.\.)\]")
_SECRET_FIELDS: Final = frozenset(
    {
        "value", "password", "key", "body", "data", "passphrase", "proxyUrl",
        "headers", "queryParameters", "basicAuth", "variables", "clientCertificates",
    }
)  # fmt: skip
"""Fields that may hold a secret; errors name only the kind of their value."""
_CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")
"""User and password in an address."""
_KINDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "nothing",
}
_SHOWN_LENGTH: Final = 60


@dataclass(frozen=True, slots=True)
class AllowedFields:
    """The fields that the top level of a check file may have."""

    known: frozenset[str]
    """Fields that have an effect."""
    ignored: frozenset[str] = frozenset()
    """Fields that are accepted without effect; errors may suggest them for a misspelt name."""


def split_problem(problem: str) -> tuple[str, str]:
    """The path of msgspec's sentence (`$` when it names none), and the sentence without it."""
    found = _PATH.search(problem)
    return (found["path"], problem[: found.start()]) if found else ("$", problem)


def explain(
    problem: str, document: object, spec: type[msgspec.Struct], *, is_secret: bool = False
) -> Wrong:
    """The wrong field's path, and what is wrong with it.

    `is_secret`: whether the value may be a secret wherever it stands.
    """
    path, sentence = split_problem(problem)
    if missing := re.fullmatch(r"Object missing required field `(?P<name>\w+)`", sentence):
        return f"{path}.{missing['name']}", "is missing"
    value = render(value_at(document, path), secret=is_secret or _is_secret(path))
    unit = " seconds" if path.endswith("Seconds") else ""
    return path, f"is {value}{unit}; {_suggest_fix(sentence, path, spec)}{unit}"


def _is_secret(path: str) -> bool:
    return any(step["key"] in _SECRET_FIELDS for step in _STEP.finditer(path))


def _suggest_fix(sentence: str, path: str, spec: type[msgspec.Struct]) -> str:
    if sentence.startswith("Invalid enum value"):
        return "use one of " + ", ".join(choices_at(spec, path))
    if wrong := re.fullmatch(r"Expected `(?P<kinds>[^`]+)`, got `[^`]+`", sentence):
        return "use " + " or ".join(_KINDS.get(kind, kind) for kind in wrong["kinds"].split(" | "))
    if length := re.fullmatch(r"Expected `\w+` of length (?P<limit>.+)", sentence):
        return f"its length must be {_format_limit(length['limit'])}"
    if limit := re.fullmatch(r"Expected `\w+` (?P<limit>[<>]=? .+)", sentence):
        return f"use {_format_limit(limit['limit'])}"
    return sentence[:1].lower() + sentence[1:]


def _format_limit(text: str) -> str:
    sign, _, number = text.partition(" ")
    words = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
    return f"{words[sign]} {number.removesuffix('.0')}"


def value_at(document: object, path: str) -> object:
    """The value that stands at the path. None: nothing does."""
    value = document
    for step in _STEP.finditer(path):
        value = _child(value, step)
    return value


def _child(value: object, step: re.Match[str]) -> object:
    if isinstance(value, Mapping):
        return value.get(step["key"])
    if isinstance(value, list) and (step["index"] or "").isdigit():
        index = int(step["index"])
        return value[index] if index < len(value) else None
    return None


def render(value: object, *, secret: bool = False) -> str:
    """The value as a sentence shows it: short, and never a secret."""
    kind = _kind(value)
    if isinstance(value, (Mapping, list)) or (secret and value is not None):
        return kind
    if value == "":
        return "empty"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = hide_credentials(re.sub(r"[\x00-\x1f\x7f]+", " ", text))
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


def hide_credentials(text: str) -> str:
    """The text without user and password of addresses in it."""
    return _CREDENTIALS.sub("//***@", text)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list) else "text"


def choices_at(spec: type[msgspec.Struct], path: str) -> list[str]:
    """The values that the field at the path takes; empty when it takes any."""
    found = _type_at(msgspec.inspect.type_info(spec), path)
    return sorted({choice for kind in _branches(found) for choice in _choices(kind)})


def _choices(kind: msgspec.inspect.Type | None) -> list[str]:
    if isinstance(kind, msgspec.inspect.EnumType):
        return [str(member.value) for member in kind.cls]
    if isinstance(kind, msgspec.inspect.LiteralType):
        return [str(value) for value in kind.values]
    return []


def _branches(kind: msgspec.inspect.Type | None) -> tuple[msgspec.inspect.Type | None, ...]:
    return kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)


def _type_at(kind: msgspec.inspect.Type, path: str) -> msgspec.inspect.Type | None:
    found: msgspec.inspect.Type | None = kind
    for step in _STEP.finditer(path):
        found = _child_type(found, step["key"])
    return found


def _child_type(kind: msgspec.inspect.Type | None, key: str | None) -> msgspec.inspect.Type | None:
    for branch in _branches(kind):
        if isinstance(branch, msgspec.inspect.StructType) and key is not None:
            named = {each.encode_name: each.type for each in branch.fields}
            return named.get(key)
        if isinstance(branch, msgspec.inspect.VarTupleType) and key is None:
            return branch.item_type
    return None


def find_unknown_fields(
    document: object, spec: type[msgspec.Struct], words: AllowedFields | None = None
) -> Iterator[Wrong]:
    """The fields that the spec does not know, and what they may have meant.

    The wire ignores what it does not know; a person who mistypes `assertions` wants to hear it.
    `words`: what may be meant at the top. None: the spec's own fields.
    """
    for path, key, known in _unknown(document, msgspec.inspect.type_info(spec), "$"):
        here = AllowedFields(frozenset(known)) if words is None or path != "$" else words
        yield f"{path}.{key}", f"is not a field here; {_suggest(key, here)}"


def _unknown(
    value: object, kind: msgspec.inspect.Type | None, path: str
) -> Iterator[tuple[str, str, Iterable[str]]]:
    """Where each one stands, how it is called, and what is known there."""
    for branch in _branches(kind):
        if isinstance(branch, msgspec.inspect.StructType) and isinstance(value, Mapping):
            yield from _unknown_in_struct(value, branch, path)
        elif isinstance(branch, msgspec.inspect.VarTupleType) and isinstance(value, list):
            for position, each in enumerate(value):
                yield from _unknown(each, branch.item_type, f"{path}[{position}]")


def _unknown_in_struct(
    value: Mapping[object, object], kind: msgspec.inspect.StructType, path: str
) -> Iterator[tuple[str, str, Iterable[str]]]:
    known = {each.encode_name: each.type for each in kind.fields}
    tag = {kind.tag_field} if kind.tag_field else set()
    for key, inner in value.items():
        if key in tag:
            continue
        if key in known:
            yield from _unknown(inner, known[str(key)], f"{path}.{key}")
        else:
            yield path, str(key), known


def _suggest(key: str, words: AllowedFields) -> str:
    meant = suggest_name(key, words.ignored | words.known)
    return f"did you mean {meant}?" if meant else "use " + ", ".join(sorted(words.known))


def find_wrong_fields(
    document: object, spec: type[msgspec.Struct], *, is_secret: bool = False
) -> Iterator[Wrong]:
    """The path of each wrong field, and what is wrong with it.

    `is_secret`: whether all of the document may be one; no value of it is told then.
    """
    for path, sentence in _mistakes(document, spec, "$"):
        yield explain(f"{sentence} - at `{path}`", document, spec, is_secret=is_secret)


def _mistakes(value: object, kind: Any, path: str) -> Iterator[Wrong]:
    """Paths, and msgspec's sentences on them."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as trouble:
        inner = list(_inside(value, kind, path))
        below, sentence = split_problem(str(trouble))
        yield from inner or [(path + below.removeprefix("$"), sentence)]


def _inside(value: object, kind: Any, path: str) -> Iterator[Wrong]:
    for branch in _union_branches(kind):
        if isinstance(value, Mapping) and _is_struct(branch):
            yield from _in_struct(value, branch, path)
        elif isinstance(value, list) and get_origin(branch) is tuple:
            for position, each in enumerate(value):
                yield from _mistakes(each, get_args(branch)[0], f"{path}[{position}]")


def _in_struct(
    value: Mapping[object, object], kind: type[msgspec.Struct], path: str
) -> Iterator[Wrong]:
    known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key, inner in value.items():
        if (field := known.get(str(key))) is not None:
            yield from _mistakes(inner, field.type, f"{path}.{key}")
    for name, field in known.items():
        if field.required and name not in value:
            yield path, f"Object missing required field `{name}`"


def _union_branches(kind: Any) -> tuple[Any, ...]:
    """The types that a union offers, without what only limits them."""
    if get_origin(kind) is Annotated:
        return _union_branches(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        return tuple(branch for each in get_args(kind) for branch in _union_branches(each))
    return (kind,)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def find_spec_problems(spec: CheckSpec) -> Iterator[Wrong]:
    """The fields that cannot work, by their paths, and why."""
    if isinstance(spec, HttpSpec):
        yield from _check_http_request(spec.request)
    if isinstance(spec, RequestSpec) and isinstance(spec.request, HostRequest):
        yield from _check_text("$.request.hostname", spec.request.hostname, hostname_problem)
    if isinstance(spec, DnsSpec):
        yield from _check_text("$.request.query", spec.request.query, dns_name_problem)
        yield from _check_text(
            "$.request.nameServer", spec.request.name_server or "", _server_problem
        )
    if isinstance(spec, RequestSpec):
        yield from _check_assertions(spec, spec.assertions)
    if isinstance(spec, ApiSpec):
        yield from _check_code("setupScript", spec.setup_script)
        yield from _check_code("teardownScript", spec.teardown_script)
    if isinstance(spec, BrowserSpec | MultiStepSpec):
        yield from _check_script(spec)
    if isinstance(spec, PlaywrightSpec):
        yield from _check_text("$.workingDir", spec.working_dir, folder_problem)


def _check_text(
    path: str, text: str | None, problem_of: Callable[[str], str | None]
) -> Iterator[Wrong]:
    if text is not None and (problem := problem_of(text)):
        yield path, problem


def _check_code(field: str, text: str | None) -> Iterator[Wrong]:
    """A file names a script by a field of its own; its path often stands in that of the text."""
    for path, problem in _check_text(f"$.{field}", text, script_problem):
        meant = f"; did you mean {field}File?" if is_like_a_path(text or "") else ""
        yield path, problem + meant


def _check_script(spec: BrowserSpec | MultiStepSpec) -> Iterator[Wrong]:
    yield from _check_code("script", spec.script)
    yield from _check_text("$.scriptPath", spec.script_path, path_problem)
    if found := dependencies_problem(spec.dependencies, script_path=spec.script_path):
        yield f"$.dependencies{found[0]}", found[1]
    if spec.playwright_config and (found := config_problem(spec.playwright_config)):
        yield f"$.playwrightConfig.{found[0]}", found[1]


def _check_http_request(request: HttpRequest) -> Iterator[Wrong]:
    yield from _check_text("$.request.url", request.url, url_problem)
    yield from _check_text("$.request.connectTo", request.connect_to, connect_to_problem)
    for order, listed in enumerate(request.accepted_status_codes):
        yield from _check_text(
            f"$.request.acceptedStatusCodes[{order}]", str(listed), status_codes_problem
        )
    for order, header in enumerate(request.headers):
        if problem := header_problem(header.key, header.value):
            yield f"$.request.headers[{order}]", problem


def _server_problem(name_server: str) -> str | None:
    """Empty: the default servers are asked."""
    return hostname_problem(name_server) if name_server else None


def _check_assertions(spec: CheckSpec, assertions: Sequence[Assertion]) -> Iterator[Wrong]:
    for order, assertion in enumerate(assertions):
        if found := assertion_problem(assertion, check_type(spec)) or _check_expression(assertion):
            field, problem = found
            yield f"$.assertions[{order}].{field}", problem


def _check_expression(assertion: Assertion) -> Wrong | None:
    """Judged by the runners' own libraries and their limits."""
    try:
        if (path := path_of(assertion)) is not None:
            check_path(path)
        if (expression := expression_of(assertion)) is not None:
            compile_pattern(expression[1])
    except BadPathError as problem:
        return "property", f"is not a valid JSONPath: {problem}"
    except BadPatternError as problem:
        field = expression_of(assertion)
        return (field[0] if field else "property"), f"is not a valid regular expression: {problem}"
    return None
