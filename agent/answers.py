"""What the service's answers mean: a message, or what went wrong, by one table."""

from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar

import msgspec

from agent.errors import (
    ElsewhereError,
    JobGoneError,
    KeyRefusedError,
    RequestRefusedError,
    ServiceAwayError,
    ServiceError,
    VersionRefusedError,
)
from contract import agent_api as api
from contract.wire import UnreadableMessageError, decode

MessageT = TypeVar("MessageT", bound=msgspec.Struct)

_REFUSALS: Final[dict[int, type[ServiceError]]] = {
    401: KeyRefusedError,
    426: VersionRefusedError,
    400: RequestRefusedError,
    413: RequestRefusedError,
    422: RequestRefusedError,
}
"""Statuses that will not pass by themselves; with every other one the service counts as away."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    retry_after: str
    """Empty: there was no such header."""


def usual_refusal(answer: Answer, sentence: str) -> ServiceError | None:
    """What will not pass by itself. None: it may."""
    refusal = _REFUSALS.get(answer.status)
    return None if refusal is None else refusal(sentence)


def artifact_refusal(answer: Answer, sentence: str) -> ServiceError | None:
    """The same for files; only the service's own word counts."""
    with suppress(UnreadableMessageError):
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            offset = decode(answer.body, api.RangeRefusal).attributes.offset
            return ElsewhereError(sentence, offset=offset)
        if answer.status == HTTPStatus.NOT_FOUND:
            return JobGoneError(decode(answer.body, api.Refusal).message)
    return usual_refusal(answer, sentence)


def bundle_refusal(answer: Answer, sentence: str) -> ServiceError | None:
    """The same for code bundles: one that is not there is no fault of the line."""
    if answer.status == HTTPStatus.NOT_FOUND:
        return RequestRefusedError(sentence)
    return usual_refusal(answer, sentence)


Refusal = Callable[[Answer, str], ServiceError | None]


def read(answer: Answer, kind: type[MessageT], refusal: Refusal) -> MessageT:
    """The message of an answer.

    Raises:
        ServiceError: as `refusal` says, or the service counts as away.
    """
    if answer.status in {200, 201, 202, 204}:
        try:
            return decode(answer.body or b"{}", kind)
        except UnreadableMessageError as problem:
            raise ServiceAwayError(
                f"The service's answer cannot be read, so something else may answer at "
                f"SERVICE_URL: {problem}"
            ) from problem
    sentence = f"The service answered {answer.status}: {_said(answer.body)}"
    if (refused := refusal(answer, sentence)) is not None:
        raise refused
    raise ServiceAwayError(sentence, retry_after_s=_seconds(answer.retry_after))


def _said(answer: bytes) -> str:
    try:
        return decode(answer, api.Refusal).message
    except UnreadableMessageError:
        return answer[:200].decode("utf-8", "replace").strip() or "nothing more"


def _seconds(retry_after: str) -> float | None:
    """The header's seconds. None: it is not there, or is a date, which needs equal clocks."""
    return float(retry_after) if retry_after.isdecimal() else None
