"""One look at a target over HTTP: fill in the variables, exchange, tell the facts."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from datetime import UTC, datetime
from functools import partial
from random import SystemRandom
from typing import Any, Final

import msgspec

from contract.assertions import Source
from contract.requests import HttpRequest
from contract.result import Failure, FailureKind
from runners.kit.failures import CheckFailed
from runners.kit.http.body import STORED_BYTES, STORED_IMAGE_BYTES
from runners.kit.http.chain import Exchanged
from runners.kit.http.observation import observation
from runners.kit.http.transfer import READ_LIMIT_BYTES
from runners.kit.observation import Observation
from runners.kit.runner import RunContext
from runners.kit.variables import fill_request
from runners.kit.weight import HEAVY_CHARS

_DICE: Final = SystemRandom()
"""For helpers such as `$UUID`; it has no state of its own."""
_OF_THE_BODY: Final = frozenset({Source.TEXT_BODY, Source.JSON_BODY})
KEPT_BYTES: Final = max(STORED_BYTES, STORED_IMAGE_BYTES) + 1
"""Of a body that no assertion reads: 256 checks at once of 25 MB each would be the agent's end."""
REASON_TIMEOUT_S: Final = 2.0
"""The longest that a better reason for a name without an address is waited for."""

Alter = Callable[[Exchanged], Awaitable[Exchanged]]


async def look(
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
) -> Coroutine[Any, Any, Exchanged]:
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
