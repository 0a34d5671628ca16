"""Streams that tell open pages, at most once a second, that something of their account changed.

Notices come with each group of results that any process stores. They are only remembered while a
page is open; whose they are is then asked once a second for all of them.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import structlog
from sqlalchemy import Connection

from service.audit.model import AccountsChanged
from service.checks import actions as checks
from service.clock import Clock
from service.db.engine import Database, NoticesLost
from service.http.errors import TooManyError
from service.results.model import RunsNotPassed, RunsPassed
from service.sign_in import actions as sign_in

log = structlog.get_logger()

ASK_S: Final = 3.0
"""How often it is asked whether those who read are still signed in."""
EVERY_S: Final = 1.0
"""How long after an event the next one comes at the earliest."""
MOST_OF_KEY: Final = 24
"""How many streams may be open with one API key; a browser has six with a service."""
MOST: Final = 2_000
_MOST_NAMED: Final = 200
"""An event about more checks names none."""
_MOST_KNOWN: Final = 200_000
_MOST_PENDING: Final = 20_000
"""Results of further checks within a second are told with later ones."""


@dataclass(frozen=True, slots=True)
class Change:
    """What has changed since the last event."""

    check_ids: frozenset[str] | None = frozenset()
    """None: any check may have."""
    is_quiet: bool = True
    """Whether there is nothing but runs that passed."""

    def merge(self, other: "Change") -> "Change":
        """Both together."""
        known = None
        if self.check_ids is not None and other.check_ids is not None:
            known = self.check_ids | other.check_ids
            known = known if len(known) <= _MOST_NAMED else None
        return Change(known, self.is_quiet and other.is_quiet)


ANYTHING: Final = Change(None, is_quiet=False)


@dataclass(slots=True, eq=False)
class LiveStream:
    """What one open page is told."""

    account_id: str
    caller_id: str
    session: bytes
    """The keyed hash of the session that opened it."""
    check_ids: frozenset[str]
    """The checks that it is about. Empty: all of the account."""
    is_over: bool = False
    _change: Change | None = None
    """None: there is nothing to tell."""
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, change: Change) -> None:
        """Something of the account has changed."""
        if self.is_over:
            return
        if self.check_ids and change.check_ids is not None:
            if self.check_ids.isdisjoint(change.check_ids):
                return
            change = Change(change.check_ids & self.check_ids, change.is_quiet)
        self._change = change if self._change is None else self._change.merge(change)
        self._told.set()

    def end(self) -> None:
        """There will be nothing more."""
        self.is_over, self._change = True, None
        self._told.set()

    async def next(self, *, within_s: float) -> Change | None:
        """The next change. None: there was none in time, or it is over."""
        try:
            async with asyncio.timeout(within_s):
                await self._told.wait()
        except TimeoutError:
            return None
        if not self.is_over:
            self._told.clear()
        change, self._change = self._change, None
        return change


class LiveStreams:
    """All open streams; the event loop's alone."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._streams: dict[LiveStream, None] = {}
        self._pending: dict[str, bool] = {}
        """Checks with new results, and whether all of these passed."""
        self._changed: set[str] = set()
        """Accounts in which anything may have changed."""
        self._noted = asyncio.Event()
        self._owners: dict[str, str] = {}
        """Whose checks are, as far as it was asked."""
        self._is_closed = False
        database.listen(RunsPassed, lambda notice: self._note_runs(notice.ids, is_quiet=True))
        database.listen(RunsNotPassed, lambda notice: self._note_runs(notice.ids, is_quiet=False))
        database.listen(AccountsChanged, self._note_accounts)
        database.listen(NoticesLost, self._note_lost)

    def open(
        self, *, account_id: str, caller_id: str, session: bytes, check_ids: Sequence[str]
    ) -> AbstractContextManager[LiveStream]:
        """A stream for as long as the block lasts; refused before the block begins.

        Raises:
            TooManyError: the key has too many streams, or all have.
        """
        own = sum(one.caller_id == caller_id for one in self._streams)
        if own >= MOST_OF_KEY or len(self._streams) >= MOST:
            raise TooManyError("Too many pages are open at a time; this one asks now and then.")
        return self._hold(
            LiveStream(
                account_id, caller_id, session, frozenset(check_ids), is_over=self._is_closed
            )
        )

    @contextmanager
    def _hold(self, stream: LiveStream) -> Iterator[LiveStream]:
        self._streams[stream] = None
        try:
            yield stream
        finally:
            del self._streams[stream]

    async def run(self) -> None:
        """Pass changes on, at once and then no sooner than a second later, to the signed in."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._noted.wait(), ASK_S)
            self._noted.clear()
            try:
                await self._end_signed_out()
                await self._pass_on()
            except Exception:  # an ornament of pages must not end the service
                log.exception("live.failed")
                for stream in self._streams:
                    stream.tell(ANYTHING)
            await asyncio.sleep(EVERY_S)

    def close(self) -> None:
        """End all streams: the service is shutting down."""
        self._is_closed = True
        for stream in self._streams:
            stream.end()

    def _note_runs(self, check_ids: Iterable[str], *, is_quiet: bool) -> None:
        if not self._streams:
            return
        for check_id in check_ids:
            if len(self._pending) < _MOST_PENDING or check_id in self._pending:
                self._pending[check_id] = is_quiet and self._pending.get(check_id, True)
        self._noted.set()

    def _note_accounts(self, notice: AccountsChanged) -> None:
        if self._streams:
            self._changed.update(notice.ids)
            self._noted.set()

    def _note_lost(self, notice: NoticesLost) -> None:
        if notice.is_certain:
            self._changed.update(stream.account_id for stream in self._streams)
            self._noted.set()

    async def _end_signed_out(self) -> None:
        """Ask for all at once, whatever ended a session, and in whichever process."""
        sessions = {stream.session for stream in self._streams}
        if not sessions:
            return

        def query(connection: Connection) -> frozenset[bytes]:
            now_ms = self._clock.now_ms(connection)
            return sign_in.list_ended(connection, sessions, now_ms=now_ms)

        ended = await self._database.read(query)
        for stream in self._streams:
            if stream.session in ended:
                stream.end()

    async def _pass_on(self) -> None:
        pending, self._pending = self._pending, {}
        changed, self._changed = self._changed, set()
        await self._learn_owners([one for one in pending if one not in self._owners])
        by_account = dict.fromkeys(changed, ANYTHING)
        for check_id, is_quiet in pending.items():
            account_id = self._owners.get(check_id)
            if account_id is not None:
                change = Change(frozenset({check_id}), is_quiet=is_quiet)
                by_account[account_id] = by_account.get(account_id, Change()).merge(change)
        for stream in self._streams:
            news = by_account.get(stream.account_id)
            if news is not None and stream.check_ids and stream.account_id not in changed:
                news = self._news_of(stream, pending)
            if news is not None:
                stream.tell(news)

    def _news_of(self, stream: LiveStream, pending: Mapping[str, bool]) -> Change | None:
        """What a stream about a few checks is told, however many others have results."""
        own = {
            check_id
            for check_id in stream.check_ids & pending.keys()
            if self._owners.get(check_id) == stream.account_id
        }
        is_quiet = all(pending[check_id] for check_id in own)
        return Change(frozenset(own), is_quiet=is_quiet) if own else None

    async def _learn_owners(self, check_ids: Sequence[str]) -> None:
        if not check_ids:
            return

        def query(connection: Connection) -> Mapping[str, str]:
            return checks.find_owners(connection, check_ids)

        found = await self._database.read(query)
        if len(self._owners) + len(found) > _MOST_KNOWN:
            self._owners.clear()
        self._owners |= found
