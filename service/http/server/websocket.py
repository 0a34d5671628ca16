"""WebSocket connections with limits, on uvicorn's protocol over the library websockets.

uvicorn answers every ping, keeps every fragment and closes a connection without regard to what it
has not sent; here a client that does not read, or sends pieces without end, is cut off.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import structlog
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

log = structlog.get_logger()

MOST_BYTES: Final = 64 * 1024
"""The longest message that is taken."""
PING_S: Final = 30.0
"""How often a client is asked whether it is there, and how long it may take to answer.

Proxies close connections on which nothing was sent for a minute.
"""
UNREAD_S: Final = 60.0
"""How long a client may read too little for the next message to be sent."""
_MOST_FRAGMENTS: Final = 64


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's protocol for WebSocket with limits."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._unread_timer: asyncio.TimerHandle | None = None
        """Ends the wait for the client to read. None: it reads."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        super().connection_lost(exc)
        self._stop_unread_timer()

    def pause_writing(self) -> None:
        """Called by the event loop: the client reads more slowly than we write."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(UNREAD_S, self._abort)

    def resume_writing(self) -> None:
        """Called by the event loop."""
        super().resume_writing()
        self._stop_unread_timer()

    def handle_ping(self) -> None:
        """Called for each ping; answers to a client that does not read would pile up."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def handle_cont(self, event: Frame) -> None:
        """Called for each further fragment of a message; empty ones count in no length."""
        if len(self.frames) < _MOST_FRAGMENTS:
            super().handle_cont(event)
            return
        self.conn.fail(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
        self.handle_parser_exception()

    def _abort(self) -> None:
        log.warning("websocket.unread", path=self.scope["path"], limit_s=UNREAD_S)
        self.transport.abort()

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None


OPTIONS: Final[Mapping[str, Any]] = {
    "ws": LimitedWebSocket,
    "ws_max_size": MOST_BYTES,
    "ws_ping_interval": PING_S,
    "ws_ping_timeout": PING_S,
    "ws_per_message_deflate": False,
}
"""What uvicorn is told of WebSocket."""
