"""Examples of the OpenAPI document: what to send, and what a refusal looks like."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from service.http.errors import phrase

_SNIPPET: Final = {"name": "login", "script": "module.exports = async () => 'token'"}
_CERTIFICATE: Final = {
    "host": "*.shop.example",
    "cert": "-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----\n",
    "key": "-----BEGIN ENCRYPTED PRIVATE KEY-----\n...\n-----END ENCRYPTED PRIVATE KEY-----\n",
    "passphrase": "open sesame",
}
_GROUP: Final = {
    "name": "Shop",
    "tags": ["shop"],
    "privateLocations": ["default"],
    "concurrency": 2,
    "apiCheckDefaults": {"url": "https://shop.example", "headers": [], "queryParameters": []},
    "retryStrategy": {"type": "FIXED", "baseBackoffSeconds": 10, "maxRetries": 2},
}
BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "POST /v1/check-groups": _GROUP,
    "PUT /v1/check-groups/{id}": _GROUP,
    "POST /v2/check-groups": _GROUP,
    "PUT /v2/check-groups/{id}": {**_GROUP, "retryStrategy": "FALLBACK"},
    "POST /v1/snippets": _SNIPPET,
    "PUT /v1/snippets/{id}": _SNIPPET,
    "POST /v1/variables": {"key": "API_URL", "value": "https://shop.example/api"},
    "PUT /v1/variables/{key}": {"value": "https://shop.example/api/v2", "locked": True},
    "POST /v1/client-certificates": _CERTIFICATE,
    "POST /v1/private-locations": {"name": "Warehouse", "slugName": "warehouse"},
    "PUT /v1/private-locations/{id}": {"name": "Warehouse", "icon": "location", "proxyUrl": None},
    "POST /v1/check-sessions/trigger": {"target": {"matchTags": [["shop", "!slow"]]}},
}
"""By method and path, but for checks, whose types have their own; a test sends them."""
_MESSAGES: Final[Mapping[int, str]] = {
    400: '"frequency" is 7; use one of 0, 1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440.',
    401: "Bad Token: send an API key (cu_…) as Authorization: Bearer <key>.",
    403: "This API key is READ_ONLY; POST takes one that is READ_WRITE.",
    404: "There is no check 019b0f5e-7a43-7d12-8f6e-0c8f3f1f6a2b.",
    408: "The session has not ended within 30 s; ask again.",
    409: "There is a snippet login already; use another name.",
    413: "The body is too large; use at most 1048576 bytes.",
    415: "The body is text/plain; send JSON, and content-type: application/json.",
    422: (
        "This Idempotency-Key came with another request before; use a new one for each request,"
        " and the same one only to send the same request again."
    ),
    429: "Too many requests; try again in 1 s.",
    500: "The service made a mistake; it is in its log.",
    503: "The database is busy; try again.",
    507: "The bundle cannot be kept: No space left on device. Send it again later.",
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
