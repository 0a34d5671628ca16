"""Bodies of checks as a person sends them: the least that each type takes."""

from copy import deepcopy
from typing import Any, Final

LEAST: Final[dict[str, dict[str, Any]]] = {
    "url": {"name": "Home", "request": {"url": "http://127.0.0.1/"}},
    "api": {"name": "Orders", "request": {"method": "GET", "url": "https://shop.test/orders"}},
    "tcp": {"name": "Mail", "request": {"hostname": "mail.test", "port": 25}},
    "dns": {"name": "Zone", "request": {"recordType": "A", "query": "shop.test"}},
    "icmp": {"name": "Router", "request": {"hostname": "10.0.0.1"}},
    "heartbeat": {
        "name": "Backup",
        "heartbeat": {"period": 1, "periodUnit": "days", "grace": 30, "graceUnit": "minutes"},
    },
}


def check_body(kind: str = "url", **fields: Any) -> dict[str, Any]:
    """A body of this type that runs at the location `default`."""
    return {**deepcopy(LEAST[kind]), "privateLocations": ["default"], **fields}


def with_request(kind: str, **fields: Any) -> dict[str, Any]:
    """A body of this type with these fields in its request."""
    return check_body(kind, request={**LEAST[kind]["request"], **fields})


AGENTIC: Final[dict[str, Any]] = {"name": "Basket", "prompt": "Put a lamp into the basket."}
"""It runs in us-east-1, where a private location of this name has to be."""
SCRIPTED: Final[dict[str, dict[str, Any]]] = {
    "browser": {"name": "Shop", "script": "await page.goto('http://127.0.0.1/')"},
    "multistep": {"name": "Order", "script": "await request.get('http://127.0.0.1/')"},
}


def script_body(kind: str = "browser", **fields: Any) -> dict[str, Any]:
    """A check that is one script, and runs at the location `default`."""
    return {**deepcopy(SCRIPTED[kind]), "privateLocations": ["default"], **fields}
