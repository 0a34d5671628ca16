"""Strips and sparklines."""

from service.results.model import RunStatus
from service.web.states import State, draw_sparkline, draw_strip, state_of_run


def test_every_end_of_a_run_has_a_state() -> None:
    assert {state_of_run(status) for status in RunStatus} == {
        State.PASSING,
        State.DEGRADED,
        State.FAILING,
        State.MISSED,
    }


def test_a_strip_has_one_path_per_state_and_a_line_per_stretch() -> None:
    good, bad = State.PASSING, State.FAILING

    drawn = draw_strip([good, good, bad, good], text="4 runs, 1 failed")

    assert drawn.width == 16
    assert [(path.state, path.d) for path in drawn.paths] == [
        (good, "M0 0H8M12 0H16"),
        (bad, "M8 0H12"),
    ]


def test_states_of_a_strip_differ_in_height_as_well() -> None:
    shown = [State.PASSING, State.DEGRADED, State.FAILING, State.MISSED]

    heights = {path.height for path in draw_strip(shown, text="").paths}

    assert len(heights) == len(shown)


def test_a_sparkline_is_interrupted_where_nothing_was_measured_for_long() -> None:
    drawn = draw_sparkline([1, 1, 1, None, 1, None, None, 1], width=7, height=16)

    assert drawn == "M0.0 1.0L1.0 1.0L2.0 1.0L4.0 1.0M7.0 1.0"


def test_values_of_a_check_that_runs_seldom_are_one_line() -> None:
    assert draw_sparkline([1, *[None] * 5, 1, *[None] * 5, 1], width=12).count("M") == 1


def test_a_sparkline_of_nothing_is_empty() -> None:
    assert draw_sparkline([None, None]) == ""
    assert draw_sparkline([0]) == "M0.0 15.0"
