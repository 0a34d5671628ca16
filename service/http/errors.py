"""Refusals of the public API as exceptions that carry their status."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, Literal

PHRASES: Final[dict[int, str]] = {
    HTTPStatus.REQUEST_TIMEOUT: "Request Time-out",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Request Entity Too Large",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Unprocessable Entity",
}
"""Status texts that differ from the standard's, or between versions of Python."""

Source = Literal["payload", "query", "path", "headers"]


def phrase(status: int) -> str:
    """The status text of a status, as `error` of the one error body."""
    return PHRASES.get(status) or HTTPStatus(status).phrase


class ApiError(Exception):
    """The caller's business: becomes the one error body."""

    status: int = HTTPStatus.BAD_REQUEST

    def __init__(
        self,
        message: str,
        *,
        attributes: Mapping[str, str | int | float] | None = None,
        headers: Mapping[str, str] | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.attributes = dict(attributes or {})
        self.facts = dict(facts or {})
        """Further fields at the top of the body, where the established service's clients look."""
        self.headers = dict(headers or {})


class InvalidError(ApiError):
    """400: what was sent does not fit; says which fields."""

    def __init__(self, message: str, *, keys: tuple[str, ...], source: Source = "payload") -> None:
        super().__init__(message)
        self.keys = keys
        self.source: Source = source


class UnauthorizedError(ApiError):
    """401: the key is missing, unknown or ended; which of them is not said.

    `Bad Token` is what the established service says, and all that it says.
    """

    status = HTTPStatus.UNAUTHORIZED

    def __init__(
        self, remedy: str = "send an API key (cu_…) as Authorization: Bearer <key>"
    ) -> None:
        super().__init__(f"Bad Token: {remedy}.", headers={"www-authenticate": "Bearer"})


class LocationKeyError(UnauthorizedError):
    """401 for an agent."""

    def __init__(self) -> None:
        super().__init__("set API_KEY to a key of a private location (pl_…) of this service")


class ForbiddenError(ApiError):
    """403: the key is good, but not for this."""

    status = HTTPStatus.FORBIDDEN


class NotFoundError(ApiError):
    """404: nothing here, or nothing that this caller may know of."""

    status = HTTPStatus.NOT_FOUND


class StillRunningError(ApiError):
    """408: the wait ended before what was waited for; try again."""

    status = HTTPStatus.REQUEST_TIMEOUT


class SlowBodyError(ApiError):
    """408: the body did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT


class SlowHeadError(ApiError):
    """408: the head of the request did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT


class ConflictError(ApiError):
    """409: it fits, but not together with what is there."""

    status = HTTPStatus.CONFLICT


class UsedKeyError(ApiError):
    """422: an Idempotency-Key came again with another request (draft-ietf-httpapi)."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY

    def __init__(self) -> None:
        super().__init__(
            "This Idempotency-Key was used with another request before; use a new one for each"
            " request, and the same one only to send the same request again."
        )


class MediaTypeError(ApiError):
    """415: the body is of a kind that is not read here."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class TooLargeError(ApiError):
    """413: more bytes than the API reads."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class TooManyError(ApiError):
    """429: wait, then go on."""

    status = HTTPStatus.TOO_MANY_REQUESTS


class LargeHeadError(ApiError):
    """431: the head of the request is longer than the service reads."""

    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


class UnreadableError(ApiError):
    """500: what is stored cannot be read any more; says which, for a caller can put it right."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR


class RunNotPassedError(ApiError):
    """503: the run that a trigger's link started did not pass, as that service answers it."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class NoRoomError(ApiError):
    """507: the disk takes no more; a later try may find room."""

    status = HTTPStatus.INSUFFICIENT_STORAGE
