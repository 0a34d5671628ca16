"""What people read first in the OpenAPI document: its introduction, tags, summaries and titles."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from contract.checks import SPEC_TYPES

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
A `READ_ONLY` key can send `GET` requests only.

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
    "Check results": "Every run's result, and the files it left.",
    "Check statuses": "Whether each check passes at present.",
    "Triggers": "Links that run a check or a group without an API key.",
    "Badges": "Pictures of a status, for web pages.",
    "Private locations": "Where agents run, their keys, and their queues.",
    "Locations": "Regions that a check may name.",
    "Static addresses": "The IP addresses that checks come from, for firewalls.",
    "Variables": "Variables and secrets that all checks of the account can use.",
    "Snippets": "Scripts that checks share for setup and teardown.",
    "Client certificates": "Certificates that checks present to servers.",
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
