"""A change that is made again and again, for as long as the service runs."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy import Connection

from service.db.engine import Database, DatabaseBusyError

log = structlog.get_logger()

_PAUSE_AFTER_FAULT_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """A change and its interval."""

    name: str
    change: Callable[[Connection], int]
    """Returns how much it did."""
    every_s: float
    most: int
    """Having done so much it goes on at once: there may be more."""

    async def run(self, database: Database) -> None:
        """Make the change until cancelled. A busy database is tried again the next time."""
        while True:
            done = 0
            try:
                done = await database.write(self.change)
            except DatabaseBusyError as problem:
                log.warning("periodic.postponed", name=self.name, reason=str(problem))
            except Exception:
                # This task's own last resort: one poisoned row must not stop the service.
                log.exception("periodic.failed", name=self.name)
                await asyncio.sleep(_PAUSE_AFTER_FAULT_S)
            if done < self.most:
                await asyncio.sleep(self.every_s)
