"""A check of a file as the public API takes it, with the files that it names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from contract.checks import SPEC_TYPES, CheckType, HttpSpec, ScriptSpec
from picket.check_file.api_format import to_text
from picket.check_file.load import parse_document
from picket.check_file.references import SUITE, read_references
from picket.code.reading.documents import Document
from picket.errors import CommandError
from runners.registry import RUNNABLE

_LEFT_OUT: Final = frozenset(
    {
        "type", "variables", "assertions", "group", "channels", "privateLocations", "snippets",
        "setupScriptPath", "teardownScriptPath", "clientCertificates", "proxyUrl",
        "silentForSeconds", "pingUrl", "updated_at", "created_at", "alertChannels",
        "periodSeconds", "graceSeconds", "pingToken",
    }
)  # fmt: skip
"""Fields of files that the body of a check has elsewhere, or not at all."""
_RENAMED: Final = {"setupScript": "localSetupScript", "teardownScript": "localTearDownScript"}
WITHOUT_VARIABLES: Final = frozenset(
    kind
    for kind in CheckType
    if kind not in SPEC_TYPES or not issubclass(SPEC_TYPES[kind], HttpSpec | ScriptSpec)
)
"""Types of checks that have no variables of their own at a service."""
_AT_A_SERVICE: Final = ("codeBundlePath", "setupSnippetId", "tearDownSnippetId")
"""Fields that refer to what a service has; `picket run` refuses them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckBody:
    """A check without what it refers to by name."""

    kind: CheckType
    fields: dict[str, Any]
    """What `POST /v1/checks` takes, without `dependencies` and places to run at."""
    dependencies: tuple[Mapping[str, str], ...] = ()
    """Files with `path` and `content`."""
    suite: Path | None = None
    """The folder that becomes the code bundle. None: the check has none."""
    ignored: tuple[str, ...] = field(default=())
    """Fields that mean something to `picket run` only."""


def check_body(document: Document) -> CheckBody:
    """The body of the check.

    Raises:
        CommandError: one line per wrong field.
    """
    kind = _kind(document)
    _require_valid(document, kind)
    named = read_references(document.fields, kind, document.folder)
    wrong = [one for one in named.wrong if one[0].removeprefix("$.") not in _AT_A_SERVICE]
    if wrong:
        raise CommandError(
            "\n".join(f"{document.source}: {path} {problem}" for path, problem in wrong)
        )
    given = named.fields
    fields: dict[str, Any] = {k: given[k] for k in given if k not in _LEFT_OUT}
    for ours, public in _RENAMED.items():
        if ours in fields:
            fields[public] = fields.pop(ours)
    fields.pop("bundleSha256", None)
    fields["checkType"] = kind.value
    if "codeBundlePath" in document.fields:
        fields["codeBundlePath"] = document.fields["codeBundlePath"]
    variables = given.get("variables", fields.pop("environmentVariables", None))
    if variables is not None and kind not in WITHOUT_VARIABLES:
        fields["environmentVariables"] = variable_list(variables)
    if "request" in fields:
        fields["request"] = _request(given)
    if kind is CheckType.HEARTBEAT:
        fields["heartbeat"] = _heartbeat(given)
    dependencies = fields.pop("dependencies", None) or ()
    return CheckBody(
        kind=kind,
        fields=fields,
        dependencies=tuple(dependencies),
        suite=named.suite,
        ignored=tuple(_ignored(document, kind)),
    )


def _kind(document: Document) -> CheckType:
    value = document.fields.get("type", document.fields.get("checkType"))
    if isinstance(value, str) and value.upper() in list(CheckType):
        return CheckType(value.upper())
    parse_document(document.fields, document.source, folder=document.folder)
    raise CommandError(f"{document.source}: $.type is wrong")


def _ignored(document: Document, kind: CheckType) -> Iterator[str]:
    for name in ("clientCertificates", "proxyUrl"):
        if document.fields.get(name):
            yield name
    if kind in WITHOUT_VARIABLES and document.fields.get("variables"):
        yield "variables"


def _require_valid(document: Document, kind: CheckType) -> None:
    """Judge it as `picket run` does, which says what is wrong with each field."""
    if kind not in RUNNABLE:
        return  # agents cannot run it; the service judges it
    fields = {key: document.fields[key] for key in document.fields if key not in _AT_A_SERVICE}
    if kind is CheckType.PLAYWRIGHT and "codeBundlePath" in document.fields:
        fields.setdefault(SUITE, ".")
    parse_document(fields, document.source, folder=document.folder)


def variable_list(given: object) -> list[Any]:
    """Variables as a list; a file may have them as names with values."""
    if isinstance(given, dict):
        given = [{"key": key, "value": value} for key, value in given.items()]
    return [_with_text(one, "value") for one in given] if isinstance(given, list) else []


def _with_text(entry: object, key: str) -> object:
    """YAML has numbers and booleans where the API takes texts."""
    if isinstance(entry, dict) and isinstance(entry.get(key), bool | int | float):
        return {**entry, key: to_text(entry[key])}
    return entry


def _request(given: Mapping[str, Any]) -> dict[str, Any]:
    own = {"assertions": given["assertions"]} if "assertions" in given else {}
    return with_texts({**given["request"], **own})


def with_texts(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request, or the defaults of one, with texts where YAML has numbers."""
    whole = dict(request)
    for key, inner in (
        ("headers", "value"),
        ("queryParameters", "value"),
        ("assertions", "target"),
    ):
        if isinstance(whole.get(key), list):
            whole[key] = [_with_text(one, inner) for one in whole[key]]
    return whole


def _heartbeat(given: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(given.get("heartbeat"), dict):
        return {k: v for k, v in given["heartbeat"].items() if k != "pingUrl"}
    times = {
        name: given[f"{name}Seconds"] for name in ("period", "grace") if f"{name}Seconds" in given
    }
    token = {"pingToken": given["pingToken"]} if given.get("pingToken") else {}
    return {**times, **{f"{name}Unit": "seconds" for name in times}, **token}
