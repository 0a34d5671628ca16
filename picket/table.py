"""The board as a live table, as plain lines and as a summary. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from contract.checks import CheckType
from picket.board import BAD, NOT_RUN, Board, NewResult, Standing, percentile
from picket.printable import duration, one_line

_STYLES: Final = {"PASSED": "green", "DEGRADED": "yellow", "FAILED": "red", "TIMED_OUT": "red"}
_NOT_RUN_STYLE: Final = "magenta"
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_STATUSES: Final = ("PASSED", "DEGRADED", "FAILED", "TIMED_OUT", "MISSED", "ERROR")


def style(status: str) -> str:
    """The colour of a status."""
    return _STYLES.get(status, _NOT_RUN_STYLE)


def live_table(board: Board, *, now: datetime, title: str) -> Table:
    """One row per check, as it stands."""
    table = Table(title=title, title_justify="left", title_style="dim", expand=True, box=None)
    for heading in ("check", "type", "status"):
        table.add_column(heading, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("trend", no_wrap=True)
    table.add_column("since", justify="right", no_wrap=True)
    table.add_column("cause", ratio=1, no_wrap=True, overflow="ellipsis")
    for standing in board.standings.values():
        table.add_row(*_row(standing, now))
    return table


def _row(standing: Standing, now: datetime) -> tuple[Text, ...]:
    last = standing.last
    name, kind = Text(one_line(standing.name)), Text(standing.kind)
    if last is None:
        return name, kind, Text("waiting", style="dim")
    return (
        name,
        kind,
        Text(last.status, style=style(last.status)),
        Text(duration(last.response_time_ms)),
        _trend(standing.trend),
        Text(_age(standing.since or last.at, now), style="dim"),
        Text(one_line(last.cause), style="dim"),
    )


def _trend(results: Iterable[NewResult]) -> Text:
    """A small chart of response times in the colours of the statuses."""
    shown = list(results)
    most = max((each.response_time_ms or 0 for each in shown), default=0) or 1
    chart = Text()
    for each in shown:
        share = (each.response_time_ms or 0) / most
        level = _LEVELS[min(len(_LEVELS) - 1, int(share * len(_LEVELS)))]
        chart.append("·" if each.status in NOT_RUN else level, style=style(each.status))
    return chart


def _age(since: datetime, now: datetime) -> str:
    seconds = max(0, int((now - since).total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def plain_line(result: NewResult) -> str:
    """One result on one line, for a log or a pipe."""
    at = result.at.astimezone().strftime("%H:%M:%S")
    took = duration(result.response_time_ms)
    name = one_line(result.check_name, limit=60)
    line = f"{at}  {result.status:<9}  {result.kind:<9}  {name:<28}  {took:>9}"
    return f"{line}  {one_line(result.cause, limit=300)}" if result.cause else line


def summary(board: Board) -> Table:
    """Results by type and status, and how long they took."""
    counts = board.counts
    seen = [status for status in _STATUSES if any(key[1] == status for key in counts)]
    table = Table(box=None, pad_edge=False, show_footer=True)
    table.add_column("type", footer="all")
    for status in seen:
        total = sum(count for key, count in counts.items() if key[1] == status)
        table.add_column(Text(status, style=style(status)), footer=str(total), justify="right")
    all_ms = [each for times_ms in board.times_ms.values() for each in times_ms]
    for share in (0.5, 0.95):
        footer = duration(percentile(all_ms, share))
        table.add_column(f"p{share * 100:.0f}", footer=footer, justify="right")
    for kind in sorted({key[0] for key in counts}):
        table.add_row(*_summary_row(board, kind, seen))
    return table


def _summary_row(board: Board, kind: CheckType, seen: list[str]) -> list[str]:
    times_ms = list(board.times_ms.get(kind, ()))
    return [
        kind,
        *(str(board.counts[kind, status] or "") for status in seen),
        *(duration(percentile(times_ms, share)) for share in (0.5, 0.95)),
    ]


def verdict(board: Board) -> str:
    """How it went, in one sentence."""
    total = board.counts.total()
    missed = sum(count for key, count in board.counts.items() if key[1] in NOT_RUN)
    failed = sum(count for key, count in board.counts.items() if key[1] in BAD)
    not_run = f"{missed} missed" if missed else "none missed"
    return f"{total} results: {total - failed - missed} good, {failed} failed, {not_run}"
