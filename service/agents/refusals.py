"""What agents are refused, beyond the refusals that every caller can meet."""

from http import HTTPStatus

from service.http.errors import ApiError


class TooOldError(ApiError):
    """426: this agent speaks an older language than the service."""

    status = HTTPStatus.UPGRADE_REQUIRED


class RangeError(ApiError):
    """416: the part does not begin where the stored bytes end; says where that is."""

    status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
