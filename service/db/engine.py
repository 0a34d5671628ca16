"""What every other part sees of the database: closures that read, closures that change.

A closure is synchronous, takes a SQLAlchemy `Connection`, and runs inside one transaction on a
thread of the engine. It acts on the database alone; whatever should happen outside once the change
is safe, it *announces*.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")
NoticeT = TypeVar("NoticeT")

_NOTICES = "notices"
_SHARED = "shared"


class DatabaseBusyError(Exception):
    """The database took no change in time; nothing of the change was stored. Try again."""


class DatabaseFullError(DatabaseBusyError):
    """The disk takes no change; nothing was stored. The database has logged it once for all."""


class DatabaseUnsureError(DatabaseBusyError):
    """The connection broke during the commit: the change is stored or not. Look, or try again."""


class DatabaseUnusableError(Exception):
    """There is no way to keep the database where the settings say; says why."""


class NotAloneError(Exception):
    """The change needs the database to itself; its engine makes it again so."""


@dataclass(frozen=True, slots=True)
class NoticesLost:
    """Notice: what other processes announced may not have arrived here; look for yourself.

    It comes every few seconds, too, when nothing is known to be lost.
    """

    is_certain: bool = False
    """Whether notices are known to be lost."""


class Line(Enum):
    """Brief changes that are made in the order in which they are asked for."""

    CLAIMS = auto()
    RESULTS = auto()


class Database(Protocol):
    """The store of the whole service."""

    async def write(self, change: Callable[[Connection], T], *, brief: Line | None = None) -> T:
        """Run a change in a transaction; returns once it is committed.

        `brief`: it is done within a few milliseconds, so that it may be made on the event loop; and
        it may be undone and made again, because another one of its transaction failed. Where
        several processes share the database, brief changes of others and of the other line run
        meanwhile, and no others; what is decided by more than the rows that it locked says so with
        `need_alone`.
        All others are made in the order in which they are asked for; on SQLite, brief ones too.

        Raises:
            DatabaseBusyError: another process holds the database, or too many changes wait.
            DatabaseFullError: the disk is full or fails.
        """

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query on a snapshot that holds every change that was acknowledged before."""

    def listen(self, kind: type[NoticeT], listener: Callable[[NoticeT], None]) -> None:
        """Call the listener, on the event loop, with each notice of this kind after its commit."""

    async def close(self) -> None:
        """Finish the changes that wait, then let go of the files."""


def announce(connection: Connection, notice: object) -> None:
    """Tell the listeners of the notice's type, but only once the running change is committed."""
    connection.info.setdefault(_NOTICES, []).append(notice)


def need_alone(connection: Connection) -> None:
    """Have the running change made again with the database to itself, unless it is so already.

    Raises:
        NotAloneError: to be let through.
    """
    if shared_of(connection):
        raise NotAloneError


@dataclass(frozen=True, slots=True)
class Shared:
    """A transaction of brief changes, beside those of other processes."""

    began_ms: int
    """By the database's clock: milliseconds since 1970, UTC."""
    later: list[tuple[str, Sequence[object]]] = field(default_factory=list)
    """Statements that go with the commit, and their parameters."""


def set_shared(connection: Connection, shared: Shared | None) -> None:
    """Whether other processes change the database meanwhile; for the engines alone."""
    connection.info[_SHARED] = shared


def shared_of(connection: Connection) -> Shared | None:
    """The transaction, if it is one of brief changes beside those of other processes."""
    shared: Shared | None = connection.info.get(_SHARED)
    return shared


def restore_later(connection: Connection) -> Callable[[], None]:
    """Returns what has those statements go with the commit that do now; for parts that are undone.

    A part may have kept more of them, or executed those that were there before it.
    """
    later = shared.later if (shared := shared_of(connection)) else []
    before = list(later)

    def restore() -> None:
        later[:] = before

    return restore


def forget_notices(connection: Connection) -> Callable[[], None]:
    """Returns what forgets all that is announced from now on; for parts that are undone."""
    notices: list[object] = connection.info.setdefault(_NOTICES, [])
    before = len(notices)

    def forget() -> None:
        del notices[before:]

    return forget


def take_notices(connection: Connection) -> list[object]:
    """What was announced since the last call; for the engines alone."""
    notices: list[object] = connection.info.pop(_NOTICES, [])
    return notices
