"""`/live`: tells an open page that something has changed, as server-sent events."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from service.live.streams import Change
from service.web.page_routing import Pages
from service.web.visit import Visit

_ALIVE_S: Final = 15.0
"""Proxies close a connection on which nothing comes for a minute."""
_LONGEST_S: Final = 300.0
"""The page then opens the next one, and is asked anew who it is."""
_MOST_CHECKS: Final = 100
_ALIVE: Final = b": alive\n\n"
_READY: Final = b"event: ready\ndata: {}\n\n"
"""Without it the page knows that something on the way keeps the stream back."""
_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The stream of all pages."""
    return (pages.show("/live", _stream),)


async def _stream(visit: Visit) -> Response:
    caller = visit.visitor.caller
    wanted = visit.request.query_params.getlist("check")[:_MOST_CHECKS]
    opened = visit.backend.live.open(
        account_id=caller.account_id,
        caller_id=caller.id,
        session=visit.visitor.session,
        check_ids=wanted,
    )
    monotonic = visit.backend.monotonic

    async def tell() -> AsyncIterator[bytes]:
        until_s = monotonic() + _LONGEST_S
        with opened as stream:
            yield _READY
            while not stream.is_over and monotonic() < until_s:
                change = await stream.next(within_s=_ALIVE_S)
                yield _ALIVE if change is None else _event(change)

    return StreamingResponse(tell(), media_type="text/event-stream", headers=_HEADERS)


def _event(change: Change) -> bytes:
    checks = None if change.check_ids is None else sorted(change.check_ids)
    data = msgspec.json.encode({"checks": checks, "quiet": change.is_quiet})
    return b"event: change\ndata: " + data + b"\n\n"
