"""Notices between the processes that share a PostgreSQL database, by LISTEN and NOTIFY.

One connection does both. A NOTIFY inside the changes' own transactions would make every commit of
every process wait for the one before it; here those of 10 ms go together, after their commits.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec
import psycopg
import structlog

from service.db.engine import NoticesLost
from service.db.pending_changes import Listeners
from service.notices import SharedNotice

log = structlog.get_logger()

_GATHER_S: Final = 0.01
_POLL_S: Final = 5.0
"""How often it has listeners look for themselves, whatever came."""
_PAUSE_S: Final = 1.0
_MOST_BYTES: Final = 7_900
"""PostgreSQL refuses longer messages."""
_SEND: Final = "SELECT pg_notify('picket', message) FROM unnest(%s::text[]) AS message"


class NoticeExchange:
    """Tells other processes what was announced here, and listeners here what was there."""

    def __init__(self, address: str, listeners: Listeners) -> None:
        self._address = address
        self._listeners = listeners
        self._outbox: dict[bytes, None] = {}
        """Equal notices go once."""
        self._woken = asyncio.Event()
        self._own_pid = 0
        """The server process of this connection, whose notices were told here already."""
        self._closed = False

    def pass_on(self, notices: Iterable[object]) -> None:
        """Tell the other processes those that concern them; the commit has been made."""
        for notice in notices:
            if isinstance(notice, SharedNotice):
                self._outbox[msgspec.json.encode((type(notice).__name__, notice))] = None
                self._woken.set()

    def close(self) -> None:
        """Send what waits, and end."""
        self._closed = True
        self._woken.set()

    async def run(self) -> None:
        """Exchange until closed; a connection that breaks is made anew."""
        while not self._closed:
            try:
                await self._exchange()
            except psycopg.Error as problem:
                log.warning("database.notices_interrupted", reason=str(problem).strip())
                with suppress(TimeoutError):
                    async with asyncio.timeout(_PAUSE_S):
                        while not self._closed:
                            self._woken.clear()
                            await self._woken.wait()

    async def _exchange(self) -> None:
        connection = await psycopg.AsyncConnection.connect(
            self._address, autocommit=True, connect_timeout=5, application_name="picket-notices"
        )
        async with connection:
            self._own_pid = connection.info.backend_pid
            connection.add_notify_handler(self._receive)
            await connection.execute("LISTEN picket")
            loop = asyncio.get_running_loop()
            poll_at = 0.0
            while not self._closed:
                if poll_at <= loop.time():
                    poll_at = loop.time() + _POLL_S
                    self._listeners.tell(NoticesLost())
                await self._wait(connection.fileno(), until=poll_at)
                await self._send(connection)

    async def _wait(self, socket: int, *, until: float) -> None:
        """Return when there is something to receive, or what gathered to be sent."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(socket, self._note_readable, readable)
        try:
            async with asyncio.timeout_at(until):
                await self._woken.wait()
        except TimeoutError:
            return
        finally:
            loop.remove_reader(socket)
        if not readable.is_set() and not self._closed:
            await asyncio.sleep(_GATHER_S)

    def _note_readable(self, readable: asyncio.Event) -> None:
        readable.set()
        self._woken.set()

    async def _send(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Send what waits, and at least ask for something: what came in is read along with it."""
        self._woken.clear()
        outbox, self._outbox = self._outbox, {}
        messages = [one.decode() for one in outbox if len(one) <= _MOST_BYTES]
        await connection.execute(_SEND, (messages,))

    def _receive(self, notify: psycopg.Notify) -> None:
        if notify.pid == self._own_pid:
            return
        name, fields = msgspec.json.decode(notify.payload, type=tuple[str, msgspec.Raw])
        if kind := self._listeners.kinds().get(name):
            self._listeners.tell(msgspec.json.decode(fields, type=kind))
