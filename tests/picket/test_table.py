from datetime import timedelta

from rich.console import Console, RenderableType

from contract.checks import CheckType
from picket.board import Board
from picket.table import live_table, plain_line, summary, verdict
from tests.picket.test_board import START, a_board, a_new_result


def printed(shown: RenderableType) -> str:
    console = Console(width=120, force_terminal=False)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


def a_busy_board() -> Board:
    board = a_board()
    board.add_check("quiet", "Not yet run", CheckType.DNS)
    board.add_check("tcp", "Echo", CheckType.TCP)
    board.take(a_new_result(number) for number in range(1, 4))
    board.take(
        [
            a_new_result(4, "FAILED", cause="HTTP status 500.", response_time_ms=40.0),
            a_new_result(
                5, "MISSED", check_id="tcp", kind=CheckType.TCP, response_time_ms=None, cause="no"
            ),
        ]
    )
    return board


def test_the_live_table_has_a_row_for_every_check() -> None:
    text = printed(live_table(a_busy_board(), now=START + timedelta(seconds=94), title="here"))
    front, quiet, echo = text.splitlines()[-3:]
    for word in ("Front page", "URL", "FAILED", "40.0 ms", "▁▁▁█", "1 min", "HTTP status 500."):
        assert word in front
    assert "waiting" in quiet
    assert "MISSED" in echo


def test_a_plain_line_tells_everything_about_a_result() -> None:
    line = plain_line(a_new_result(4, "FAILED", cause="HTTP\nstatus \x1b[2J500."))
    at = (START + timedelta(seconds=4)).astimezone().strftime("%H:%M:%S")
    words = [at, "FAILED", "URL", "Front page", "4.0 ms", "HTTP status ·[2J500."]
    assert line.split("  ")[0] == at
    for word in words:
        assert word in line
    assert "\n" not in line


def test_the_summary_counts_by_type_and_status() -> None:
    rows = [line.split() for line in printed(summary(a_busy_board())).splitlines() if line.strip()]
    assert rows[0] == ["type", "PASSED", "FAILED", "MISSED", "p50", "p95"]
    assert rows[1][:2] == ["TCP", "1"]
    assert rows[2][:3] == ["URL", "3", "1"]
    assert rows[3][:4] == ["all", "3", "1", "1"]


def test_the_verdict_names_what_was_missed() -> None:
    assert verdict(a_busy_board()) == "5 results: 3 good, 1 failed, 1 missed"
    assert verdict(a_board()) == "0 results: 0 good, 0 failed, none missed"
