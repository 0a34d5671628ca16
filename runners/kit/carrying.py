"""Carries bytes between two connections."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

_PIECE_BYTES: Final = 64 * 1024

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Opening = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def join(near: Streams, far: Streams, *, opening: Opening | None = None) -> int:
    """Carry both ways until the far end has said its last; how many bytes it said.

    `opening` passes on how the far end begins. None: as it is.

    Raises:
        OSError: the far end broke off; ssl.SSLError says why, where it spoke TLS.
    """
    out = asyncio.create_task(_outward(near[0], far[1]), name="carry-out")
    try:
        if opening is not None:
            await opening(far[0], near[1])
        return await _carry(far[0], near[1])
    finally:
        out.cancel()
        await asyncio.gather(out, return_exceptions=True)


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
