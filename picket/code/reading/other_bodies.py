"""Groups, channels, places, windows and pages of files, as the public API takes them."""

from collections.abc import Mapping
from typing import Any, Final

from contract.checks import CheckType
from contract.suggestions import suggest_name
from picket.check_file.references import read_references
from picket.check_file.validate import render
from picket.code.reading.check_body import variable_list, with_texts
from picket.code.reading.documents import Document, Kind
from picket.errors import CommandError

_OF_FILES: Final = {
    Kind.GROUP: {
        "variables", "setupScript", "setupScriptFile", "teardownScript", "teardownScriptFile",
        "channels", "v",
    },
    Kind.ALERT_CHANNEL: {"name", "checks", "groups"},
}  # fmt: skip
"""What a file says in words of its own."""
_OF_API: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.GROUP: frozenset(
        {
            "name", "activated", "muted", "tags", "locations", "privateLocations", "concurrency",
            "apiCheckDefaults", "browserCheckDefaults", "runtimeId", "environmentVariables",
            "alertChannelSubscriptions", "setupSnippetId", "tearDownSnippetId",
            "localSetupScript", "localTearDownScript", "retryStrategy", "doubleCheck",
            "useGlobalAlertSettings", "alertSettings", "runParallel",
        }
    ),
    Kind.ALERT_CHANNEL: frozenset(
        {
            "type", "config", "sendRecovery", "sendFailure", "sendDegraded", "sslExpiry",
            "sslExpiryThreshold", "autoSubscribe",
        }
    ),
    Kind.PRIVATE_LOCATION: frozenset({"name", "slugName", "icon", "proxyUrl"}),
    Kind.MAINTENANCE_WINDOW: frozenset(
        {
            "name", "tags", "showOnStatusPages", "startsAt", "endsAt", "repeatInterval",
            "repeatUnit", "repeatEndsAt", "rrule", "timeZone",
        }
    ),
    Kind.STATUS_PAGE: frozenset(
        {
            "name", "url", "description", "customDomain", "themeColors", "logo", "redirectTo",
            "favicon", "defaultTheme", "cards", "isPrivate",
        }
    ),
    Kind.STATUS_PAGE_SERVICE: frozenset({"name"}),
}  # fmt: skip
"""The fields of each body of the API; a test holds them to its description."""
_REQUIRED: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.ALERT_CHANNEL: ("type", "config"),
    Kind.PRIVATE_LOCATION: ("slugName",),
    Kind.MAINTENANCE_WINDOW: ("startsAt", "endsAt"),
    Kind.STATUS_PAGE: ("url", "cards"),
}
_NEWEST_FORM: Final = 2
_REFERENCES: Final = frozenset({"channels", "checks", "groups", "privateLocations"})
"""Lists of names, which become resources of their own."""
_RENAMED: Final = {"setupScript": "localSetupScript", "teardownScript": "localTearDownScript"}
_PATHS: Final = ("setupScriptPath", "teardownScriptPath", "snippets")


def fields_of(kind: Kind) -> frozenset[str]:
    """What a document of this kind may have, besides `kind`, `id` and `physicalId`."""
    return _OF_API[kind] | _OF_FILES.get(kind, frozenset())


def api_fields_of(kind: Kind) -> frozenset[str]:
    """What the API takes of a document of this kind."""
    return _OF_API[kind]


def required_fields_of(kind: Kind) -> tuple[str, ...]:
    """What a document of this kind must have, besides its name."""
    return _REQUIRED.get(kind, ())


def other_body(document: Document) -> dict[str, Any]:
    """The body without what it refers to by name.

    Raises:
        CommandError: one line per wrong field.
    """
    wrong = [*_find_unknown(document), *_find_missing(document)]
    if wrong:
        raise CommandError("\n".join(f"{document.source}: {line}" for line in wrong))
    if document.kind is Kind.GROUP:
        return _group(document)
    body = {key: value for key, value in document.fields.items() if key not in _REFERENCES}
    if document.kind is Kind.ALERT_CHANNEL:
        body.pop("name", None)
    return body


def _find_unknown(document: Document) -> list[str]:
    known = fields_of(document.kind)
    lines: list[str] = []
    for key in document.fields:
        if key not in known:
            near = suggest_name(str(key), known)
            fix = f"did you mean {near}?" if near else f"a {document.kind} has no such field"
            lines.append(f"$.{key} is unknown; {fix}")
    return lines


def _find_missing(document: Document) -> list[str]:
    needed = required_fields_of(document.kind)
    return [f"$.{field} is missing" for field in needed if document.fields.get(field) is None]


def _group(document: Document) -> dict[str, Any]:
    named = read_references(document.fields, CheckType.API, document.folder)
    if named.wrong:
        raise CommandError(
            "\n".join(f"{document.source}: {path} {problem}" for path, problem in named.wrong)
        )
    given = named.fields
    body: dict[str, Any] = {
        key: value
        for key, value in given.items()
        if key not in _REFERENCES and key not in _PATHS and key not in ("variables", "v")
    }
    for ours, public in _RENAMED.items():
        if ours in body:
            body[public] = body.pop(ours)
    variables = given.get("variables", given.get("environmentVariables"))
    if variables is not None:
        if not isinstance(variables, list | dict):
            found = render(variables, secret=True)
            raise CommandError(f"{document.source}: $.variables is {found}; use a list")
        body["environmentVariables"] = variable_list(variables)
    if given.get("v", _NEWEST_FORM) not in (1, _NEWEST_FORM):
        raise CommandError(f"{document.source}: $.v is {render(given['v'])}; use 1 or 2")
    if isinstance(defaults := body.get("apiCheckDefaults"), dict):
        body["apiCheckDefaults"] = with_texts(defaults)
    # The first form has no number: it says less about what groups leave to their checks.
    return body if given.get("v") == 1 else {**body, "v": _NEWEST_FORM}
