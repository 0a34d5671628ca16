"""What a child says is cut to size, never lost without a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redaction.policy import CUT_SIGN
from redaction.result import Scrubber
from sandbox.child_io import FACT_BYTES, FACT_LINES, LINE_BYTES, Facts, Log
from tests.builders.observations import a_result, an_outcome

SECRET = "hunter2-very-secret-token"


def log(limit_bytes: int = 1000) -> Log:
    return Log(limit_bytes, now_ms=lambda: 1.0)


def test_a_line_is_whole_however_it_comes() -> None:
    taken = log()
    for part in (b"one li", b"ne\r\ntwo", b"\nno end"):
        taken.take("INFO", part)
    assert [line.message for line in taken.close()] == ["one line", "two", "no end"]


def test_the_two_outputs_do_not_mix_within_a_line() -> None:
    taken = log()
    taken.take("INFO", b"o")
    taken.take("ERROR", b"err\n")
    taken.take("INFO", b"ut\n")
    assert [(line.level, line.message) for line in taken.close()] == [
        ("ERROR", "err"),
        ("INFO", "out"),
    ]


@pytest.mark.parametrize("is_cut", [False, True])
def test_the_last_line_of_a_program_that_was_ended_from_outside_is_cut(*, is_cut: bool) -> None:
    taken = log()
    taken.take("INFO", b"whole\nhunter2-v")
    last = "hunter2-v…" if is_cut else "hunter2-v"
    assert [line.message for line in taken.close(is_cut=is_cut)] == ["whole", last]


def test_what_is_no_text_is_shown_as_such() -> None:
    taken = log()
    taken.take("INFO", b"\xff\n")
    assert taken.close()[0].message == "\N{REPLACEMENT CHARACTER}"


def test_empty_lines_count_too() -> None:
    taken = log()
    taken.take("INFO", b"\n" * 1_000_000)
    assert len(taken.close()) < 40


@pytest.mark.parametrize("chunk_bytes", [4096, 65_536, 200_000])
@pytest.mark.parametrize("before", range(LINE_BYTES - len(SECRET) - 1, LINE_BYTES + 2))
def test_no_piece_of_a_secret_is_left_where_a_long_line_is_cut(
    chunk_bytes: int, before: int
) -> None:
    said = f"{'y' * before}{SECRET}{'z' * LINE_BYTES}\nnext\n".encode()
    taken = log(limit_bytes=1_000_000)
    for start in range(0, len(said), chunk_bytes):
        taken.take("INFO", said[start : start + chunk_bytes])
    cleaned = Scrubber([SECRET]).clean(a_result(an_outcome(log=taken.close()))).result.outcome
    cut, after = [line.message for line in cleaned.log]
    assert (after, cut[-1]) == ("next", CUT_SIGN)
    assert not any(SECRET[at : at + 4] in cut for at in range(len(SECRET) - 3))


def test_a_long_line_costs_what_is_kept_of_it() -> None:
    taken = log(limit_bytes=200_000)
    for _ in range(100):
        taken.take("INFO", b"x" * LINE_BYTES)
    taken.take("INFO", b"\nnext")
    assert [line.message[-1:] for line in taken.close()] == [CUT_SIGN, "t"]


@given(st.lists(st.binary(max_size=300), max_size=30))
def test_a_log_is_never_longer_than_its_limit_and_its_notice(parts: list[bytes]) -> None:
    taken = log(limit_bytes=500)
    for part in parts:
        taken.take("INFO", part)
    lines = taken.close()
    assert sum(len(line.message) for line in lines) <= 500 + 80
    assert sum("left out here" in line.message for line in lines) <= 1


@pytest.mark.parametrize("chunk_bytes", [7, 1000, 1_000_000])
def test_a_log_that_is_too_long_keeps_its_beginning_and_its_end_and_counts_the_rest(
    chunk_bytes: int,
) -> None:
    said = b"".join(b"%d\n" % number for number in range(5000))
    taken = log(limit_bytes=2000)
    for start in range(0, len(said), chunk_bytes):
        taken.take("INFO", said[start : start + chunk_bytes])
    lines = [line.message for line in taken.close()]
    (at,) = (at for at, line in enumerate(lines) if "left out here" in line)
    head, tail = [int(line) for line in lines[:at]], [int(line) for line in lines[at + 1 :]]
    assert head == list(range(len(head)))
    assert tail == list(range(5000 - len(tail), 5000))
    assert min(len(head), len(tail)) >= 25
    left_out = 5000 - len(head) - len(tail)
    assert lines[at] == f"{left_out} lines are left out here: the log has a limit of 2000 bytes."


def test_facts_come_one_by_one_however_they_are_written() -> None:
    facts = Facts()
    assert [*facts.take(b'{"a":'), *facts.take(b'1}\n\n[2]\n"half')] == [b'{"a":1}', b"[2]"]
    assert not facts.cut


def test_a_fact_that_is_too_long_is_dropped_and_the_next_is_not() -> None:
    facts = Facts()
    taken = [*facts.take(b"x" * (FACT_BYTES + 1)), *facts.take(b"x" * 10), *facts.take(b"x\nyes\n")]
    assert taken == [b"yes"]
    assert facts.cut


def test_facts_past_their_number_are_dropped() -> None:
    facts = Facts()
    assert len(list(facts.take(b"1\n" * (FACT_LINES + 1)))) == FACT_LINES
    assert facts.cut
