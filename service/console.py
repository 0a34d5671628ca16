"""What somebody at the service's own machine does to its database, beside the running service."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection

from service.accounts.actions import hold_pepper
from service.accounts.keys import Pepper
from service.accounts.model import WrongPepperError
from service.audit import actions as audit
from service.audit.model import Entry
from service.clock import ProcessClock
from service.db.migrate import HEAD, revision_of
from service.db.sqlite import open_sqlite
from service.errors import SettingsError
from service.pepper import kept_pepper, wrong_pepper
from service.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Console:
    """One transaction."""

    connection: Connection
    pepper: Pepper
    now_ms: int

    def note(self, operation: str, *, account_id: str, resource_id: str) -> None:
        """Tell the audit log; `operation` is the command."""
        resource, *_ = operation.split()
        entry = Entry(
            account_id=account_id,
            key_id=None,
            operation=operation,
            resource=resource,
            resource_id=resource_id,
            fields=(),
            address=None,
            at_ms=self.now_ms,
        )
        audit.note(self.connection, entry)


def at_console(settings: Settings, act: Callable[[Console], T]) -> T:
    """Do something in a transaction of its own; a running service goes on meanwhile.

    Raises:
        SettingsError: there is no database of this version where the settings say.
        DatabaseBusyError: the service holds the database for long.
    """
    file = settings.database_file
    if not file.is_file():
        mend = "start the service once, and set SERVICE_DATA_DIR and DATABASE_URL as it has them"
        raise SettingsError((f"there is no database at {file}; {mend}",))
    return asyncio.run(_acted(settings, act))


async def _acted(settings: Settings, act: Callable[[Console], T]) -> T:
    database = open_sqlite(settings.database_file)
    try:
        return await database.write(lambda connection: act(_opened(connection, settings)))
    except WrongPepperError as problem:
        raise wrong_pepper(settings) from problem
    finally:
        await database.close()


def _opened(connection: Connection, settings: Settings) -> Console:
    if revision_of(connection) != HEAD:
        sentence = "the database is another version's; start this version's service with it once"
        raise SettingsError((sentence,))
    pepper = kept_pepper(settings)
    hold_pepper(connection, pepper)
    return Console(connection, pepper, ProcessClock().now_ms(connection))
