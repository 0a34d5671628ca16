from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from contract.checks import CheckType
from picket.up.dashboard import Board, NewResult, percentile

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def a_new_result(number: int, status: str = "PASSED", **changes: object) -> NewResult:
    told = {
        "id": f"result-{number}",
        "check_id": "check",
        "check_name": "Front page",
        "kind": CheckType.URL,
        "status": status,
        "response_time_ms": float(number),
        "at": START + timedelta(seconds=number),
    }
    return NewResult(**{**told, **changes})  # type: ignore[arg-type]  # the builder's changes


def a_board() -> Board:
    board = Board()
    board.add_check("check", "Front page", CheckType.URL)
    return board


def test_a_result_counts_once_however_often_it_is_seen() -> None:
    board = a_board()
    first = board.take([a_new_result(2), a_new_result(1)])
    second = board.take([a_new_result(3), a_new_result(2), a_new_result(1)])
    assert [each.id for each in first] == ["result-1", "result-2"]
    assert [each.id for each in second] == ["result-3"]
    assert board.counts == {(CheckType.URL, "PASSED"): 3}


def test_results_of_an_earlier_start_are_shown_and_not_counted() -> None:
    board = a_board()
    board.recall([a_new_result(2, "FAILED"), a_new_result(1)])
    board.recall([a_new_result(2, "FAILED"), a_new_result(1)])
    standing = board.standings["check"]
    assert [each.id for each in standing.trend] == ["result-1", "result-2"]
    assert standing.is_recalled
    assert not board.counts
    assert not board.times_ms
    board.take([a_new_result(4)])
    assert not standing.is_recalled
    board.recall([a_new_result(3)])
    assert [each.id for each in standing.trend] == ["result-1", "result-2", "result-4"]


def test_since_tells_when_the_status_changed_last() -> None:
    board = a_board()
    statuses = ["PASSED", "FAILED", "FAILED"]
    board.take([a_new_result(number, status) for number, status in enumerate(statuses)])
    standing = board.standings["check"]
    assert standing.last is not None
    assert standing.last.id == "result-2"
    assert standing.since == START + timedelta(seconds=1)


def test_the_trend_keeps_the_newest() -> None:
    board = a_board()
    board.take([a_new_result(number) for number in range(100)])
    assert board.standings["check"].trend[-1].id == "result-99"
    assert len(board.standings["check"].trend) < 100


def test_a_board_does_not_grow_for_ever() -> None:
    board = a_board()
    for number in range(20_000):
        board.take([a_new_result(number), a_new_result(number + 1)])
    assert board.counts.total() == 20_001
    assert len(board.times_ms[CheckType.URL]) == 10_000
    assert len(board.standings["check"].known) == 200


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_is_one_of_the_values(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert found is not None
    assert sum(value <= found for value in values) >= share * len(values)


def test_there_is_no_percentile_of_nothing() -> None:
    assert percentile([], 0.5) is None
