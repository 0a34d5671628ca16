"""What comes next is worked on meanwhile: in order, a little of it, and errors arrive."""

import threading
from collections.abc import Iterator

import pytest

from redaction.archives.limits import MAX_IN_PROGRESS, THREADS, map_ahead
from tests.builders.patience import LONG_S


def test_items_come_in_order_with_what_was_made_of_them() -> None:
    assert list(map_ahead(str, range(20))) == [(number, str(number)) for number in range(20)]
    assert list(map_ahead(str, ())) == []


def test_few_items_are_held_at_once() -> None:
    taken = []

    def numbers() -> Iterator[int]:
        for number in range(20):
            taken.append(number)
            yield number

    assert next(map_ahead(str, numbers())) == (0, "0")
    assert len(taken) == MAX_IN_PROGRESS


def test_two_are_worked_on_at_once_and_none_of_them_where_they_are_used() -> None:
    together = threading.Barrier(THREADS, timeout=LONG_S)

    def work(_: int) -> int:
        together.wait()
        return threading.get_ident()

    assert threading.get_ident() not in {made for _, made in map_ahead(work, range(2 * THREADS))}


def test_work_waits_for_threads_and_not_threads_for_work() -> None:
    are_taken = threading.Event()

    def numbers() -> Iterator[int]:
        yield from range(THREADS + 1)
        are_taken.set()
        yield THREADS + 1

    def work(number: int) -> bool:
        return number != 0 or are_taken.wait(LONG_S)

    assert all(made for _, made in map_ahead(work, numbers()))


def broken() -> Iterator[int]:
    yield 1
    raise ValueError("broken")


def test_what_breaks_arrives() -> None:
    with pytest.raises(ValueError, match="broken"):
        list(map_ahead(str, broken()))
    with pytest.raises(ValueError, match="invalid literal"):
        list(map_ahead(int, ("1", "x")))


def test_no_thread_is_left_where_the_rest_is_not_wanted() -> None:
    before = set(threading.enumerate())
    ahead = map_ahead(str, range(20))
    next(ahead)
    ahead.close()
    assert set(threading.enumerate()) <= before, "those of earlier tests may end meanwhile"
