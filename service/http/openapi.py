"""The OpenAPI document."""

import asyncio
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from threading import Lock
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from contract.checks import SPEC_TYPES
from contract.release import RELEASE
from service.http.error_responses import ErrorBody
from service.http.errors import phrase
from service.http.mutations import CHANGES, IDEMPOTENCY_KEY, NEEDED, UNCHANGED
from service.http.routing import SCHEMA_REF, refusals

DOCUMENT_PATH: Final = "/openapi.json"
TITLE: Final = "Picket"


def install_openapi(app: FastAPI, document: Callable[[], dict[str, Any]]) -> None:
    """Serve the document.

    `document` is asked when somebody first wants it, in a thread: it takes about a second.
    """
    making = Lock()

    @cache
    def written() -> bytes:
        return json.dumps(document(), separators=(",", ":")).encode()

    def written_once() -> bytes:
        # CPython 3.11 fails when two threads parse source at the same time (gh-106905).
        with making:
            return written()

    async def raw(_request: Request) -> Response:
        return Response(await asyncio.to_thread(written_once), media_type="application/json")

    app.openapi = document  # type: ignore[method-assign]  # the way FastAPI documents
    app.add_route(DOCUMENT_PATH, raw, include_in_schema=False)


def document_of(routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """What routes say of themselves."""
    document = get_openapi(title=TITLE, version=RELEASE, description=INTRODUCTION, routes=routes)
    document["components"]["schemas"] |= _error_schemas()
    _describe_changes(document)
    return _true(document)


def _error_schemas() -> dict[str, Any]:
    """What `refusals` refers to."""
    schema = ErrorBody.model_json_schema(ref_template=SCHEMA_REF)
    return {**schema.pop("$defs", {}), ErrorBody.__name__: schema}


def _describe_changes(document: dict[str, Any]) -> None:
    """Say in an OpenAPI document what a body may leave out that changes something."""
    schemas = document["components"]["schemas"]
    for operation in document["paths"].values():
        content = operation.get("put", {}).get("requestBody", {}).get("content", {})
        described = content.get("application/json", {})
        schema = described.get("schema", {})
        if names := schema.get(CHANGES):
            but, needed = schema.get(UNCHANGED, ()), schema.get(NEEDED, ())
            changes = [_add_change(schemas, name, but, needed) for name in names]
            described["schema"] = _refer(changes)


def _add_change(
    schemas: dict[str, Any], name: str, but: Collection[str], needed: Sequence[str]
) -> str:
    change = f"{name.removesuffix('Write')}Change"
    whole = {field: value for field, value in schemas[name].items() if field != "required"}
    kept = {field: value for field, value in whole["properties"].items() if field not in but}
    required = {"required": list(needed)} if needed else {}
    schemas[change] = {**whole, "properties": kept, **required}
    return change


def _refer(names: list[str]) -> dict[str, Any]:
    refs = [{"$ref": SCHEMA_REF.format(model=name)} for name in names]
    return refs[0] if len(refs) == 1 else {"anyOf": refs}


def _true(document: dict[str, Any]) -> dict[str, Any]:
    """Without what is FastAPI's own, and with examples and titles."""
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            _mend_422(operation)
            add_examples(f"{verb.upper()} {path}", operation)
    schemas = document.get("components", {}).get("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    add_titles(document)
    return document


def _mend_422(operation: dict[str, Any]) -> None:
    """Not FastAPI's, which no route of ours answers; but that of a key that came before."""
    operation["responses"].pop("422", None)
    if any(one["name"] == IDEMPOTENCY_KEY for one in operation.get("parameters", ())):
        operation["responses"]["422"] = refusals(422)[422]


_SNIPPET: Final = {"name": "login", "script": "module.exports = async () => 'token'"}
_CERTIFICATE: Final = {
    "host": "*.shop.example",
    "cert": "-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----\n",
    "key": "-----BEGIN ENCRYPTED PRIVATE KEY-----\n...\n-----END ENCRYPTED PRIVATE KEY-----\n",
    "passphrase": "open sesame",
}
_WINDOW: Final = {
    "name": "Backups",
    "tags": ["shop"],
    "startsAt": "2026-12-06T02:00:00",
    "endsAt": "2026-12-06T03:30:00",
    "rrule": "FREQ=WEEKLY;BYDAY=SU",
    "timeZone": "Europe/Berlin",
}
_GROUP: Final = {
    "name": "Shop",
    "tags": ["shop"],
    "privateLocations": ["default"],
    "concurrency": 2,
    "apiCheckDefaults": {"url": "https://shop.example", "headers": [], "queryParameters": []},
    "retryStrategy": {"type": "FIXED", "baseBackoffSeconds": 10, "maxRetries": 2},
}
_PAGE: Final = {
    "name": "Shop status",
    "url": "shop",
    "description": "How the shop is.",
    "cards": [{"name": "Shop", "services": []}],
}
_INCIDENT: Final = {
    "name": "Orders fail",
    "severity": "MAJOR",
    "services": [{"id": "019b0f5e-7a43-7d12-8f6e-0c8f3f1f6a2b"}],
}
_UPDATE: Final = {
    "description": "Orders cannot be paid.",
    "status": "INVESTIGATING",
    "notifySubscribers": True,
}
_PROJECT: Final = {
    "project": {"logicalId": "shop", "name": "Shop"},
    "sharedFiles": [],
    "resources": [
        {
            "type": "check",
            "logicalId": "front-page",
            "sourceFile": "src/front-page.check.ts",
            "payload": {
                "checkType": "URL",
                "name": "Front page",
                "request": {"url": "https://shop.example"},
                "privateLocations": ["default"],
                "groupId": {"ref": "web"},
            },
        },
        {"type": "check-group", "logicalId": "web", "payload": {"name": "Web", "v": 2}},
    ],
}
BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "POST /v1/check-groups": _GROUP,
    "PUT /v1/check-groups/{id}": _GROUP,
    "POST /v2/check-groups": _GROUP,
    "PUT /v2/check-groups/{id}": {**_GROUP, "retryStrategy": "FALLBACK"},
    "POST /v1/snippets": _SNIPPET,
    "PUT /v1/snippets/{id}": _SNIPPET,
    "PUT /v1/alert-channels/{id}": {"type": "EMAIL", "config": {}, "sendDegraded": True},
    "PUT /v1/alert-channels/{id}/subscriptions": {
        "checkId": "01931c5e-9a40-7000-8000-000000000000",
        "activated": True,
    },
    "PUT /v1/alert-channels/{id}/subscriptions/bulk": {
        "subscriptions": [{"checkId": "01931c5e-9a40-7000-8000-000000000000", "activated": True}]
    },
    "POST /v1/variables": {"key": "API_URL", "value": "https://shop.example/api"},
    "PUT /v1/variables/{key}": {"value": "https://shop.example/api/v2", "locked": True},
    "POST /v1/client-certificates": _CERTIFICATE,
    "POST /v1/maintenance-windows": _WINDOW,
    "PUT /v1/maintenance-windows/{id}": _WINDOW,
    "POST /v1/private-locations": {"name": "Warehouse", "slugName": "warehouse"},
    "PUT /v1/private-locations/{id}": {"name": "Warehouse", "icon": "location", "proxyUrl": None},
    "PATCH /v1/error-groups/{id}": {"archivedUntilNextEvent": True},
    "PUT /v1/accounts/me/alert-settings": {"runBasedEscalation": {"failedRunThreshold": 2}},
    "POST /v1/alert-settings/preview": {
        "checkId": "0199f1d2-6a7c-7d3e-9f5a-3f0c2b1a4d5e",
        "alertSettings": {"runBasedEscalation": {"failedRunThreshold": 3}},
    },
    "POST /v1/projects/deploy": _PROJECT,
    "POST /next-v2/projects/deploy": {
        **_PROJECT,
        "project": {"logicalId": "warehouse", "name": "Warehouse"},
    },
    "POST /next/projects": {"logicalId": "office", "name": "Office"},
    "POST /next/projects/{logicalId}/imports": {"filters": [{"type": "include"}]},
    "POST /v1/status-pages/services": {"name": "Checkout"},
    "PUT /v1/status-pages/services/{serviceId}": {"name": "Checkout"},
    "POST /v1/status-pages": _PAGE,
    "PUT /v1/status-pages/{statusPageId}": _PAGE,
    "POST /v1/status-pages/incidents": {**_INCIDENT, "incidentUpdates": [_UPDATE]},
    "PUT /v1/status-pages/incidents/{incidentId}": _INCIDENT,
    "POST /v1/status-pages/incidents/{incidentId}/incident-updates": _UPDATE,
    "PUT /v1/status-pages/incidents/{incidentId}/incident-updates/{incidentUpdateId}": _UPDATE,
    "POST /v1/status-pages/{statusPageId}/subscriptions/bulk": {
        "subscriptions": [{"type": "EMAIL", "config": "ann@example.com"}]
    },
    "POST /v1/analytics/checks": {"checkIds": ["019b0f5e-7a43-7d12-8f6e-0c8f3f1f6a2b"]},
    "POST /v1/check-sessions/trigger": {"target": {"matchTags": [["shop", "!slow"]]}},
    "POST /v2/check-sessions/trigger": {"target": {"matchTags": [["shop", "!slow"]]}},
    "POST /next/test-sessions/trigger": {
        "targetTags": [["shop"]],
        "runLocation": {"type": "PRIVATE", "slugName": "default"},
    },
    "POST /v1/test-sessions/{testSessionId}/cancel": {},
}
"""By method and path, but for checks, whose types have their own; a test sends them."""
_MESSAGES: Final[Mapping[int, str]] = {
    400: '"frequency" is 7; use one of 0, 1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440.',
    401: "Bad Token: send an API key (cu_…) as Authorization: Bearer <key>.",
    403: "This API key is READ_ONLY; POST takes one that is READ_WRITE.",
    404: "There is no check 019b0f5e-7a43-7d12-8f6e-0c8f3f1f6a2b.",
    408: "The session has not ended within 30 s; try again.",
    409: "A snippet login already exists; use another name.",
    413: "The body is too large; use at most 1048576 bytes.",
    415: "The body is text/plain; send JSON, and content-type: application/json.",
    422: (
        "This Idempotency-Key was used with another request before; use a new one for each request,"
        " and the same one only to send the same request again."
    ),
    429: "Too many requests; try again in 1 s.",
    500: "An internal error occurred; the service's log has it.",
    503: "The database is busy; try again.",
    507: "The bundle cannot be stored: No space left on device. Send it again later.",
}
_ATTRIBUTES: Final[Mapping[int, Mapping[str, int]]] = {
    413: {"limitBytes": 1048576},
    429: {"retryAfter": 1},
}


def add_examples(name: str, operation: dict[str, Any]) -> None:
    """Put them into an operation; `name` is its method and path."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None and name in BODIES:
        content["example"] = deepcopy(BODIES[name])
    for status, response in operation["responses"].items():
        if status in _REFUSALS:
            response["content"]["application/json"]["example"] = deepcopy(_REFUSALS[status])


def _refusal(status: int) -> dict[str, Any]:
    body = {
        "statusCode": status,
        "error": phrase(status),
        "message": _MESSAGES[status],
        "attributes": dict(_ATTRIBUTES.get(status, {})),
    }
    if status == 400:
        body["validation"] = {"source": "payload", "keys": ["frequency"]}
    return body


_REFUSALS: Final = {str(status): _refusal(status) for status in _MESSAGES}


INTRODUCTION: Final = """\
Checks, where they run, their results, and runs on demand.

## Authentication

Every request carries an API key, except where an operation says otherwise:

```
Authorization: Bearer cu_…
```

The service prints the first API key once, at its first start.
Create another one on the machine of the service:

```
picket keys create --name NAME
```

A key belongs to one account, so the header `x-service-account` is optional.
A `READ_ONLY` key can send `GET` requests, and `POST /v1/analytics/checks`, only.

To try an operation here, enter a key under Authentication. It is forgotten when the page closes.

## Requests

Unknown fields of a body are ignored and named in the response header `x-ignored-fields`.
A field whose name is nearly a known one is refused.
Numbers, booleans and strings are never converted into one another.

## Errors

Every error has the same body: `message` says what is wrong and how to fix it, and `validation`
names the fields. Status 429 says in `retry-after` how many seconds to wait.
"""

TAGS: Final[Mapping[str, str]] = {
    "Checks": "What is checked, how often, and from where.",
    "Heartbeats": "Pings of heartbeat checks, and how many came in time.",
    "Check groups": "Checks that share locations, settings and variables.",
    "Check sessions": "Run checks now, and wait for their results.",
    "Test sessions": "Run checks once that are not stored.",
    "Projects": "Checks and what belongs to them, deployed from code.",
    "Check results": "Every run's result, and the files it left.",
    "Error groups": "Failures of a check that have the same cause, shown once.",
    "Check statuses": "Whether each check passes at present.",
    "Prometheus": "How checks and locations stand, for Prometheus.",
    "Alert channels": "Where alerts go, and what became of them.",
    "Alerts": "What people were notified of, and what other settings would have led to.",
    "Analytics": "Time series of a check, and numbers of many checks over a window.",
    "Triggers": "Links that run a check or a group without an API key.",
    "Status pages": "What an account shows of its services to everybody.",
    "Status page services": "What status pages show and incidents touch.",
    "Incidents": "What happens to services, and what is said of it.",
    "Subscriptions": "Who gets mails of the incidents of a status page.",
    "Badges": "Pictures of a status, for web pages.",
    "Private locations": "Where agents run, their keys, and their queues.",
    "Locations": "Regions that a check may name.",
    "Static addresses": "The IP addresses that checks come from, for firewalls.",
    "Variables": "Variables and secrets that all checks of the account can use.",
    "Snippets": "Scripts that checks share for setup and teardown.",
    "Client certificates": "Certificates that checks present to servers.",
    "Maintenance windows": "Times in which checks run and nobody is alerted.",
    "Code bundles": "Uploaded Playwright projects.",
    "Runtimes": "Versions of Node.js and libraries that scripts run on.",
    "Accounts": "The account of an API key, and what it may use.",
}
"""A line on each tag, in the order in which they are listed."""
_SPELLINGS: Final[Mapping[str, str]] = {
    **{word.lower(): word for spec in SPEC_TYPES.values() for word in spec.noun.split()},
    "http": "HTTP",
    "ips": "IPs",
    "ipv6": "IPv6 addresses",
    "v2": "(v2)",
    "multi": "multi-step",
    "step": "",
}
_METHODS: Final = ("get", "head", "post", "put", "patch", "delete")
_WORD: Final = re.compile(r"[A-Z][a-z]*(?:\d+)?")


def add_titles(document: dict[str, Any]) -> None:
    """Put tags, summaries and titles for people in the place of those made of Python's names."""
    document["tags"] = [{"name": name, "description": line} for name, line in TAGS.items()]
    for path, operations in document["paths"].items():
        document["paths"][path] = dict(
            sorted(operations.items(), key=lambda one: _METHODS.index(one[0]))
        )
        for operation in operations.values():
            operation["summary"] = _spelled(operation["summary"].lower().split())
            for schema in _schemas_of(operation):
                _drop_titles(schema)
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        _drop_titles(schema)
        schema["title"] = _title(name, is_also_sent=name.removesuffix("Shown") in schemas)


def _title(name: str, *, is_also_sent: bool) -> str:
    """`UrlCheckWrite` as "URL check (request)"."""
    words = [word.lower() for word in _WORD.findall(name)]
    match words:
        case ["typed", *rest]:
            return f"{_spelled(rest)} (request with checkType)"
        case [*rest, "write"]:
            return f"{_spelled(rest)} (request)"
        case [*rest, "change"]:
            return f"{_spelled(rest)} (change)"
        case [*rest, "shown"]:
            return f"{_spelled(rest)} (response)" if is_also_sent else _spelled(rest)
        case _:
            return _spelled(words)


def _spelled(words: list[str]) -> str:
    text = " ".join(filter(None, (_SPELLINGS.get(word, word) for word in words)))
    return text[:1].upper() + text[1:]


def _schemas_of(operation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for parameter in operation.get("parameters", ()):
        yield parameter["schema"]
    for part in (operation.get("requestBody", {}), *operation["responses"].values()):
        for content in part.get("content", {}).values():
            yield content.get("schema", {})


def _drop_titles(schema: dict[str, Any]) -> None:
    """A field has its name; pydantic's title for it, as "Alertsettings", says nothing more."""
    schema.pop("title", None)
    for inner in schema.get("properties", {}).values():
        _drop_titles(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _drop_titles(schema[key])
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for inner in schema.get(key, ()):
            _drop_titles(inner)
