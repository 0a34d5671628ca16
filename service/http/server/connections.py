"""Connections with limits, so that nobody without a key can fill the memory or the file table.

uvicorn limits neither the head of a request nor a connection that sends none, and its
`limit_concurrency` refuses everybody as long as idle connections fill it. Here a new connection
takes the place of the one that has waited longest.
"""

import asyncio
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.http.error_responses import error_response
from service.http.errors import ApiError, LargeHeadError, SlowHeadError
from service.http.performance.single_write import SingleWriteProtocol

log = structlog.get_logger()

_LOG_EVERY_S: Final = 60.0
_PER_FIELD_BYTES: Final = len(": \r\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What a connection may take."""

    head_bytes: int = 64 * 1024
    """The longest head of a request: its first line and its header fields."""
    head_fields: int = 256
    """The most header fields of a request; short ones take thirty times their bytes of memory."""
    head_s: float = 30
    """How long a head may take, and a new connection until its first request is there."""
    unfinished_heads: int = 256
    """How many connections may have sent a part of a head at a time."""
    unread_s: float = 60
    """How long a client may read too little for an answer to go on."""
    connections: int = 10_000
    """How many connections are open at a time."""


class Connections:
    """The open connections of a server that wait for a request, the longest waiting first."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.idle: dict[LimitedProtocol, None] = {}
        """Connections on which no request is under way."""
        self.unfinished: dict[LimitedProtocol, None] = {}
        """Connections that have sent a part of a head."""
        self._silent_until_s = 0.0

    def make_room(self, *, at_s: float) -> None:
        """There are too many connections: close the one that has been idle longest."""
        next(iter(self.idle)).give_way()
        if at_s >= self._silent_until_s:
            self._silent_until_s = at_s + _LOG_EVERY_S
            log.warning("http.connections_full", limit=self.limits.connections)


class LimitedProtocol(SingleWriteProtocol):
    """uvicorn's protocol for HTTP/1.1 with limits."""

    def __init__(self, *, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._all = connections
        self._limits = connections.limits
        self.headers = []
        self._pending_bytes = 0
        """Bytes that came since the parser last completed a head, a message or a part of a body."""
        self._in_head = False
        """Whether a head has begun and not ended."""
        self._is_busy = False
        """Whether a request is being answered."""
        self._head_timer: asyncio.TimerHandle | None = None
        """Ends the wait for a head. None: no head is awaited, or uvicorn's own timer does."""
        self._unread_timer: asyncio.TimerHandle | None = None
        """Ends the wait for the client to read. None: it reads."""
        self._refusal: ApiError | None = None
        """Why the request is refused. None: the parser did not understand it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Called by the event loop."""
        super().connection_made(transport)
        self._all.idle[self] = None
        self._await_head()
        if len(self.connections) > self._limits.connections:
            self._all.make_room(at_s=self.loop.time())

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        super().connection_lost(exc)
        self._forget()
        self._stop_unread_timer()

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._pending_bytes += len(data)
        super().data_received(data)
        if self._pending_bytes > self._limits.head_bytes or self._has_too_many_fields():
            self._refuse(self._too_large())
        elif self._in_head:
            self._await_rest_of_head()
        elif self._head_timer is None and not self._is_busy:
            self._await_head()  # uvicorn stopped its timer for what may be no request at all

    def on_message_begin(self) -> None:
        """Called by the parser, as all below that begin with `on_`."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is there; anything that is raised here gets to `send_400_response`."""
        text_bytes = len(self.url) + sum(map(len, chain.from_iterable(self.headers)))
        size_bytes = text_bytes + _PER_FIELD_BYTES * len(self.headers)
        if size_bytes > self._limits.head_bytes or self._has_too_many_fields():
            self._refusal = self._too_large()
            raise self._refusal
        self._in_head = False
        self._is_busy = True
        self._pending_bytes = 0
        self._forget()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body, which is the application's to limit."""
        self._pending_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there as a whole."""
        self._pending_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The request is answered."""
        super().on_response_complete()
        self._is_busy = not self.cycle.response_complete  # another one may have come meanwhile
        if self.timeout_keep_alive_task is not None:
            self._all.idle[self] = None

    def pause_writing(self) -> None:
        """Called by the event loop: the client reads more slowly than we write."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(self._limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Called by the event loop."""
        super().resume_writing()
        self._stop_unread_timer()

    def send_400_response(self, msg: str) -> None:
        """Called where the parser failed, which also is how it passes on a refusal of ours."""
        self._refuse(self._refusal or ApiError(f"{msg} Send HTTP/1.1."))

    def give_way(self) -> None:
        """Others need the place."""
        self._forget()
        self.transport.close()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_s, self._end_wait)

    def _await_rest_of_head(self) -> None:
        if self.transport.is_closing():
            return
        if self._head_timer is None:
            self._await_head()
        unfinished = self._all.unfinished
        unfinished[self] = None
        if len(unfinished) > self._limits.unfinished_heads:
            next(iter(unfinished)).give_way()

    def _end_wait(self) -> None:
        self._head_timer = None
        if self._in_head:
            self._refuse(
                SlowHeadError(f"The request did not arrive within {self._limits.head_s:g} s.")
            )
        else:
            self.give_way()

    def _has_too_many_fields(self) -> bool:
        """Whether the head has, as far as it is there, together with the fields after a body."""
        return len(self.headers) > self._limits.head_fields

    def _too_large(self) -> ApiError:
        limits = self._limits
        return LargeHeadError(
            f"The request's head is too large; use at most {limits.head_bytes} bytes and"
            f" {limits.head_fields} header fields.",
            attributes={"limitBytes": limits.head_bytes},
        )

    def _refuse(self, refusal: ApiError) -> None:
        """Answer before the application sees the request, and close."""
        if not self._is_busy:
            answer = error_response(refusal)
            fields = [
                *self.server_state.default_headers,
                *answer.raw_headers,
                (b"connection", b"close"),
            ]
            lines = [name + b": " + value + b"\r\n" for name, value in fields]
            head = STATUS_LINE[answer.status_code] + b"".join(lines) + b"\r\n"
            self.transport.write(head + bytes(answer.body))
        self.give_way()

    def _forget(self) -> None:
        """It does not wait for a head any longer."""
        self._all.idle.pop(self, None)
        self._all.unfinished.pop(self, None)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
