from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from contract.checks import CheckType
from picket.up.dashboard import Dashboard, NewResult, percentile

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


def a_board() -> Dashboard:
    dashboard = Dashboard()
    dashboard.add_check("check", "Front page", CheckType.URL)
    return dashboard


def test_a_result_counts_once_however_often_it_is_seen() -> None:
    dashboard = a_board()
    first = dashboard.take([a_new_result(2), a_new_result(1)])
    second = dashboard.take([a_new_result(3), a_new_result(2), a_new_result(1)])
    assert [each.id for each in first] == ["result-1", "result-2"]
    assert [each.id for each in second] == ["result-3"]
    assert dashboard.counts == {(CheckType.URL, "PASSED"): 3}


def test_results_of_an_earlier_start_are_shown_and_not_counted() -> None:
    dashboard = a_board()
    dashboard.add_earlier([a_new_result(2, "FAILED"), a_new_result(1)])
    dashboard.add_earlier([a_new_result(2, "FAILED"), a_new_result(1)])
    state = dashboard.states["check"]
    assert [each.id for each in state.trend] == ["result-1", "result-2"]
    assert state.is_earlier
    assert not dashboard.counts
    assert not dashboard.times_ms
    dashboard.take([a_new_result(4)])
    assert not state.is_earlier
    dashboard.add_earlier([a_new_result(3)])
    assert [each.id for each in state.trend] == ["result-1", "result-2", "result-4"]


def test_runs_that_were_missed_before_this_start_are_shown_and_counted_once_apart() -> None:
    dashboard = a_board()
    missed = [a_new_result(1, "MISSED", due_times=40), a_new_result(2, "MISSED")]
    dashboard.take([a_new_result(3)])
    for _ in range(2):
        dashboard.add_missed_before(missed)
    assert dashboard.missed_before == {CheckType.URL: 41}
    assert dashboard.counts == {(CheckType.URL, "PASSED"): 1}
    assert dashboard.totals() == {(CheckType.URL, "PASSED"): 1, (CheckType.URL, "MISSED"): 41}
    last = dashboard.states["check"].last
    assert last is not None
    assert last.id == "result-3"


def test_since_tells_when_the_status_changed_last() -> None:
    dashboard = a_board()
    statuses = ["PASSED", "FAILED", "FAILED"]
    dashboard.take([a_new_result(number, status) for number, status in enumerate(statuses)])
    state = dashboard.states["check"]
    assert state.last is not None
    assert state.last.id == "result-2"
    assert state.since == START + timedelta(seconds=1)


def test_the_trend_keeps_the_newest() -> None:
    dashboard = a_board()
    dashboard.take([a_new_result(number) for number in range(100)])
    assert dashboard.states["check"].trend[-1].id == "result-99"
    assert len(dashboard.states["check"].trend) < 100


def test_a_board_does_not_grow_for_ever() -> None:
    dashboard = a_board()
    for number in range(20_000):
        dashboard.take([a_new_result(number), a_new_result(number + 1)])
    assert dashboard.counts.total() == 20_001
    assert len(dashboard.times_ms[CheckType.URL]) == 10_000
    assert len(dashboard.states["check"].known) == 200


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_is_one_of_the_values(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert found is not None
    assert sum(value <= found for value in values) >= share * len(values)


def test_there_is_no_percentile_of_nothing() -> None:
    assert percentile([], 0.5) is None
