"""The examples of the OpenAPI document, as bodies to send."""

from typing import Any, Final

from service.routers import document

BODIES: Final[dict[str, Any]] = {
    f"{verb.upper()} {path}": content["example"]
    for path, verbs in document()["paths"].items()
    for verb, operation in verbs.items()
    if (content := operation.get("requestBody", {}).get("content", {}).get("application/json"))
}
"""By method and path."""
