"""Carries bytes between two connections."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

_PIECE_BYTES: Final = 64 * 1024

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Opening = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def join(near: Streams, far: Streams, *, opening: Opening | None = None) -> int | None:
    """Carry both ways until the far end has said its last; how many bytes it said.

    None: the near end left, and the far one cannot be told but by ending the connection.
    `opening` passes on how the far end begins. None: as it is.

    Raises:
        OSError: the far end broke off; ssl.SSLError says why, where it spoke TLS.
    """
    out = asyncio.create_task(_outward(near[0], far[1]), name="carry-out")
    back = asyncio.create_task(_inward(far[0], near[1], opening), name="carry-back")
    ends = (back,) if far[1].can_write_eof() else (back, out)
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return back.result() if back.done() else None
    finally:
        for one in (out, back):
            one.cancel()
        await asyncio.gather(out, back, return_exceptions=True)


async def _inward(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, opening: Opening | None
) -> int:
    if opening is not None:
        await opening(source, sink)
    return await _carry(source, sink)


async def _outward(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    # Whoever hangs up in the middle ends this way alone; the far end may have more to say.
    with suppress(OSError):
        await _carry(source, sink)


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> int:
    carried = 0
    while piece := await source.read(_PIECE_BYTES):
        carried += len(piece)
        sink.write(piece)
        await sink.drain()
    if sink.can_write_eof():  # TLS has no half-closed connections
        with suppress(OSError):
            sink.write_eof()
    return carried


def reason_of(problem: OSError) -> str:
    """What OpenSSL says of a connection that ended."""
    return (problem.reason if isinstance(problem, ssl.SSLError) else None) or str(problem)
