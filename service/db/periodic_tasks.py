"""What is done again and again, for as long as the service runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy import Connection

from service.db.engine import Database, DatabaseBusyError, DatabaseFullError

log = structlog.get_logger()

_PAUSE_AFTER_FAULT_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """A task and its interval."""

    name: str
    act: Callable[[Database], Awaitable[int]]
    """Returns how much it did."""
    every_s: float
    most: int | None = None
    """Having done so much it goes on at once: there may be more. None: it does all at once."""

    async def run(self, database: Database) -> None:
        """Do it until cancelled. A busy database is tried again the next time."""
        while True:
            done = 0
            try:
                done = await self.act(database)
            except DatabaseBusyError as problem:
                if not isinstance(problem, DatabaseFullError):
                    log.warning("periodic.postponed", name=self.name, reason=str(problem))
            except Exception:
                # This task's own last resort: one poisoned row must not stop the service.
                log.exception("periodic.failed", name=self.name)
                await asyncio.sleep(_PAUSE_AFTER_FAULT_S)
            if self.most is None or done < self.most:
                await asyncio.sleep(self.every_s)


def changing(change: Callable[[Connection], int]) -> Callable[[Database], Awaitable[int]]:
    """A task that is one change of the database."""
    return lambda database: database.write(change)
