"""Which queue belongs to which database engine."""

from typing import Final

from sqlalchemy import Connection

from service.jobs.postgresql import PostgresJobQueue
from service.jobs.queue import JobQueue
from service.jobs.sqlite import SqliteJobQueue

_QUEUES: Final[dict[str, JobQueue]] = {
    "sqlite": SqliteJobQueue(),
    "postgresql": PostgresJobQueue(),
}


def queue_of(connection: Connection) -> JobQueue:
    """The queue in the database that the connection leads to."""
    return _QUEUES[connection.dialect.name]
