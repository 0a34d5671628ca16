"""The body that an HTTP request is sent with. Pure."""

import json
from collections.abc import Mapping
from typing import Final

from contract.requests import BodyType, HttpMethod, HttpRequest

_NO_BODY: Final = frozenset({HttpMethod.HEAD})


def body_of(request: HttpRequest) -> bytes | None:
    """What is sent, in UTF-8. None: nothing."""
    if request.body_type is BodyType.NONE or not request.body or request.method in _NO_BODY:
        return None
    if request.body_type is BodyType.GRAPHQL:
        return _graphql(request.body).encode()
    return request.body.encode()


def _graphql(body: str) -> str:
    """A bare query becomes `{"query": …}`; a JSON object is taken as it is."""
    try:
        ready = isinstance(json.loads(body), Mapping)
    except (ValueError, RecursionError):
        ready = False
    return body if ready else json.dumps({"query": body})
