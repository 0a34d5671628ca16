import asyncio
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine

from service.db.engine import DatabaseBusyError
from service.db.sqlite_group import Change, driver, has_begun, write_group
from tests.builders.patience import LONG_S


@pytest.fixture
def spoiled(tmp_path: Path) -> Iterator[Connection]:
    """A connection to a file that is no database any more."""
    file = tmp_path / "notes.db"
    file.write_bytes(b"no database" * 1_000)
    engine = create_engine(f"sqlite:///{file}", connect_args={"isolation_level": None})
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def test_nothing_is_begun_in_a_file_that_is_spoiled(spoiled: Connection) -> None:
    assert not has_begun(driver(spoiled))


async def test_changes_of_a_file_that_is_spoiled_are_refused(spoiled: Connection) -> None:
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    group = deque([Change(lambda _: None, waiter, time.monotonic() + LONG_S)])
    [settled] = write_group(spoiled, group)
    assert isinstance(settled.problem, DatabaseBusyError)
