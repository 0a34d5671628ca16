"""Sends one request, and returns its observation."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from datetime import UTC, datetime
from random import SystemRandom
from typing import Any, Final

import msgspec

from contract.assertions import CONNECTION_SOURCES, Source
from contract.evidence import HttpEvidence, SeenResponse
from contract.requests import HttpRequest
from contract.result import CheckFailed, Failure, FailureKind, LogLine
from contract.templates import fill_request
from runners.net.http.body_memory import BodyLease, BodyMemoryError
from runners.net.http.content_coding import find_undecoded
from runners.net.http.exchange import HttpExchange, HttpResponse, mention_redirect
from runners.net.http.response import (
    STORED_BYTES,
    STORED_IMAGE_BYTES,
    BodyRead,
    ContentType,
    StoredBody,
    parse_content_type,
    store_body,
)
from runners.net.http.transfer import READ_LIMIT_BYTES
from runners.runner import (
    EncodedText,
    Fact,
    Fields,
    JsonText,
    Number,
    Observation,
    RunContext,
    Text,
    connection_facts,
)

_RANDOM: Final = SystemRandom()
"""The source of helpers such as `$UUID`; it has no state of its own."""
_BODY_SOURCES: Final = frozenset({Source.TEXT_BODY, Source.JSON_BODY})
KEPT_BYTES: Final = max(STORED_BYTES, STORED_IMAGE_BYTES) + 1
"""How much of a body is kept that no assertion reads: 256 checks of 25 MB each would not fit."""
REASON_TIMEOUT_S: Final = 2.0
"""How long to wait for our own resolver to explain why a name has no address."""

Transform = Callable[[HttpExchange], Awaitable[HttpExchange]]


async def probe(
    request: HttpRequest,
    ctx: RunContext,
    *,
    sources: Collection[Source] = (),
    stored_bytes: int = STORED_BYTES,
    transform: Transform | None = None,
) -> Observation:
    """Send the request, and return the observation.

    `sources` are the facts that assertions read. `transform` may replace the exchange, with its
    whole body, before facts are taken from it.

    Raises:
        CheckFailed: the request cannot be filled in (SCRIPT) or sent as it is written (PROTOCOL).
        BodyMemoryError: this agent had no memory for the body.
    """
    if transform is None and _BODY_SOURCES.isdisjoint(sources):
        exchange = await _send(request, ctx, lease=None)
        return observation(exchange, sources, stored_bytes=stored_bytes)
    network = ctx.network
    lease = BodyLease(network.bodies, network.deadlines)
    try:
        exchange = await _send(request, ctx, lease=lease)
        if transform is not None:
            exchange = await transform(exchange)
        seen = observation(exchange, sources, stored_bytes=stored_bytes)
    except BaseException:
        lease.release()
        raise
    if not lease.held_bytes and not lease.waited_s:
        return seen
    return msgspec.structs.replace(seen, release=lease.release, log=_describe_wait(lease))


def _describe_wait(lease: BodyLease) -> tuple[LogLine, ...]:
    if not lease.waited_s:
        return ()
    message = (
        f"The agent waited {lease.waited_s:.1f} s for memory to keep the response's body "
        "(BODY_MEMORY_MB); no time of the response includes this."
    )
    return (LogLine(after_ms=0, level="WARN", message=message),)


async def _send(request: HttpRequest, ctx: RunContext, *, lease: BodyLease | None) -> HttpExchange:
    """Send the request, and let our own resolver explain why a name has no address."""
    exchange = await _exchange(request, ctx, lease=lease)
    if lease is not None and lease.waited_s and exchange.failure is not None:
        # A connection that stood still for us may break, and that is not the target's fault.
        raise BodyMemoryError(f"A body that waited {lease.waited_s:.1f} s for memory was lost.")
    failure = exchange.failure
    if failure is None:
        return exchange
    if failure.kind is FailureKind.DNS:
        left_s = ctx.timeout_s - (exchange.timings.total or 0) / 1000
        failure = await _explain_dns_failure(failure, request, ctx, left_s=left_s)
    failure = mention_redirect(failure, exchange.redirected_by)
    return msgspec.structs.replace(exchange, failure=failure)


def _exchange(
    request: HttpRequest, ctx: RunContext, *, lease: BodyLease | None
) -> Coroutine[Any, Any, HttpExchange]:
    return ctx.network.http.exchange(
        fill_request(request, ctx.variables, now=_now, random=_RANDOM),
        timeout_s=ctx.timeout_s,
        client_certificates=ctx.client_certificates,
        proxy_url=ctx.proxy_url,
        keep_bytes=KEPT_BYTES if lease is None else READ_LIMIT_BYTES,
        lease=lease,
    )


async def _explain_dns_failure(
    failure: Failure, request: HttpRequest, ctx: RunContext, *, left_s: float
) -> Failure:
    """Give the failure our own resolver's message: libcurl does not say which server failed.

    The failure stays as it is when a proxy resolves, or when our resolver finds an address or takes
    too long.
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
    exchange: HttpExchange, sources: Collection[Source], *, stored_bytes: int = STORED_BYTES
) -> Observation:
    """Build evidence and facts; those of the body only where an assertion reads them."""
    answer, total_ms = exchange.answer, exchange.timings.total
    facts: dict[Source, Fact] = {}
    response = None
    if answer is not None:
        kind = parse_content_type(answer.head.headers.get("content-type"))
        if answer.charset is not None:
            kind = kind._replace(charset=answer.charset)
        facts = _facts(answer, kind, sources)
        text = Source.TEXT_BODY in sources
        body = BodyRead(answer.body, answer.body_bytes, answer.body_cut)
        kept = store_body(body, kind, even_binary=text, limit_bytes=stored_bytes)
        response = _response(answer, kept)
    if total_ms is not None:
        facts[Source.RESPONSE_TIME] = Number(total_ms)
    if not CONNECTION_SOURCES.isdisjoint(sources):
        facts |= connection_facts(exchange.tls, exchange.remote_address)
    return Observation(
        # How soon a connection was refused says nothing of how fast the target answers.
        response_time_ms=None if answer is None else total_ms,
        timings=exchange.timings,
        facts=facts,
        failure=exchange.failure or _undecoded_failure(answer, sources),
        evidence=_evidence(exchange, response),
    )


def _undecoded_failure(answer: HttpResponse | None, sources: Collection[Source]) -> Failure | None:
    """Why assertions on the body cannot be judged. None: they can, or there are none."""
    if answer is None or answer.charset is not None or _BODY_SOURCES.isdisjoint(sources):
        return None
    coding = find_undecoded(answer.head.headers.get("content-encoding"))
    if coding is None:
        return None
    return Failure(
        kind=FailureKind.PROTOCOL,
        message=f"The body is encoded as {coding}, which is not decoded, so that no assertion on "
        "it can be judged.",
        detail={"code": "ERR_CONTENT_ENCODING"},
    )


def _evidence(exchange: HttpExchange, response: SeenResponse | None) -> HttpEvidence:
    return HttpEvidence(
        request=exchange.sent,
        response=response,
        hops=exchange.hops,
        tls=exchange.tls,
        remote_address=exchange.remote_address,
    )


def _facts(
    answer: HttpResponse, kind: ContentType, sources: Collection[Source]
) -> dict[Source, Fact]:
    facts = {Source.STATUS_CODE: _status_code(answer), Source.HEADERS: _headers(answer)}
    if sources:
        facts |= {one: fact(answer, kind) for one, fact in _FACTS_OF_BODY.items() if one in sources}
    return facts


def _response(answer: HttpResponse, kept: StoredBody) -> SeenResponse:
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


def _status_code(answer: HttpResponse) -> Fact:
    return Number(answer.head.status_code)


def _headers(answer: HttpResponse) -> Fact:
    return Fields(answer.head.headers)


def _text(answer: HttpResponse, kind: ContentType) -> Fact:
    read_bytes = answer.body_bytes if answer.body_cut else None
    return Text(EncodedText(answer.body, kind.charset), "the body is empty", read_bytes)


def _json(answer: HttpResponse, kind: ContentType) -> Fact:
    if not answer.body_bytes:
        return JsonText("", "The body is empty.")
    if not kind.is_json:
        said = f"is {kind.media_type}" if kind.media_type else "is not given"
        return JsonText("", f"The response's content type {said}, not JSON.")
    if answer.body_cut:
        return JsonText(
            "", f"The response is longer than the {answer.body_bytes} bytes read of it."
        )
    return JsonText(EncodedText(answer.body, kind.charset))


_FACTS_OF_BODY: Final[dict[Source, Callable[[HttpResponse, ContentType], Fact]]] = {
    Source.TEXT_BODY: _text,
    Source.JSON_BODY: _json,
}
"""Facts that are made only when an assertion reads them: they keep the whole body."""
