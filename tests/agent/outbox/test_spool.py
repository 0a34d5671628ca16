"""The spool: what was put is delivered once, whatever happens in between."""

import asyncio
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agent.outbox.result_files import ResultFolder
from agent.outbox.results import DiskSpool, SpoolLimits, make_steady_clock
from redaction.result import Scrubber
from tests.builders.agents import files, until
from tests.builders.observations import a_result
from tests.builders.spools import ROOMY, Clock, Drops, drained, numbers, opened, put


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


async def test_a_calendar_that_jumps_drops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drops = Drops()
    folder = ResultFolder(tmp_path, agent_id="abc123")
    spool = DiskSpool(folder, limits=ROOMY, metrics=drops, wall_clock=make_steady_clock())
    await spool.open()
    put(spool, 1)
    await spool.persist()
    put(spool, 2)
    monkeypatch.setattr(time, "time", lambda: 4_000_000_000.0)
    await spool.persist()
    assert await drained(spool) == [1, 2]
    assert drops.count == 0
