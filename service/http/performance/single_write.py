"""Writes an answer's head and body to the socket at once.

uvicorn writes them one after the other: two system calls, two packets, two wake-ups of the agent.
It earns its place by `sqlite_b1` of `make bench-queue`: without it a claim and its result cost 1.13
times the CPU time (six alternating pairs on a quiet machine with uvicorn 0.54 and uvloop 0.23).
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class _JoiningTransport:
    """A transport that writes what it got in one turn of the event loop in one piece."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Write what is left, then close."""
        self._flush()
        self._transport.close()

    def release(self) -> asyncio.Transport:
        """The transport itself, once all that was written before is on its way."""
        self._flush()
        return self._transport

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self.is_closing():
            self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        """All else is the transport's own."""
        return getattr(self._transport, name)


class SingleWriteProtocol(HttpToolsProtocol):
    """uvicorn's protocol for HTTP/1.1, on such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Called by the event loop."""
        self._joining = _JoiningTransport(transport)
        super().connection_made(self._joining)  # type: ignore[arg-type]

    def handle_websocket_upgrade(self) -> None:
        """Messages are not held back: who sends many would not learn that nobody reads them."""
        self.transport = self._joining.release()
        super().handle_websocket_upgrade()
