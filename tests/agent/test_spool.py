"""The spool: what was put is delivered once, whatever happens in between."""

import asyncio
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agent.segments import SegmentFolder
from agent.spool import DiskSpool, SpoolLimits, Waiting, steady_time
from contract.result import Result
from contract.wire import decode
from runners.kit.scrubbing.scrub import Scrubber
from tests.builders.agents import clean, files, until
from tests.builders.observations import a_result
from tests.builders.patience import LONG_S

ROOMY = SpoolLimits(max_bytes=1024**3, max_age_s=86400)


class Drops:
    def __init__(self) -> None:
        self.count = 0

    def results_dropped(self, count: int) -> None:
        self.count += count


class Clock:
    def __init__(self) -> None:
        self.now = 1_795_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


async def opened(
    folder: Path,
    *,
    limits: SpoolLimits = ROOMY,
    drops: Drops | None = None,
    clock: Clock | None = None,
) -> DiskSpool:
    spool = DiskSpool(
        SegmentFolder(folder, agent_id="abc123"),
        limits=limits,
        meter=drops or Drops(),
        wall_clock=clock or Clock(),
    )
    await spool.open()
    return spool


def put(spool: DiskSpool, *numbers: int) -> None:
    for number in numbers:
        spool.put(clean(f"job-{number}"))


def numbers(batch: tuple[Waiting, ...]) -> list[int]:
    return [int(decode(waiting.body, Result).job_id.removeprefix("job-")) for waiting in batch]


async def drained(spool: DiskSpool) -> list[int]:
    """Deliver everything."""
    found: list[int] = []
    while batch := await spool.next_batch():
        found += numbers(batch)
        await spool.delivered(batch)
    return found


async def test_results_leave_in_the_order_they_came(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    put(spool, 1, 2, 3)
    assert spool.waiting() == 3
    assert spool.arrived.is_set()
    assert await drained(spool) == [1, 2, 3]
    assert spool.waiting() == 0


async def test_what_leaves_is_what_was_searched_byte_for_byte(tmp_path: Path) -> None:
    searched = Scrubber().clean(a_result())
    spool = await opened(tmp_path)
    spool.put(searched)
    (waiting,) = await spool.next_batch()
    assert waiting.body is searched.body
    spool.put_back((waiting,))
    await spool.persist()
    (waiting,) = await spool.next_batch()
    assert waiting.body == searched.body


async def test_a_result_survives_a_restart(tmp_path: Path) -> None:
    first = await opened(tmp_path)
    put(first, 1, 2, 3)
    await first.persist()
    second = await opened(tmp_path)
    assert second.waiting() == 3
    assert second.arrived.is_set()
    assert await drained(second) == [1, 2, 3]
    assert (await opened(tmp_path)).waiting() == 0


async def test_what_waits_longest_on_disk_goes_first(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    put(spool, 1)
    await spool.persist()
    put(spool, 2)
    await spool.persist()
    put(spool, 3)
    assert await drained(spool) == [1, 2, 3]


async def test_a_batch_that_was_put_back_is_the_next_one(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    put(spool, 1, 2, 3)
    batch = await spool.next_batch(most=2)
    put(spool, 4)
    spool.put_back(batch)
    assert await drained(spool) == [1, 2, 3, 4]


async def test_a_batch_that_is_out_is_not_written_twice(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    put(spool, 1, 2, 3)
    batch = await spool.next_batch(most=2)
    await spool.persist()
    await spool.delivered(batch)
    assert await drained(await opened(tmp_path)) == [3]


@contextmanager
def held_up(folder: SegmentFolder, step: str) -> Iterator[threading.Event]:
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
        await until(lambda: not spool._segments)
        assert spool.waiting() == 1
        may_end.set()
        batch = await asking
    assert numbers(batch) == [1]
    await spool.delivered(batch)
    assert spool.waiting() == 0


async def test_a_file_that_was_half_delivered_is_sent_again(tmp_path: Path) -> None:
    first = await opened(tmp_path)
    put(first, 1, 2, 3)
    await first.persist()
    await first.delivered(await first.next_batch(most=2))
    assert await drained(await opened(tmp_path)) == [1, 2, 3]


async def test_a_batch_keeps_to_count_and_bytes(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    put(spool, *range(300))
    first = await spool.next_batch()
    assert len(first) == 256
    await spool.delivered(first)
    room_bytes = 3 * (len(first[0].body) + 1) + 10
    assert len(await spool.next_batch(most_bytes=room_bytes)) == 3


async def test_a_result_larger_than_a_batch_goes_alone(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    put(spool, 1, 2)
    assert numbers(await spool.next_batch(most_bytes=10)) == [1]


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


async def test_the_oldest_results_go_when_there_is_no_room(tmp_path: Path) -> None:
    drops = Drops()
    spool = await opened(tmp_path, limits=SpoolLimits(max_bytes=900, max_age_s=60), drops=drops)
    for number in range(6):
        put(spool, number)
        await spool.persist()
    kept = await drained(spool)
    assert 0 < len(kept) < 6
    assert kept == list(range(6))[-len(kept) :]
    assert drops.count == 6 - len(kept)


async def test_results_that_are_too_old_go(tmp_path: Path) -> None:
    drops, clock = Drops(), Clock()
    spool = await opened(
        tmp_path, limits=SpoolLimits(max_bytes=10**6, max_age_s=60), drops=drops, clock=clock
    )
    put(spool, 1)
    await spool.persist()
    clock.now += 61
    put(spool, 2)
    await spool.persist()
    assert await drained(spool) == [2]
    assert drops.count == 1


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


async def test_memory_above_its_bound_goes_to_disk_by_itself(tmp_path: Path) -> None:
    spool = await opened(
        tmp_path, limits=SpoolLimits(max_bytes=10**9, max_age_s=60, memory_bytes=100)
    )
    put(spool, 1, 2, 3)
    keeping = asyncio.create_task(spool.keep())
    await until(lambda: files(tmp_path))
    keeping.cancel()
    await spool.persist()
    assert await drained(spool) == [1, 2, 3]


STEPS = st.lists(
    st.sampled_from(["put", "persist", "deliver", "fail", "restart"]), min_size=1, max_size=40
)


@given(steps=STEPS, most=st.integers(1, 4))
@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_put_result_is_delivered_once(steps: list[str], most: int) -> None:
    """A restart here is a clean one: what is in memory was persisted before."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_live_through(Path(folder), steps, most=most))


async def _live_through(folder: Path, steps: list[str], *, most: int) -> None:
    clock, drops = Clock(), Drops()
    spool = await opened(folder, clock=clock, drops=drops)
    delivered: list[int] = []
    count = 0
    for step in steps:
        if step == "put":
            put(spool, count)
            count += 1
        elif step == "persist":
            await spool.persist()
        elif step == "deliver":
            batch = await spool.next_batch(most=most)
            delivered += numbers(batch)
            await spool.delivered(batch)
        elif step == "fail":
            spool.put_back(await spool.next_batch(most=most))
        else:
            await spool.persist()
            spool = await opened(folder, clock=clock, drops=drops)
    delivered += await drained(spool)
    # A file that was half delivered before a restart is sent again; the service knows it by fence.
    assert set(delivered) == set(range(count))
    if "restart" not in steps:
        assert sorted(delivered) == list(range(count))
    assert drops.count == 0


async def test_a_deleted_folder_is_made_again(tmp_path: Path) -> None:
    spool = await opened(tmp_path / "results")
    shutil.rmtree(tmp_path / "results")
    put(spool, 1)
    await spool.persist()
    assert len(files(tmp_path / "results")) == 1
    assert await drained(await opened(tmp_path / "results")) == [1]


async def test_a_calendar_that_jumps_drops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drops = Drops()
    folder = SegmentFolder(tmp_path, agent_id="abc123")
    spool = DiskSpool(folder, limits=ROOMY, meter=drops, wall_clock=steady_time())
    await spool.open()
    put(spool, 1)
    await spool.persist()
    put(spool, 2)
    monkeypatch.setattr(time, "time", lambda: 4_000_000_000.0)
    await spool.persist()
    assert await drained(spool) == [1, 2]
    assert drops.count == 0
