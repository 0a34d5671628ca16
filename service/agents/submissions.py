"""Stores the results that agents submit; submissions that wait are stored together.

While one change of a location's results is under way, those that arrive wait for the next one. On
PostgreSQL each statement goes over a connection, so that one for many results saves most of them.
A result that cannot be stored is rejected, so that it holds up no others of its agent.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy import Connection

from service.clock import Clock
from service.db.engine import Database, DatabaseBusyError, Line
from service.results.ingest import Arrived, Verdict, take_results

log = structlog.get_logger()

_MOST_TOGETHER: Final = 64
"""How many results are stored on the event loop; together they take 2 to 5 ms."""

_MOST_SUSPECTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A submission that waits."""

    arrived: Sequence[Arrived]
    verdicts: asyncio.Future[Sequence[Verdict]]


class Submissions:
    """Takes submissions, one change of each location's results after the other."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._waiting: dict[str, list[_Waiting]] = {}
        """By location, for those of which a change is under way."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._suspects: dict[tuple[int, int], None] = {}
        """Results that could not be stored, by run and fence: no others go with them again."""

    async def take(self, location_id: str, arrived: Sequence[Arrived]) -> Sequence[Verdict]:
        """Store results of a location once; one verdict for each, in order.

        Raises:
            DatabaseBusyError: they are not stored, or nobody knows; to be sent again.
        """
        try:
            return await self._take(location_id, arrived)
        except DatabaseBusyError:
            raise
        except Exception:
            if len(arrived) == 1:
                self._suspect(arrived[0])
                raise
        # One of them is at fault.
        return await self._take_apart(location_id, arrived)

    async def _take(self, location_id: str, arrived: Sequence[Arrived]) -> Sequence[Verdict]:
        if len(arrived) > _MOST_TOGETHER or self._has_suspect(arrived):
            return await self._store(location_id, arrived)
        loop = asyncio.get_running_loop()
        mine = _Waiting(arrived, loop.create_future())
        if (line := self._waiting.get(location_id)) is not None:
            line.append(mine)
        else:
            self._waiting[location_id] = [mine]
            task = loop.create_task(self._store_all(location_id), name=f"results:{location_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await mine.verdicts

    def _suspect(self, one: Arrived) -> None:
        self._suspects[one.run_id, one.result.fence] = None
        if len(self._suspects) > _MOST_SUSPECTS:
            del self._suspects[next(iter(self._suspects))]

    def _has_suspect(self, arrived: Sequence[Arrived]) -> bool:
        return bool(self._suspects) and any(
            (one.run_id, one.result.fence) in self._suspects for one in arrived
        )

    async def _take_apart(self, location_id: str, arrived: Sequence[Arrived]) -> list[Verdict]:
        """Store the results that can be stored; where none can, none of them is at fault."""
        found = await self._store_in_halves(location_id, arrived)
        problems = [one for one in found if isinstance(one, Exception)]
        if len(problems) == len(found):
            raise problems[0]
        for one, what in zip(arrived, found, strict=True):
            if isinstance(what, Exception):
                self._suspect(one)
                log.error("results.unstorable", job_id=one.result.lease.job_id, exc_info=what)
        return [Verdict.UNSTORABLE if isinstance(one, Exception) else one for one in found]

    async def _store_in_halves(
        self, location_id: str, arrived: Sequence[Arrived]
    ) -> Sequence[Verdict | Exception]:
        try:
            return await self._store(location_id, arrived)
        except DatabaseBusyError:
            raise
        except Exception as problem:  # noqa: BLE001 - it is logged once it is known whose it is
            if len(arrived) == 1:
                return [problem]
        middle = len(arrived) // 2
        first = await self._store_in_halves(location_id, arrived[:middle])
        return [*first, *await self._store_in_halves(location_id, arrived[middle:])]

    async def _store_all(self, location_id: str) -> None:
        try:
            while waiting := self._waiting[location_id]:
                self._waiting[location_id] = []
                groups = [self._store_group(location_id, one) for one in _groups(waiting)]
                await asyncio.gather(*groups)
        finally:
            for left in self._waiting.pop(location_id):
                left.verdicts.cancel()

    async def _store_group(self, location_id: str, group: Sequence[_Waiting]) -> None:
        try:
            verdicts = iter(
                await self._store(location_id, [one for each in group for one in each.arrived])
            )
        except Exception as problem:  # noqa: BLE001 - the submissions' own tasks raise it
            if len(group) > 1 and not isinstance(problem, DatabaseBusyError):
                # One of them is at fault, and the others must not suffer.
                await asyncio.gather(*(self._store_group(location_id, [one]) for one in group))
                return
            for each in group:
                if not each.verdicts.done():
                    each.verdicts.set_exception(problem)
            return
        for each in group:
            own = [next(verdicts) for _ in each.arrived]
            if not each.verdicts.done():
                each.verdicts.set_result(own)

    async def _store(self, location_id: str, arrived: Sequence[Arrived]) -> Sequence[Verdict]:
        def change(connection: Connection) -> Sequence[Verdict]:
            now_ms = self._clock.now_ms(connection)
            return take_results(connection, arrived, location_id=location_id, now_ms=now_ms)

        is_brief = len(arrived) <= _MOST_TOGETHER and not self._has_suspect(arrived)
        line = Line.RESULTS if is_brief else None
        return await self._database.write(change, brief=line)


def _groups(waiting: Sequence[_Waiting]) -> Iterator[Sequence[_Waiting]]:
    """Neighbours that are brief together."""
    group: list[_Waiting] = []
    count = 0
    for one in waiting:
        if count + len(one.arrived) > _MOST_TOGETHER:
            yield group
            group, count = [], 0
        group.append(one)
        count += len(one.arrived)
    yield group
