"""Notices between the processes that share a PostgreSQL database, by LISTEN and NOTIFY.

One connection does both. A NOTIFY inside the changes' own transactions would make every commit of
every process wait for the one before it; here those of 10 ms go together, after their commits, and
those that name things by their ids four times a second, each id once.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec
import psycopg
import structlog
from psycopg.conninfo import make_conninfo

from service.db.engine import NoticesLost
from service.db.pending_changes import Listeners
from service.notices import GatheredNotice, SharedNotice

log = structlog.get_logger()

_GATHER_S: Final = 0.01
_GATHER_IDS_S: Final = 0.25
_POLL_S: Final = 5.0
"""How often it has listeners look for themselves, whatever came."""
_PAUSE_S: Final = 1.0
_MOST_BYTES: Final = 7_900
"""PostgreSQL refuses longer messages."""
_MOST_WAITING: Final = 10_000
"""Messages that wait for a connection; instead of more, all are told to look for themselves."""
_DEAD_AFTER: Final = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Nobody would notice for a quarter of an hour that the server's machine is gone."""
_SEND: Final = "SELECT pg_notify('picket', message) FROM unnest(%s::text[]) AS message"


class NoticeExchange:
    """Tells other processes what was announced here, and listeners here what was there."""

    def __init__(self, address: str, listeners: Listeners) -> None:
        self._address = address
        self._listeners = listeners
        self._outbox: dict[bytes, None] = {}
        """Equal notices go once."""
        self._ids: dict[type[GatheredNotice], dict[str, None]] = {}
        """What is gathered until `_gathered_at`."""
        self._gathered_at = 0.0
        self._woken = asyncio.Event()
        self._own_pid = 0
        """The server process of this connection, whose notices were told here already."""
        self._closed = False

    def pass_on(self, notices: Iterable[object]) -> None:
        """Tell the other processes those that concern them; the commit has been made."""
        for notice in notices:
            if isinstance(notice, GatheredNotice):
                self._gather(notice)
            elif isinstance(notice, SharedNotice):
                self._put(notice)

    def close(self) -> None:
        """Send what waits, and end."""
        self._put_gathered()
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
            make_conninfo(self._address, **_DEAD_AFTER),
            autocommit=True,
            connect_timeout=5,
            application_name="picket-notices",
        )
        async with connection:
            self._own_pid = connection.info.backend_pid
            connection.add_notify_handler(self._receive)
            await connection.execute("LISTEN picket")
            loop = asyncio.get_running_loop()
            self._listeners.tell(NoticesLost(is_certain=True))
            poll_at = loop.time() + _POLL_S
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
        try:
            await connection.execute(_SEND, ([one.decode() for one in outbox],))
        except psycopg.Error:
            self._outbox = outbox | self._outbox  # for the next connection
            raise

    def _receive(self, notify: psycopg.Notify) -> None:
        if notify.pid == self._own_pid:
            return
        try:
            name, fields = msgspec.json.decode(notify.payload, type=tuple[str, msgspec.Raw])
            kind = self._listeners.kinds().get(name)
            notice = msgspec.json.decode(fields, type=kind) if kind else None
        except msgspec.MsgspecError as problem:
            # Of another release, or of somebody else who may use this database.
            log.warning("database.notice_unreadable", reason=str(problem))
            notice = NoticesLost(is_certain=True)
        self._listeners.tell(notice)

    def _gather(self, notice: GatheredNotice) -> None:
        if not self._ids:
            asyncio.get_running_loop().call_at(self._gathered_at, self._put_gathered)
        self._ids.setdefault(type(notice), {}).update(dict.fromkeys(notice.ids))

    def _put_gathered(self) -> None:
        ids, self._ids = self._ids, {}
        self._gathered_at = asyncio.get_running_loop().time() + _GATHER_IDS_S
        for kind, each in ids.items():
            self._put(kind(tuple(each)))

    def _put(self, notice: SharedNotice) -> None:
        """Have it sent soon, in as many messages as it takes."""
        for message in _messages(notice):
            if len(self._outbox) >= _MOST_WAITING:
                self._outbox = {_LOOK_YOURSELF: None}
            self._outbox[message] = None
        self._woken.set()


def _messages(notice: SharedNotice) -> Iterator[bytes]:
    message = _encode(notice)
    if len(message) <= _MOST_BYTES:
        yield message
    elif isinstance(notice, GatheredNotice) and len(notice.ids) > 1:
        half = len(notice.ids) // 2
        for ids in (notice.ids[:half], notice.ids[half:]):
            yield from _messages(type(notice)(ids))
    else:
        log.error(
            "database.notice_too_long",
            notice=type(notice).__name__,
            size_bytes=len(message),
            limit_bytes=_MOST_BYTES,
        )
        yield _LOOK_YOURSELF


def _encode(notice: object) -> bytes:
    return msgspec.json.encode((type(notice).__name__, notice))


_LOOK_YOURSELF: Final = _encode(NoticesLost(is_certain=True))
