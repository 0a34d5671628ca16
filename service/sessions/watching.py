"""Looking at a session, and waiting for its end."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from sqlalchemy import Connection

from service.http.dependencies import Backend
from service.http.errors import NotFoundError, StillRunningError
from service.results import actions as results
from service.results.model import StoredResult
from service.sessions import actions
from service.sessions.model import Session, TestState
from service.sessions.rules import deadline_ms, left_s


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session at one moment."""

    session: Session
    results: tuple[StoredResult, ...]
    now_ms: int

    @property
    def is_over(self) -> bool:
        """Whether it has reached its final state."""
        return self.session.stopped_ms is not None


@dataclass(frozen=True, slots=True)
class TestWatch:
    """One test session of an account."""

    backend: Backend
    account_id: str
    test_id: str

    async def read(self) -> TestState:
        """The session as it is; checks past their deadlines are ended first.

        Raises:
            NotFoundError: the account has no such test session.
        """
        seen = await self.backend.database.read(self.load)
        is_overdue = not seen.is_over and not left_s(seen)
        return await self.backend.database.write(self._query_ended) if is_overdue else seen

    async def await_end(self, *, max_wait_s: float) -> TestState:
        """The session at its end.

        Raises:
            NotFoundError: the account has no such test session.
            StillRunningError: it has not ended in time.
        """
        # Whoever ends the session between the first look and the wait must find us here.
        with self.backend.waiters.register(self.test_id) as ended:
            seen = await self.read()
            if not seen.is_over:
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), min(max_wait_s, left_s(seen)))
                seen = await self.read()
        if not seen.is_over:
            raise _still_running(max_wait_s)
        return seen

    def load(self, connection: Connection) -> TestState:
        """The session as it is, in the caller's transaction.

        Raises:
            NotFoundError: the account has no such test session.
        """
        test = actions.find_test(connection, self.account_id, self.test_id)
        members = actions.list_members(connection, test)
        found = results.of_sessions(connection, [one.id for one in members])
        listed = tuple(chain.from_iterable(found.get(one.id, ()) for one in members))
        return TestState(test, members, listed, self.backend.clock.now_ms(connection))

    def _query_ended(self, connection: Connection) -> TestState:
        test = actions.find_test(connection, self.account_id, self.test_id)
        now_ms = self.backend.clock.now_ms(connection)
        actions.end_overdue_members(connection, test, now_ms=now_ms)
        return self.load(connection)


def _still_running(max_wait_s: float) -> StillRunningError:
    return StillRunningError(
        f"The session has not ended within {max_wait_s:g} s; try again.",
        headers={"retry-after": "1"},
    )


@dataclass(frozen=True, slots=True)
class Watch:
    """One session of an account."""

    backend: Backend
    account_id: str
    session_id: str

    async def read(self) -> SessionState:
        """The session as it is; one past its deadline is ended first.

        Raises:
            NotFoundError: the account has no such session.
        """
        seen = await self.backend.database.read(self._query)
        overdue = not seen.is_over and seen.now_ms >= deadline_ms(seen.session)
        return await self.backend.database.write(self._query_ended) if overdue else seen

    async def wait(self, *, max_wait_s: float) -> SessionState:
        """The session at its end, or as it is once so much time has passed.

        Raises:
            NotFoundError: the account has no such session.
        """
        # Whoever ends the session between the first look and the wait must find us here.
        with self.backend.waiters.register(self.session_id) as ended:
            seen = await self.read()
            if seen.is_over:
                return seen
            left_s = max(0, deadline_ms(seen.session) - seen.now_ms) / 1000
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), min(max_wait_s, left_s))
            return await self.read()

    async def await_end(self, *, max_wait_s: float) -> SessionState:
        """The session at its end.

        Raises:
            NotFoundError: the account has no such session.
            StillRunningError: it has not ended in time.
        """
        seen = await self.wait(max_wait_s=max_wait_s)
        if not seen.is_over:
            raise _still_running(max_wait_s)
        return seen

    def _query(self, connection: Connection) -> SessionState:
        now_ms = self.backend.clock.now_ms(connection)
        session = actions.find(connection, self.account_id, self.session_id)
        if session.is_test:
            raise NotFoundError("This is a session of a test.")
        return SessionState(session, tuple(results.of_session(connection, session.id)), now_ms)

    def _query_ended(self, connection: Connection) -> SessionState:
        session = actions.find(connection, self.account_id, self.session_id)
        now_ms = self.backend.clock.now_ms(connection)
        actions.end_overdue(connection, session, now_ms=now_ms)
        return self._query(connection)
