"""`picket schema`: a JSON Schema of check files, for editors, made from the models of the API."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from contract.checks import CheckType
from picket.code.reading.documents import Kind
from picket.code.reading.other_bodies import fields_of, required_fields_of
from service.alert_channels.kinds.registry import KINDS
from service.checks.types.registry import TYPES
from service.groups.schemas import GroupV2Write
from service.locations.model import LocationWrite
from service.maintenance.model import WindowWrite
from service.status_pages.model import ServiceWrite
from service.status_pages.schemas import StatusPageWrite

_Schema = dict[str, Any]
_TEXT: Final[_Schema] = {"type": "string"}
_NAMES: Final[_Schema] = {"type": "array", "items": _TEXT}
_SCALAR: Final[_Schema] = {"type": ["string", "number", "boolean"]}
_ANY_TEXT: Final = r"^[^\x00]*$"
_OTHERS: Final[Mapping[Kind, type[BaseModel]]] = {
    Kind.GROUP: GroupV2Write,
    Kind.PRIVATE_LOCATION: LocationWrite,
    Kind.MAINTENANCE_WINDOW: WindowWrite,
    Kind.STATUS_PAGE: StatusPageWrite,
    Kind.STATUS_PAGE_SERVICE: ServiceWrite,
}
_NO_VARIABLES: Final = "For `picket run` alone; the service has none for checks of this type."
_MAPPED: Final[_Schema] = {"type": "object", "additionalProperties": _SCALAR}
_OF_EVERY_CHECK: Final[_Schema] = {
    "group": {**_TEXT, "description": "The id or the name of a group of the files."},
    "channels": {**_NAMES, "description": "Alert channels of the files that hear of the check."},
    "clientCertificates": {
        "type": "array",
        "items": {"type": "object"},
        "description": "For `picket run` alone; a service has them for all checks.",
    },
    "proxyUrl": {**_TEXT, "description": "For `picket run` alone; a location has one."},
}
_IN_GROUPS: Final[_Schema] = {
    "channels": _OF_EVERY_CHECK["channels"],
    "v": {"enum": [1, 2], "description": "The form of the group in the API; 2 by default."},
}
_PHASES: Final[_Schema] = {
    "setupScript": {**_TEXT, "description": "Node.js code that runs before the request."},
    "setupScriptFile": {**_TEXT, "description": "The path of a file with that code."},
    "teardownScript": {**_TEXT, "description": "Node.js code that runs after the response."},
    "teardownScriptFile": {**_TEXT, "description": "The path of a file with that code."},
}
_SCRIPT: Final[_Schema] = {
    "scriptFile": {**_TEXT, "description": "The path of the script, relative to this file."},
    "dependencyFiles": {**_NAMES, "description": "Paths of files that the script imports."},
}
_OF_TYPE: Final[Mapping[CheckType, _Schema]] = {
    CheckType.API: _PHASES,
    CheckType.BROWSER: _SCRIPT,
    CheckType.MULTI_STEP: _SCRIPT,
    CheckType.PLAYWRIGHT: {
        "suiteFolder": {
            **_TEXT,
            "description": "The folder with playwright.config.*, relative to this file.",
        }
    },
    CheckType.HEARTBEAT: {
        "periodSeconds": {"type": "number", "description": "The time between pings."},
        "graceSeconds": {"type": "number", "description": "How late a ping may be."},
        "pingToken": {**_TEXT, "description": "The last part of the ping URL."},
        "silentForSeconds": {
            "type": "number",
            "description": "For `picket run`, which sees no pings.",
        },
    },
}
_EITHER: Final[Mapping[str, tuple[str, ...]]] = {
    "script": ("script", "scriptFile"),
    "codeBundlePath": ("suiteFolder", "codeBundlePath"),
    "heartbeat": ("periodSeconds", "heartbeat"),
}
"""What a body must have, and the fields of a file that say it."""


def editor_schema() -> _Schema:
    """The schema of one document of a file."""
    models: list[type[BaseModel]] = [
        *(one.write for one in TYPES.values()),
        *(one.write for one in KINDS.values()),
        *_OTHERS.values(),
    ]
    refs, whole = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/$defs/{model}"
    )
    defs: _Schema = whole["$defs"]
    names = {model: refs[model, "validation"]["$ref"].rpartition("/")[2] for model in models}
    for definition in defs.values():
        _loosen(definition)
    documents = dict(_documents(defs, names))
    for model, name in names.items():
        if model in _OTHERS.values() or name in documents:
            defs.pop(name, None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A document of a check file of Picket",
        "type": "object",
        "properties": {"kind": {"enum": list(Kind), "description": "Without one it is a check."}},
        "allOf": list(_choices()),
        "$defs": {**defs, **documents},
    }


def _loosen(schema: Any) -> None:
    """Take what a file may say: numbers for texts, `${NAME}` for a text of some form."""
    if isinstance(schema, list):
        for one in schema:
            _loosen(one)
        return
    if not isinstance(schema, dict):
        return
    for one in schema.values():
        _loosen(one)
    if schema.get("type") == "string":
        schema.pop("pattern", None)
    properties = schema.get("properties")
    if schema.get("type") == "object" and isinstance(properties, dict):
        schema["additionalProperties"] = False
        for name in ("target", "value"):
            if name in properties:
                properties[name] = {**_SCALAR, "description": properties[name].get("description")}


def _documents(defs: _Schema, names: Mapping[Any, str]) -> Iterator[tuple[str, _Schema]]:
    for kind, definition in TYPES.items():
        yield f"check-{kind.value}", _check(kind, defs[names[definition.write]], defs)
    for channel, one in KINDS.items():
        body = defs[names[one.write]]
        own = fields_of(Kind.ALERT_CHANNEL)
        given = {name: body["properties"][name] for name in own if name in body["properties"]}
        given |= {"name": _TEXT, "checks": _NAMES, "groups": _NAMES}
        required = ["kind", *required_fields_of(Kind.ALERT_CHANNEL)]
        yield (
            f"alert-channel-{channel.value}",
            _closed(Kind.ALERT_CHANNEL, given, required, body["description"]),
        )
    for other, model in _OTHERS.items():
        body = defs[names[model]]
        given = {n: body["properties"][n] for n in fields_of(other) if n in body["properties"]}
        if other is Kind.GROUP:
            given |= {**_PHASES, **_IN_GROUPS, "variables": _variables(given)}
        if other is Kind.STATUS_PAGE:
            given["cards"] = _cards(given["cards"], defs)
        required = ["kind", "name", *required_fields_of(other)]
        yield other.value, _closed(other, given, required, body["description"])


def _check(kind: CheckType, body: _Schema, defs: _Schema) -> _Schema:
    given = {**body["properties"], **_OF_EVERY_CHECK, **_OF_TYPE.get(kind, {})}
    if "environmentVariables" in given:
        given["variables"] = _variables(given)
    else:
        given["variables"] = {**_MAPPED, "type": ["object", "array"], "description": _NO_VARIABLES}
    if "triggerIncident" in given:
        given["triggerIncident"] = _incident(defs)
    request = defs.get(body["properties"].get("request", {}).get("$ref", "").rpartition("/")[2])
    if request is not None and "assertions" in request["properties"]:
        given["assertions"] = request["properties"]["assertions"]
    types = {"enum": [kind.value, kind.value.lower()]}
    given |= {"type": types, "checkType": types}
    needed = [one for one in body["required"] if one not in _EITHER]
    either = [
        {"anyOf": [{"required": [field]} for field in _EITHER[one]]}
        for one in body["required"]
        if one in _EITHER
    ]
    whole = _closed(Kind.CHECK, given, needed, body["description"])
    return {**whole, "allOf": either} if either else whole


def _closed(
    kind: Kind, properties: Mapping[str, Any], required: list[str], description: str
) -> _Schema:
    common: _Schema = {
        "kind": {"const": kind.value},
        "id": {**_TEXT, "description": "What the service knows it by; by default the file's path."},
        "physicalId": {
            "type": ["string", "integer"],
            "description": "The id of what exists at a service and is taken over.",
        },
    }
    return {
        "type": "object",
        "description": description,
        "properties": {**common, **dict(sorted(properties.items()))},
        "required": required,
        "additionalProperties": False,
    }


def _variables(given: Mapping[str, Any]) -> _Schema:
    """A list, or names with values."""
    listed = given["environmentVariables"]
    return {"anyOf": [listed, _MAPPED], "description": "Variables; `${NAME}` is one of the shell."}


def _incident(defs: _Schema) -> _Schema:
    fields = defs["TriggerIncident"]["properties"]
    named = {"service": {**_TEXT, "description": "The id or the name of a service of the files."}}
    needed = [one for one in defs["TriggerIncident"]["required"] if one != "serviceId"]
    return {
        "anyOf": [
            {"type": "null"},
            {
                "type": "object",
                "properties": {**fields, **named},
                "required": needed,
                "additionalProperties": False,
            },
        ]
    }


def _cards(listed: _Schema, defs: _Schema) -> _Schema:
    fields = {k: v for k, v in defs["CardWrite"]["properties"].items() if k != "services"}
    services = {**_NAMES, "description": "Ids or names of services of the files."}
    card = {
        "type": "object",
        "properties": {**fields, "services": services},
        "required": ["name"],
        "additionalProperties": False,
    }
    return {**listed, "items": card}


def _choices() -> Iterator[_Schema]:
    """A choice for each kind, and for each type of it: editors then show the problems of one."""
    is_check = {"properties": {"kind": {"const": Kind.CHECK.value}}}
    types = {"enum": [text for kind in TYPES for text in (kind.value, kind.value.lower())]}
    has_type = {"anyOf": [{"required": ["type"]}, {"required": ["checkType"]}]}
    yield {
        "if": is_check,
        "then": {"properties": {"type": types, "checkType": types}, **has_type},
    }
    for kind in TYPES:
        own = {"enum": [kind.value, kind.value.lower()]}
        is_own = {"anyOf": [_has("type", own), _has("checkType", own)]}
        yield {
            "if": {"allOf": [is_check, is_own]},
            "then": {"$ref": f"#/$defs/check-{kind.value}"},
        }
    is_channel = _has("kind", {"const": Kind.ALERT_CHANNEL.value})
    channels = {"properties": {"type": {"enum": [one.value for one in KINDS]}}}
    yield {"if": is_channel, "then": {**channels, "required": ["type"]}}
    for channel in KINDS:
        yield {
            "if": {"allOf": [is_channel, _has("type", {"const": channel.value})]},
            "then": {"$ref": f"#/$defs/alert-channel-{channel.value}"},
        }
    for other in _OTHERS:
        yield {
            "if": _has("kind", {"const": other.value}),
            "then": {"$ref": f"#/$defs/{other.value}"},
        }


def _has(field: str, schema: _Schema) -> _Schema:
    return {"properties": {field: schema}, "required": [field]}
