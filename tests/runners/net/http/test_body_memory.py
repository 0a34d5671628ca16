"""The memory that bodies of all runs share."""

import asyncio

import pytest

from runners.net.http.body_memory import BodyLease, BodyMemory
from runners.net.http.memory_wait import expected_bytes
from runners.net.http.transfer import READ_LIMIT_BYTES

MB = 1024 * 1024


def a_lease(memory: BodyMemory, moved_s: list[float] | None = None) -> BodyLease:
    return BodyLease(memory, postpone=[].append if moved_s is None else moved_s.append)


async def test_bodies_get_memory_in_the_order_in_which_they_asked() -> None:
    memory, turns = BodyMemory(64 * MB), list[int]()
    holder, *others = [a_lease(memory) for _ in range(4)]
    assert holder.take(30 * MB, lambda: None)
    assert not others[0].take(20 * MB, lambda: turns.append(0))
    assert not others[1].take(1 * MB, lambda: turns.append(1))
    assert not others[2].take(20 * MB, lambda: turns.append(2))
    assert memory.waiting == 3
    holder.release()
    await asyncio.sleep(0)
    assert turns == [0, 1]
    assert (memory.held_bytes, memory.waiting) == (21 * MB, 1)
    others[0].release()
    await asyncio.sleep(0)
    assert turns == [0, 1, 2]
    for lease in others:
        lease.release()
    assert (memory.held_bytes, memory.waiting) == (0, 0)


async def test_who_stops_waiting_leaves_the_queue_and_is_not_called() -> None:
    memory, turns = BodyMemory(64 * MB), list[int]()
    holder, gone, next_one = [a_lease(memory) for _ in range(3)]
    holder.take(32 * MB, lambda: None)
    gone.take(32 * MB, lambda: turns.append(0))
    next_one.take(32 * MB, lambda: turns.append(1))
    gone.release()
    holder.release()
    await asyncio.sleep(0)
    assert turns == [1]


async def test_one_body_fits_into_the_smallest_memory() -> None:
    assert a_lease(BodyMemory(64 * MB)).take(READ_LIMIT_BYTES, lambda: None)


async def test_a_wait_moves_the_time_limit_by_itself_and_ends() -> None:
    memory = BodyMemory(64 * MB, max_wait_s=0.01)
    moved_s, over = list[float](), asyncio.Event()
    holder, waits = a_lease(memory), a_lease(memory, moved_s)
    holder.take(32 * MB, lambda: None)
    waits.take(32 * MB, over.set)
    await over.wait()
    assert waits.has_given_up
    assert not waits.is_held
    assert sum(moved_s) == pytest.approx(waits.waited_s)
    assert memory.waiting == 0


@pytest.mark.parametrize(
    ("lines", "size"),
    [
        ([b"HTTP/1.1 200 OK\r\n", b"Content-Length: 70000\r\n", b"\r\n"], 70_000),
        ([b"HTTP/1.1 200 OK\r\n", b"content-length: 99999999999\r\n"], READ_LIMIT_BYTES),
        ([b"HTTP/1.1 200 OK\r\n", b"content-length: -5\r\n"], READ_LIMIT_BYTES),
        ([b"HTTP/1.1 200 OK\r\n", b"transfer-encoding: chunked\r\n"], READ_LIMIT_BYTES),
        (
            [b"HTTP/2 200\r\n", b"content-encoding: br\r\n", b"content-length: 70000\r\n"],
            READ_LIMIT_BYTES,
        ),
        ([b"HTTP/1.1 100 \r\n", b"content-length: 5\r\n", b"HTTP/1.1 200 \r\n"], READ_LIMIT_BYTES),
    ],
)
def test_a_body_takes_its_length_or_the_most_that_it_can_have(
    lines: list[bytes], size: int
) -> None:
    assert expected_bytes(lines) == size
