"""Which display fits which console."""

import io

import pytest
from rich.console import Console

from picket.up.dashboard_view import LEAST_WIDTH, LiveTable, PlainLines, open_display
from tests.picket.up.test_dashboard import a_board, a_new_result


def a_console(width: int, *, terminal: bool) -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, width=width, force_terminal=terminal), written


@pytest.mark.parametrize(
    ("width", "terminal", "display"),
    [
        (80, True, LiveTable),
        (LEAST_WIDTH, True, LiveTable),
        (LEAST_WIDTH - 1, True, PlainLines),
        (80, False, PlainLines),
    ],
)
def test_a_table_is_shown_where_there_is_room_for_one(
    width: int,
    terminal: bool,  # noqa: FBT001 - the case
    display: type,
) -> None:
    console, _ = a_console(width, terminal=terminal)
    with open_display(console, a_board(), title="here") as opened:
        assert isinstance(opened, display)


@pytest.mark.parametrize("terminal", [True, False])
def test_what_was_missed_while_picket_was_stopped_is_on_the_screen(
    terminal: bool,  # noqa: FBT001 - the case
) -> None:
    console, written = a_console(120, terminal=terminal)
    dashboard = a_board()
    with open_display(console, dashboard, title="here") as display:
        dashboard.add_missed_before([a_new_result(1, "MISSED")])
        for number in (2, 3):
            display.show(dashboard.take([a_new_result(number)]))
        text = written.getvalue()
    assert "1 run missed while Picket was stopped" in text
    assert terminal or text.count("missed while") == 1


def test_the_table_follows_the_width_of_its_terminal() -> None:
    console, written = a_console(120, terminal=True)
    dashboard = a_board()
    with open_display(console, dashboard, title="here") as display:
        dashboard.take([a_new_result(1)])
        display.show([])
        assert "trend" in written.getvalue()
        written.truncate(0)
        console.width = 40
        display.show([])
        assert "status" in written.getvalue()
        assert "trend" not in written.getvalue()
