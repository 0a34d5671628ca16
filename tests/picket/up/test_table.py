from datetime import timedelta

import pytest
from rich.console import Console, RenderableType
from rich.table import Table

from contract.checks import CheckType
from picket.up.dashboard import Dashboard
from picket.up.dashboard_view import (
    LEAST_WIDTH,
    columns_for,
    live_table,
    plain_line,
    summary,
    verdict,
)
from tests.picket.up.test_dashboard import START, a_board, a_new_result


def a_table(dashboard: Dashboard, *, width: int, height: int = 0) -> Table:
    now = START + timedelta(seconds=94)
    return live_table(dashboard, now=now, title="here", console=Console(width=width, height=height))


def printed(shown: RenderableType, *, width: int = 120) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


def a_busy_board() -> Dashboard:
    dashboard = a_board()
    dashboard.add_check("quiet", "Not yet run", CheckType.DNS)
    dashboard.add_check("tcp", "Echo", CheckType.TCP)
    dashboard.take(a_new_result(number) for number in range(1, 4))
    dashboard.take(
        [
            a_new_result(4, "FAILED", cause="HTTP status 500.", response_time_ms=40.0),
            a_new_result(
                5, "MISSED", check_id="tcp", kind=CheckType.TCP, response_time_ms=None, cause="no"
            ),
        ]
    )
    return dashboard


def test_the_live_table_has_a_row_for_every_check() -> None:
    text = printed(a_table(a_busy_board(), width=120))
    front, quiet, echo = text.splitlines()[-3:]
    for word in ("Front page", "URL", "FAILED", "40.0 ms", "▁▁▁█", "1 min", "HTTP status 500."):
        assert word in front
    assert "waiting" in quiet
    assert "MISSED" in echo


@pytest.mark.parametrize("width", range(LEAST_WIDTH, 200))
def test_no_status_and_no_time_is_cut_however_narrow_the_table(width: int) -> None:
    dashboard = a_busy_board()
    dashboard.take([a_new_result(6, "TIMED_OUT", check_id="tcp", response_time_ms=123_456.0)])
    text = printed(a_table(dashboard, width=width), width=width)
    assert all(len(line) <= width for line in text.splitlines())
    assert len(text.splitlines()) == 2 + len(dashboard.states)
    for word in ("FAILED", "40.0 ms", "TIMED_OUT", "2 min 3 s", "waiting", "Front"):
        assert word in text


CAUSE = "The body holds “closed for good”, which is not what was expected. " * 4
ALL_LINES = 11


@pytest.mark.parametrize(("height", "lines"), [(6, 1), (7, 2), (8, 3), (60, ALL_LINES)])
def test_a_long_cause_takes_the_lines_that_are_free(height: int, lines: int) -> None:
    dashboard = a_busy_board()
    dashboard.take([a_new_result(6, "FAILED", cause=CAUSE)])
    text = printed(a_table(dashboard, width=120, height=height))
    assert len(text.splitlines()) == 2 + len(dashboard.states) + lines - 1
    assert ("…" in text) == (lines < ALL_LINES)


def test_long_causes_share_the_free_lines() -> None:
    dashboard = a_busy_board()
    dashboard.take([a_new_result(6, "FAILED", cause=CAUSE)])
    dashboard.take([a_new_result(7, "FAILED", check_id="tcp", kind=CheckType.TCP, cause=CAUSE)])
    rows = printed(a_table(dashboard, width=120, height=8)).splitlines()[2:]
    named = [line.split("  ")[0].strip() for line in rows]
    assert named == ["Front page", "", "Not yet run", "Echo", ""]
    assert [number for number, line in enumerate(rows) if "…" in line] == [1, 4]


def test_a_result_of_an_earlier_start_is_marked_by_its_age() -> None:
    dashboard = a_busy_board()
    earlier = a_new_result(-86, "FAILED", check_id="quiet", kind=CheckType.DNS, cause="No answer.")
    dashboard.add_earlier([earlier])
    row = printed(a_table(dashboard, width=120)).splitlines()[-2]
    assert "3 min ago: No answer." in row
    dashboard.take([a_new_result(90, check_id="quiet", kind=CheckType.DNS)])
    assert "ago" not in printed(a_table(dashboard, width=120))


def test_a_wide_table_has_every_column_and_a_narrow_one_the_needed_ones() -> None:
    assert columns_for(200) == ("check", "type", "status", "time", "trend", "since", "cause")
    assert columns_for(80) == ("check", "status", "time", "since", "cause")
    assert columns_for(40) == ("check", "status", "time")


def test_a_plain_line_tells_everything_about_a_result() -> None:
    line = plain_line(a_new_result(4, "FAILED", cause="HTTP\nstatus \x1b[2J500."))
    at = (START + timedelta(seconds=4)).astimezone().strftime("%H:%M:%S")
    words = [at, "FAILED", "URL", "Front page", "4.0 ms", "HTTP status ·[2J500."]
    assert line.split("  ")[0] == at
    for word in words:
        assert word in line
    assert "\n" not in line


def test_a_line_tells_what_was_expected_and_not_how_playwright_waited_for_it() -> None:
    cause = (
        'Error: expect(locator).toHaveText(expected) failed\n\nExpected: "Open"\n'
        'Received: "Shut"\nTimeout:  2000ms\n\nCall log:\n  - Expect "toHaveText"\n'
    )
    line = plain_line(a_new_result(4, "FAILED", cause=cause))
    assert line.endswith('toHaveText(expected) failed Expected: "Open" Received: "Shut"')


def test_the_summary_counts_by_type_and_status() -> None:
    rows = [
        line.split()
        for line in printed(summary(a_busy_board(), width=120)).splitlines()
        if line.strip()
    ]
    assert rows[0] == ["type", "PASSED", "FAILED", "MISSED", "p50", "p95"]
    assert rows[1][:2] == ["TCP", "1"]
    assert rows[2][:3] == ["URL", "3", "1"]
    assert rows[3][:4] == ["all", "3", "1", "1"]


def test_a_summary_without_room_for_a_table_is_lines() -> None:
    text = printed(summary(a_busy_board(), width=40), width=40)
    assert text.splitlines() == [
        "TCP: 1 MISSED",
        "  p50 -, p95 -",
        "URL: 3 PASSED, 1 FAILED",
        "  p50 3.0 ms, p95 40.0 ms",
    ]


@pytest.mark.parametrize("width", range(50, 120))
def test_a_summary_is_never_wider_than_its_terminal(width: int) -> None:
    dashboard = a_busy_board()
    for number, status in enumerate(("DEGRADED", "TIMED_OUT", "ERROR"), start=10):
        dashboard.take([a_new_result(number, status, response_time_ms=123_456.0)])
    text = printed(summary(dashboard, width=width), width=width)
    assert "…" not in text
    assert "2 min 3 s" in text


def test_the_verdict_names_what_was_missed() -> None:
    assert verdict(a_busy_board()) == "5 results: 3 good, 1 failed, 1 missed"
    assert verdict(a_board()) == "0 results: 0 good, 0 failed, none missed"


def a_board_after_a_pause() -> Dashboard:
    dashboard = a_busy_board()
    before = a_new_result(-5, "MISSED", check_id="quiet", kind=CheckType.DNS, due_times=7)
    dashboard.add_missed_before([before])
    return dashboard


def test_what_was_missed_while_picket_was_stopped_is_in_the_summary_and_the_verdict() -> None:
    dashboard = a_board_after_a_pause()
    rows = [line.split() for line in printed(summary(dashboard, width=120)).splitlines()]
    assert [row[:2] for row in rows if row[:1] == ["DNS"]] == [["DNS", "7"]]
    assert [row[:4] for row in rows if row[:1] == ["all"]] == [["all", "3", "1", "8"]]
    assert verdict(dashboard) == (
        "5 results: 3 good, 1 failed, 1 missed; 7 runs missed while Picket was stopped"
    )
    assert "DNS: 7 MISSED" in printed(summary(dashboard, width=40))
