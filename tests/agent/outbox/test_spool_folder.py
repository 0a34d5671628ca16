"""The spool's folder: files that are broken, another's or half written, and a disk that refuses."""

import asyncio
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.outbox.result_files import ResultFolder
from agent.outbox.results import SpoolLimits
from tests.builders.agents import files, until
from tests.builders.patience import LONG_S
from tests.builders.spools import Drops, drained, numbers, opened, put


@contextmanager
def held_up(folder: ResultFolder, step: str) -> Iterator[threading.Event]:
    """The disk takes its time over this step, until the event is set."""
    may_end, done = threading.Event(), getattr(folder, step)

    def late(*given: Any, **named: Any) -> Any:
        assert may_end.wait(LONG_S)
        return done(*given, **named)

    setattr(folder, step, late)
    yield may_end
    setattr(folder, step, done)


async def test_a_result_on_its_way_to_disk_is_waiting_and_can_be_had(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    put(spool, 1)
    with held_up(spool._folder, "write") as may_end:
        moving = asyncio.create_task(spool.persist())
        await until(lambda: not spool._fresh)
        asking = asyncio.create_task(spool.next_batch())
        await asyncio.sleep(0)
        assert spool.waiting() == 1
        may_end.set()
        batch = await asking
    assert numbers(batch) == [1]
    await moving
    assert spool.waiting() == 1
    await spool.delivered(batch)
    assert spool.waiting() == 0


async def test_a_result_on_its_way_back_from_disk_is_waiting(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    put(spool, 1)
    await spool.persist()
    assert spool.waiting() == 1
    with held_up(spool._folder, "read") as may_end:
        asking = asyncio.create_task(spool.next_batch())
        await until(lambda: not spool._files)
        assert spool.waiting() == 1
        may_end.set()
        batch = await asking
    assert numbers(batch) == [1]
    await spool.delivered(batch)
    assert spool.waiting() == 0


async def test_files_are_for_the_agent_alone(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    spool = await opened(folder)
    put(spool, 1)
    await spool.persist()
    (file,) = files(folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "garbage"])
async def test_a_broken_file_is_set_aside_and_blocks_nothing(tmp_path: Path, damage: str) -> None:
    first = await opened(tmp_path)
    put(first, 1, 2)
    await first.persist()
    (file,) = files(tmp_path)
    content = file.read_bytes()
    damaged = {
        "truncate": content[:-20],
        "flip": content[:-20] + bytes([content[-20] ^ 1]) + content[-19:],
        "empty": b"",
        "garbage": b"\x00\xff" * 100,
    }
    file.write_bytes(damaged[damage])
    drops = Drops()
    second = await opened(tmp_path, drops=drops)
    put(second, 3)
    assert await drained(second) == [3]
    assert drops.count == 2
    assert [path.suffix for path in files(tmp_path)] == [".broken"]
    assert (await opened(tmp_path)).waiting() == 0


async def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    spool = await opened(tmp_path)
    put(spool, 1)
    await spool.persist()
    assert await drained(await opened(tmp_path)) == [1]
    assert (tmp_path / "notes.txt").read_text() == "mine"


async def test_an_unfinished_file_of_a_dead_process_is_removed(tmp_path: Path) -> None:
    dead, alive = tmp_path / "results-1.part", tmp_path / "results-2.part"
    dead.write_bytes(b"half")
    alive.write_bytes(b"half")
    os.utime(dead, (1, 1))
    await opened(tmp_path)
    assert not dead.exists()
    assert alive.exists()


async def test_a_file_that_another_agent_delivered_is_no_loss(tmp_path: Path) -> None:
    drops = Drops()
    first = await opened(tmp_path)
    put(first, 1)
    await first.persist()
    second = await opened(tmp_path, drops=drops)
    assert await drained(first) == [1]
    assert await drained(second) == []
    assert drops.count == 0


async def test_where_nothing_can_be_written_memory_serves_within_its_bound(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    drops = Drops()
    limits = SpoolLimits(max_bytes=10**6, max_age_s=60, memory_bytes=1500)
    spool = await opened(blocked / "results", limits=limits, drops=drops)
    put(spool, *range(10))
    await spool.persist()
    kept = await drained(spool)
    assert 0 < len(kept) < 10
    assert kept == list(range(10))[-len(kept) :]
    assert drops.count == 10 - len(kept)


async def test_what_the_disk_refuses_stays_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    spool = await opened(folder)
    put(spool, 1, 2)
    shutil.rmtree(folder)
    await spool.persist()
    assert await drained(spool) == [1, 2]


async def test_a_deleted_folder_is_made_again(tmp_path: Path) -> None:
    spool = await opened(tmp_path / "results")
    shutil.rmtree(tmp_path / "results")
    put(spool, 1)
    await spool.persist()
    assert len(files(tmp_path / "results")) == 1
    assert await drained(await opened(tmp_path / "results")) == [1]
