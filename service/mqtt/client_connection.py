"""One client's connection: who it is, what it asks, what it is sent."""

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Final

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from websockets.frames import CloseCode

from service.db.engine import DatabaseBusyError, DatabaseUnusableError
from service.http.dependencies import Backend
from service.http.rate_limits.rate_limit import RateClass, place_of
from service.mqtt.codec import (
    PING_RESPONSE,
    REFUSED,
    PacketDecoder,
    encode_connack,
    encode_publish,
    encode_suback,
    encode_unsuback,
)
from service.mqtt.model import (
    Connect,
    ConnectCode,
    Disconnect,
    Packet,
    PacketError,
    PingRequest,
    ProtocolLevelError,
    Subscribe,
    Unsubscribe,
)
from service.mqtt.publications import Publication, read_publications
from service.mqtt.subscriber import CloseReason, Subscriber
from service.sessions.model import RunProgressed
from service.sessions.progress import list_progress

log = structlog.get_logger()

SUBPROTOCOL: Final = "mqtt"
CONNECT_S: Final = 10.0
"""How long a client may take to say who it is."""
_GROUP: Final = 20
"""How many messages are in memory at a time for one client."""
_PATIENCE: Final = 1.5
"""How many times its keep-alive a client may be silent (3.1.2.10)."""
_RETRY_S: Final = 1.0
"""How long after a failure the database is asked again."""
_NO_DATABASE: Final = (SQLAlchemyError, DatabaseBusyError, DatabaseUnusableError)
_AT_MOST_ONCE: Final = 0
"""The QoS of all that is published."""

_CLOSE_CODES: Final = {CloseReason.SHUTDOWN: CloseCode.SERVICE_RESTART}
"""Those that are no breach of a rule."""


class _EndedError(Exception):
    """The connection is to be closed, with a code of RFC 6455 and a reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class ClientConnection:
    """The protocol of one client, from CONNECT to the end."""

    def __init__(self, websocket: WebSocket, backend: Backend) -> None:
        self._websocket = websocket
        self._backend = backend
        self._subscriber = Subscriber()
        self._decoder = PacketDecoder()
        self._packets: deque[Packet] = deque()
        """Packets that came and were not looked at yet."""

    async def serve(self) -> None:
        """Serve the client until it leaves, or does what it must not."""
        await self._websocket.accept(SUBPROTOCOL)
        try:
            with self._backend.mqtt.admit(self._subscriber):
                await self._serve()
        except* _EndedError as ends:
            first = next(one for one in ends.exceptions if isinstance(one, _EndedError))
            await self._close(first)
        except* WebSocketDisconnect:
            pass  # nobody is there to be told

    async def _serve(self) -> None:
        """Answer and publish until an exception says that the connection has ended."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._publish(), name="mqtt.publish")
            keep_alive_s = await self._let_in()
            while True:
                await self._answer(await self._next(within_s=keep_alive_s))

    async def _close(self, ended: _EndedError) -> None:
        caller = self._subscriber.caller
        if caller is not None and ended.code != CloseCode.NORMAL_CLOSURE:
            log.info("mqtt.closed", account_id=caller.account_id, reason=ended.reason)
        if self._websocket.application_state is WebSocketState.CONNECTED:
            with suppress(WebSocketDisconnect):
                await self._websocket.close(ended.code, ended.reason)

    async def _let_in(self) -> float | None:
        """Read CONNECT and answer it; how long the client may be silent. None: for any time."""
        packet = await self._next(within_s=CONNECT_S)
        if not isinstance(packet, Connect):
            raise _EndedError(CloseCode.PROTOCOL_ERROR, "the first packet must be CONNECT")
        code = await self._identify(packet)
        await self._websocket.send_bytes(encode_connack(code))
        if code is not ConnectCode.ACCEPTED:
            raise _EndedError(CloseCode.POLICY_VIOLATION, f"refused: {code.name}")
        return _PATIENCE * packet.keep_alive_s or None

    async def _identify(self, connect: Connect) -> ConnectCode:
        """Find out for whom the client speaks; the password is an API key of the account."""
        backend, hub = self._backend, self._backend.mqtt
        if not connect.client_id and not connect.is_clean:
            return ConnectCode.IDENTIFIER_REJECTED
        try:
            caller = await backend.keys.caller((connect.password or b"").decode(errors="replace"))
        except _NO_DATABASE as problem:
            log.warning("mqtt.connect_postponed", reason=str(problem))
            return ConnectCode.SERVER_UNAVAILABLE
        if caller is None:
            is_early = backend.limits.wait_s(RateClass.REFUSED, place_of(self._websocket))
            return ConnectCode.SERVER_UNAVAILABLE if is_early else ConnectCode.BAD_CREDENTIALS
        if connect.username != caller.account_id or connect.has_will:
            return ConnectCode.NOT_AUTHORIZED
        if backend.limits.wait_s(RateClass.GENERAL, caller.id) or not hub.has_room(caller):
            return ConnectCode.SERVER_UNAVAILABLE
        hub.identify(self._subscriber, caller, client_id=connect.client_id)
        return ConnectCode.ACCEPTED

    async def _answer(self, packet: Packet) -> None:
        match packet:
            case Subscribe():
                codes = [self._subscribe(one) for one in packet.filters]
                await self._websocket.send_bytes(encode_suback(packet.packet_id, codes))
            case Unsubscribe():
                for one in packet.filters:
                    self._subscriber.unsubscribe(one)
                await self._websocket.send_bytes(encode_unsuback(packet.packet_id))
            case PingRequest():
                await self._websocket.send_bytes(PING_RESPONSE)
            case Disconnect():
                raise _EndedError(CloseCode.NORMAL_CLOSURE, "")
            case Connect():
                raise _EndedError(CloseCode.PROTOCOL_ERROR, "CONNECT came twice")

    def _subscribe(self, topic_filter: str) -> int:
        """The return code of one filter."""
        subscriber, limits = self._subscriber, self._backend.limits
        is_early = subscriber.caller and limits.wait_s(RateClass.GENERAL, subscriber.caller.id)
        is_granted = not is_early and subscriber.subscribe(topic_filter)
        return _AT_MOST_ONCE if is_granted else REFUSED

    async def _next(self, *, within_s: float | None) -> Packet:
        """The next packet of the client."""
        try:
            async with asyncio.timeout(within_s):
                while not self._packets:
                    self._receive(await self._websocket.receive())
        except TimeoutError as problem:
            reason = f"no packet came within {within_s:g} s"
            raise _EndedError(CloseCode.POLICY_VIOLATION, reason) from problem
        except ProtocolLevelError as problem:
            await self._websocket.send_bytes(encode_connack(ConnectCode.UNACCEPTABLE_LEVEL))
            raise _EndedError(CloseCode.PROTOCOL_ERROR, str(problem)) from problem
        except PacketError as problem:
            raise _EndedError(CloseCode.PROTOCOL_ERROR, str(problem)) from problem
        return self._packets.popleft()

    def _receive(self, message: Message) -> None:
        """Packets need not begin or end where messages do (section 6)."""
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"])
        data = message.get("bytes")
        if data is None:
            raise _EndedError(CloseCode.UNSUPPORTED_DATA, "send binary messages")
        self._packets.extend(self._decoder.feed(data))

    async def _publish(self) -> None:
        """Tell the client what happens, as far as it has subscribed, until it is to go."""
        while True:
            await self._subscriber.wait()
            try:
                await self._publish_news()
            except _NO_DATABASE as problem:
                log.warning("mqtt.publish_postponed", reason=str(problem))
                await asyncio.sleep(_RETRY_S)
                self._subscriber.look_again()

    async def _publish_news(self) -> None:
        subscriber, database = self._subscriber, self._backend.database
        if subscriber.caller is not None:
            account_id, suites = subscriber.caller.account_id, subscriber.take_suites()
            missed = await database.read(lambda c: list_progress(c, account_id, suites))
            for event in missed if suites else ():
                subscriber.tell(event)
        while True:
            if (reason := subscriber.close_reason) is not None:
                raise _EndedError(_CLOSE_CODES.get(reason, CloseCode.POLICY_VIOLATION), reason)
            events = subscriber.next(_GROUP)
            if not events:
                return
            for one in await database.read(partial(self._read, events)):
                if subscriber.wants(one.topic):
                    await self._websocket.send_bytes(encode_publish(one.topic, one.payload))
            subscriber.note_told(events)

    def _read(
        self, events: Iterable[RunProgressed], connection: Connection
    ) -> tuple[Publication, ...]:
        now_ms = self._backend.clock.now_ms(connection)
        return read_publications(connection, events, now_ms=now_ms)
