"""Sends one request, and returns its observation."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from datetime import UTC, datetime
from functools import partial
from random import SystemRandom
from typing import Any, Final

import msgspec

from contract.assertions import Source
from contract.evidence import HttpEvidence, SeenResponse
from contract.requests import HttpRequest
from contract.result import CheckFailed, Failure, FailureKind
from contract.templates import fill_request
from runners.net.http.exchange import Answer, HttpExchange
from runners.net.http.response import (
    STORED_BYTES,
    STORED_IMAGE_BYTES,
    BodyRead,
    ContentType,
    Stored,
    as_text,
    content_type,
    stored,
)
from runners.net.http.transfer import READ_LIMIT_BYTES
from runners.runner import (
    HEAVY_CHARS,
    Fact,
    Fields,
    JsonText,
    Number,
    Observation,
    RunContext,
    Text,
)

_DICE: Final = SystemRandom()
"""For helpers such as `$UUID`; it has no state of its own."""
_OF_THE_BODY: Final = frozenset({Source.TEXT_BODY, Source.JSON_BODY})
KEPT_BYTES: Final = max(STORED_BYTES, STORED_IMAGE_BYTES) + 1
"""Of a body that no assertion reads: 256 checks at once of 25 MB each would be the agent's end."""
REASON_TIMEOUT_S: Final = 2.0
"""The longest that a better reason for a name without an address is waited for."""

Alter = Callable[[HttpExchange], Awaitable[HttpExchange]]


async def probe(
    request: HttpRequest,
    ctx: RunContext,
    *,
    sources: Collection[Source] = (),
    stored_bytes: int = STORED_BYTES,
    alter: Alter | None = None,
) -> Observation:
    """Send the request; `sources` are what assertions will read.

    `alter` makes another exchange of what was seen, whole, before its facts are told.

    Raises:
        CheckFailed: the request cannot be filled in (SCRIPT) or sent as it is written (PROTOCOL).
    """
    reads_body = alter is not None or not _OF_THE_BODY.isdisjoint(sources)
    keep_bytes = READ_LIMIT_BYTES if reads_body else KEPT_BYTES
    exchanged = await _exchange(request, ctx, keep_bytes=keep_bytes)
    if exchanged.failure is not None and exchanged.failure.kind is FailureKind.DNS:
        left_s = ctx.timeout_s - (exchanged.timings.total or 0) / 1000
        failure = await _with_reason(exchanged.failure, request, ctx, left_s=left_s)
        exchanged = msgspec.structs.replace(exchanged, failure=failure)
    if alter is not None:
        exchanged = await alter(exchanged)
    answer = exchanged.answer
    if answer is not None and len(answer.body) >= HEAVY_CHARS:
        tell = partial(observation, exchanged, sources, stored_bytes=stored_bytes)
        return await ctx.network.aside.run(tell)
    return observation(exchanged, sources, stored_bytes=stored_bytes)


def _exchange(
    request: HttpRequest, ctx: RunContext, *, keep_bytes: int
) -> Coroutine[Any, Any, HttpExchange]:
    return ctx.network.http.exchange(
        fill_request(request, ctx.variables, now=_now, random=_DICE),
        timeout_s=ctx.timeout_s,
        client_certificates=ctx.client_certificates,
        proxy_url=ctx.proxy_url,
        keep_bytes=keep_bytes,
    )


async def _with_reason(
    failure: Failure, request: HttpRequest, ctx: RunContext, *, left_s: float
) -> Failure:
    """The failure with the sentence of our own resolver: libcurl does not say who knew no address.

    As it was when a proxy resolves, when our resolver finds an address or takes too long.
    """
    host = failure.detail.get("hostname")
    if ctx.proxy_url is not None or not isinstance(host, str):
        return failure
    limit = asyncio.timeout(min(REASON_TIMEOUT_S, left_s))
    try:
        async with limit:
            await ctx.network.resolver.resolve(host, request.ip_family)
    except CheckFailed as failed:
        return msgspec.structs.replace(failure, message=failed.failure.message)
    except TimeoutError:
        if not limit.expired():
            raise
    return failure


def _now() -> datetime:
    return datetime.now(UTC)


def observation(
    exchanged: HttpExchange, sources: Collection[Source], *, stored_bytes: int = STORED_BYTES
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


def _evidence(exchanged: HttpExchange, response: SeenResponse | None) -> HttpEvidence:
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
