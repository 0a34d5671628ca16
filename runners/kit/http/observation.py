"""From an exchange to what a runner brings back. Pure."""

from collections.abc import Callable, Collection
from typing import Final

from contract.assertions import Source
from contract.http_evidence import HttpEvidence, SeenResponse
from runners.kit.http.body import (
    STORED_BYTES,
    BodyRead,
    ContentType,
    Stored,
    as_text,
    content_type,
    stored,
)
from runners.kit.http.chain import Answer, Exchanged
from runners.kit.observation import Fact, Fields, JsonText, Number, Observation, Text


def observation(
    exchanged: Exchanged, sources: Collection[Source], *, stored_bytes: int = STORED_BYTES
) -> Observation:
    """The evidence, and the facts; of the body only those that an assertion reads."""
    answer, total_ms = exchanged.answer, exchanged.timings.total
    facts: dict[Source, Fact] = {}
    response = None
    if answer is not None:
        kind = content_type(answer.head.headers.get("content-type"))
        if answer.charset is not None:
            kind = kind._replace(charset=answer.charset)
        facts = _facts(answer, kind, sources)
        text = Source.TEXT_BODY in sources
        body = BodyRead(answer.body, answer.body_bytes, answer.body_cut)
        kept = stored(body, kind, as_text_anyway=text, limit_bytes=stored_bytes)
        response = _response(answer, kept)
    if total_ms is not None:
        facts[Source.RESPONSE_TIME] = Number(total_ms)
    return Observation(
        response_time_ms=total_ms,
        timings=exchanged.timings,
        facts=facts,
        failure=exchanged.failure,
        evidence=_evidence(exchanged, response),
    )


def _evidence(exchanged: Exchanged, response: SeenResponse | None) -> HttpEvidence:
    return HttpEvidence(
        request=exchanged.sent,
        response=response,
        hops=exchanged.hops,
        tls=exchanged.tls,
        remote_address=exchanged.remote_address,
    )


def _facts(answer: Answer, kind: ContentType, sources: Collection[Source]) -> dict[Source, Fact]:
    facts = {Source.STATUS_CODE: _status_code(answer), Source.HEADERS: _headers(answer)}
    if sources:
        facts |= {one: fact(answer, kind) for one, fact in _FACTS_OF_BODY.items() if one in sources}
    return facts


def _response(answer: Answer, kept: Stored) -> SeenResponse:
    head = answer.head
    return SeenResponse(
        status_code=head.status_code,
        status_text=head.status_text,
        http_version=head.http_version,
        headers=head.headers,
        body=kept.body,
        body_encoding=kept.encoding,
        body_bytes=answer.body_bytes,
        truncated=kept.truncated,
        note=kept.note,
    )


def _status_code(answer: Answer) -> Fact:
    return Number(answer.head.status_code)


def _headers(answer: Answer) -> Fact:
    return Fields(answer.head.headers)


def _text(answer: Answer, kind: ContentType) -> Fact:
    return Text(as_text(answer.body, kind.charset))


def _json(answer: Answer, kind: ContentType) -> Fact:
    if not kind.is_json:
        said = f"is {kind.media_type}" if kind.media_type else "is not given"
        return JsonText("", f"The response's content type {said}, not JSON.")
    if answer.body_cut:
        return JsonText(
            "", f"The response is longer than the {answer.body_bytes} bytes read of it."
        )
    return JsonText(as_text(answer.body, kind.charset))


_FACTS_OF_BODY: Final[dict[Source, Callable[[Answer, ContentType], Fact]]] = {
    Source.TEXT_BODY: _text,
    Source.JSON_BODY: _json,
}
"""Only made when an assertion reads them: decoding 25 MB costs."""
