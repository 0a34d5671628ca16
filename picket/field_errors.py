"""What is wrong with a field, as one sentence with the path, the value and the mend. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from contract.near_names import near_name
from contract.sense import Wrong

_PATH: Final = re.compile(r" - at `(?P<path>[^`]*)`$")
_STEP: Final = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>\d+|\.\.\.)\]")
_SECRET_FIELDS: Final = frozenset(
    {
        "value", "password", "key", "body", "data", "passphrase", "proxyUrl",
        "headers", "queryParameters", "basicAuth", "variables", "clientCertificates",
    }
)  # fmt: skip
"""Fields that may hold a secret: the sentence tells what kind of value stands there, no more."""
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
class Words:
    """What can stand at the top of a document."""

    counting: frozenset[str]
    """Those that count."""
    passed_over: frozenset[str] = frozenset()
    """Those that are taken and do not count: meant perhaps, and not recommended."""


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
    value = shown(value_at(document, path), secret=is_secret or _is_secret(path))
    unit = " seconds" if path.endswith("Seconds") else ""
    return path, f"is {value}{unit}; {_mend(sentence, path, spec)}{unit}"


def _is_secret(path: str) -> bool:
    return any(step["key"] in _SECRET_FIELDS for step in _STEP.finditer(path))


def _mend(sentence: str, path: str, spec: type[msgspec.Struct]) -> str:
    if sentence.startswith("Invalid enum value"):
        return "use one of " + ", ".join(choices_at(spec, path))
    if wrong := re.fullmatch(r"Expected `(?P<kinds>[^`]+)`, got `[^`]+`", sentence):
        return "use " + " or ".join(_KINDS.get(kind, kind) for kind in wrong["kinds"].split(" | "))
    if length := re.fullmatch(r"Expected `\w+` of length (?P<limit>.+)", sentence):
        return f"its length must be {_limit(length['limit'])}"
    if limit := re.fullmatch(r"Expected `\w+` (?P<limit>[<>]=? .+)", sentence):
        return f"use {_limit(limit['limit'])}"
    return sentence[:1].lower() + sentence[1:]


def _limit(text: str) -> str:
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


def shown(value: object, *, secret: bool = False) -> str:
    """The value as a sentence shows it: short, and never a secret."""
    kind = _kind(value)
    if isinstance(value, (Mapping, list)) or (secret and value is not None):
        return kind
    if value == "":
        return "empty"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = _CREDENTIALS.sub("//***@", re.sub(r"[\x00-\x1f\x7f]+", " ", text))
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


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


def unknown_fields(
    document: object, spec: type[msgspec.Struct], words: Words | None = None
) -> Iterator[Wrong]:
    """The fields that the spec does not know, and what they may have meant.

    The wire ignores what it does not know; a person who mistypes `assertions` wants to hear it.
    `words`: what may be meant at the top. None: the spec's own fields.
    """
    for path, key, known in _unknown(document, msgspec.inspect.type_info(spec), "$"):
        here = Words(frozenset(known)) if words is None or path != "$" else words
        yield f"{path}.{key}", f"is no field here; {_meant(key, here)}"


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


def _meant(key: str, words: Words) -> str:
    meant = near_name(key, words.passed_over | words.counting)
    return f"did you mean {meant}?" if meant else "use " + ", ".join(sorted(words.counting))
