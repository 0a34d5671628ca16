"""The dashboard drawn in a terminal."""

import asyncio
import os
import re
import sys
import termios
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from contract.checks import CheckType
from picket.terminal import duration, one_line
from picket.up.dashboard import BAD, NOT_RUN, CheckState, Dashboard, NewResult, percentile

_REFRESH_S: Final = 0.5


class Display(Protocol):
    """What `picket up` shows while it runs: a live table, or a line per result."""

    def show(self, results: list[NewResult]) -> None:
        """New results have come in; the dashboard has them already."""

    async def keep_fresh(self) -> None:
        """Redraw now and then, until cancelled."""


class PlainLines:
    """One line per result."""

    def __init__(self, console: Console, dashboard: Dashboard) -> None:
        self._console = console
        self._dashboard = dashboard
        self._has_told_missed = False

    def show(self, results: list[NewResult]) -> None:
        """Print them, oldest first, after the number of those missed before this start."""
        if not self._has_told_missed and (missed := missed_before(self._dashboard)):
            self._has_told_missed = True
            self._console.out(f"note     {missed}.", highlight=False)
        for result in results:
            self._console.out(plain_line(result), highlight=False)

    async def keep_fresh(self) -> None:
        """Lines stay as they are."""
        await asyncio.Event().wait()


class LiveTable:
    """One row per check, redrawn in place."""

    def __init__(self, live: Live, dashboard: Dashboard, title: str) -> None:
        self._live = live
        self._dashboard = dashboard
        self._title = title

    def show(self, results: list[NewResult]) -> None:  # noqa: ARG002 - the dashboard has them
        """Redraw."""
        now = datetime.now(UTC)
        # The console asks its terminal each time: people change its size.
        title = " · ".join(filter(None, (self._title, missed_before(self._dashboard))))
        table = live_table(self._dashboard, now=now, title=title, console=self._live.console)
        self._live.update(table, refresh=True)

    async def keep_fresh(self) -> None:
        """Redraw twice a second: ages grow."""
        while True:
            self.show([])
            await asyncio.sleep(_REFRESH_S)


@contextmanager
def open_display(console: Console, dashboard: Dashboard, *, title: str) -> Iterator[Display]:
    """The display that fits the console; the last table stays on the screen."""
    if not console.is_terminal or console.width < LEAST_WIDTH:
        yield PlainLines(console, dashboard)
        return
    with _silent_keys(), Live(console=console, auto_refresh=False) as live:
        yield LiveTable(live, dashboard, title)


@contextmanager
def _silent_keys() -> Iterator[None]:
    """Keys such as Ctrl-C print nothing: a `^C` in the table would move every line after it."""
    before = _read_terminal_settings()
    if before is None:
        yield
        return
    silent = [*before]
    silent[3] = before[3] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _read_terminal_settings() -> list[Any] | None:
    """The terminal's settings. None: there is no terminal, or it listens to another job."""
    try:
        # Who changes them from the background is stopped by the system.
        in_foreground = os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        return termios.tcgetattr(sys.stdin) if in_foreground else None
    except (AttributeError, OSError, ValueError, termios.error):
        return None


_STYLES: Final = {"PASSED": "green", "DEGRADED": "yellow", "FAILED": "red", "TIMED_OUT": "red"}
_NOT_RUN_STYLE: Final = "magenta"
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_STATUSES: Final = ("PASSED", "DEGRADED", "FAILED", "TIMED_OUT", "MISSED", "ERROR")


_CALL_LOG: Final = re.compile(r"\n(?:Timeout: *\d+ms\s*)?\s*Call log:.*", re.DOTALL)
_TYPE: Final = max(map(len, CheckType))
_WIDTHS: Final = {"type": _TYPE, "status": 9, "time": 10, "trend": 24, "since": 6}
_SIDES: Final[dict[str, Literal["left", "right"]]] = {
    "type": "left",
    "status": "left",
    "time": "right",
    "trend": "left",
    "since": "right",
}
_FLEXIBLE: Final = {"check": 4, "cause": 5}
"""These share what the others leave, in this proportion."""
_PADDING: Final = 2
"""Blanks beside each column."""
_AROUND_ROWS: Final = 3
"""Lines of the title, of the headings and of the cursor."""
_CAUSE_LETTERS: Final = 600
_LAYOUTS: Final = (
    (116, ("check", "type", "status", "time", "trend", "since", "cause")),
    (90, ("check", "type", "status", "time", "since", "cause")),
    (76, ("check", "status", "time", "since", "cause")),
    (52, ("check", "status", "time", "since")),
    (36, ("check", "status", "time")),
)
"""The least width of each set of columns."""
LEAST_WIDTH: Final = _LAYOUTS[-1][0]
"""Below it a table says less than lines do."""


_SUMMARY_WIDTH: Final = _TYPE + 2 * (2 + 9)
"""The width of the type and the two times; the statuses add to it."""


def style(status: str) -> str:
    """The colour of a status."""
    return _STYLES.get(status, _NOT_RUN_STYLE)


def live_table(dashboard: Dashboard, *, now: datetime, title: str, console: Console) -> Table:
    """One row per check, as it stands, with the columns that there is room for.

    A long cause takes lines that the terminal has left over.
    """
    table = Table(title=title, title_justify="left", title_style="dim", expand=True, box=None)
    shown = columns_for(console.width)
    widths = _column_widths(shown, console.width)
    for heading in shown:
        side = _SIDES.get(heading, "left")
        table.add_column(
            heading, no_wrap=True, overflow="ellipsis", justify=side, width=widths[heading]
        )
    rows = [_row(state, now) for state in dashboard.states.values()]
    if "cause" in shown:
        free = console.height - len(rows) - _AROUND_ROWS
        causes = [row.get("cause", Text()) for row in rows]
        for row, cause in zip(rows, _fit(causes, console, widths["cause"], free), strict=True):
            row["cause"] = cause
    for row in rows:
        table.add_row(*(row.get(heading, Text()) for heading in shown))
    return table


def _column_widths(shown: Sequence[str], width: int) -> dict[str, int]:
    fixed = {heading: _WIDTHS[heading] for heading in shown if heading in _WIDTHS}
    left = width - sum(fixed.values()) - _PADDING * len(shown)
    shares = {heading: _FLEXIBLE[heading] for heading in shown if heading in _FLEXIBLE}
    whole = sum(shares.values())
    return fixed | {heading: left * share // whole for heading, share in shares.items()}


def _fit(causes: Sequence[Text], console: Console, width: int, free: int) -> list[Text]:
    """Each cause on one line, or on more while there are free ones: one more to each in turn."""
    wrapped = [list(cause.wrap(console, width)) for cause in causes]
    lines = [1] * len(causes)
    for most in range(2, max(map(len, wrapped), default=0) + 1):
        for number, cause in enumerate(wrapped):
            if free > 0 and len(cause) >= most:
                lines[number] += 1
                free -= 1
    return [
        cause if len(parts) <= 1 else _join(parts, count, width)
        for cause, parts, count in zip(causes, wrapped, lines, strict=True)
    ]


def _join(parts: Sequence[Text], count: int, width: int) -> Text:
    """The first lines; the last one ends with what is left, which the column cuts."""
    last = Text(" ").join(part.copy() for part in parts[count - 1 :])
    last.truncate(width, overflow="ellipsis")
    return Text("\n").join([*parts[: count - 1], last])


def columns_for(width: int) -> tuple[str, ...]:
    """The columns of a table so wide; a status and a time are never cut."""
    return next((columns for least, columns in _LAYOUTS if width >= least), _LAYOUTS[-1][1])


def _row(state: CheckState, now: datetime) -> dict[str, Text]:
    """By heading; what there is not is left out."""
    last = state.last
    row = {"check": Text(one_line(state.name)), "type": Text(state.kind)}
    if last is None:
        return {**row, "status": Text("waiting", style="dim")}
    cause = one_line(_shorten(last.cause), limit=_CAUSE_LETTERS)
    row |= {
        "status": Text(last.status, style=style(last.status)),
        "time": Text(duration(last.response_time_ms)),
        "trend": _trend(state.trend),
        "since": Text(_age(state.since or last.at, now), style="dim"),
        "cause": Text(cause, style="dim"),
    }
    if state.is_earlier:
        row["cause"] = Text(_mark_earlier(last.at, now, cause), style="dim")
        for text in row.values():
            text.stylize("dim")
    return row


def _mark_earlier(at: datetime, now: datetime, cause: str) -> str:
    """Marks a result of an earlier start by its age."""
    age = f"{_age(at, now)} ago"
    return f"{age}: {cause}" if cause else age


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
    line = f"{at}  {result.status:<9}  {result.kind:<{_TYPE}}  {name:<28}  {took:>10}"
    return f"{line}  {one_line(_shorten(result.cause), limit=300)}" if result.cause else line


def _shorten(cause: str) -> str:
    """What was expected and what was there, without how Playwright went about it."""
    return _CALL_LOG.sub("", cause)


def summary(dashboard: Dashboard, *, width: int) -> Table | Text:
    """Results by type and status, and how long they took; as lines where no table fits."""
    seen = [status for status in _STATUSES if any(key[1] == status for key in dashboard.totals())]
    if width < _SUMMARY_WIDTH + sum(len(status) + 2 for status in seen):
        return _summary_lines(dashboard, seen)
    return _summary_table(dashboard, seen)


def _summary_lines(dashboard: Dashboard, seen: list[str]) -> Text:
    lines, counts = [], dashboard.totals()
    for kind in sorted({key[0] for key in counts}):
        told = [(counts[kind, status], status) for status in seen]
        p50, p95 = _summary_row(dashboard, kind, seen)[-2:]
        statuses = ", ".join(f"{count} {status}" for count, status in told if count)
        lines.append(f"{kind}: {statuses}\n  p50 {p50}, p95 {p95}")
    return Text("\n".join(lines))


def _summary_table(dashboard: Dashboard, seen: list[str]) -> Table:
    counts = dashboard.totals()
    table = Table(box=None, pad_edge=False, show_footer=True)
    table.add_column("type", footer="all")
    for status in seen:
        total = sum(count for key, count in counts.items() if key[1] == status)
        table.add_column(Text(status, style=style(status)), footer=str(total), justify="right")
    all_ms = [each for times_ms in dashboard.times_ms.values() for each in times_ms]
    for share in (0.5, 0.95):
        footer = duration(percentile(all_ms, share))
        table.add_column(f"p{share * 100:.0f}", footer=footer, justify="right")
    for kind in sorted({key[0] for key in counts}):
        table.add_row(*_summary_row(dashboard, kind, seen))
    return table


def _summary_row(dashboard: Dashboard, kind: CheckType, seen: list[str]) -> list[str]:
    times_ms, counts = list(dashboard.times_ms.get(kind, ())), dashboard.totals()
    return [
        kind,
        *(str(counts[kind, status] or "") for status in seen),
        *(duration(percentile(times_ms, share)) for share in (0.5, 0.95)),
    ]


def verdict(dashboard: Dashboard) -> str:
    """How it went, in one sentence."""
    total = dashboard.counts.total()
    missed = sum(count for key, count in dashboard.counts.items() if key[1] in NOT_RUN)
    failed = sum(count for key, count in dashboard.counts.items() if key[1] in BAD)
    not_run = f"{missed} missed" if missed else "none missed"
    said = f"{total} results: {total - failed - missed} good, {failed} failed, {not_run}"
    return "; ".join(filter(None, (said, missed_before(dashboard))))


def missed_before(dashboard: Dashboard) -> str:
    """How many runs nobody did before this start. Empty: none."""
    count = dashboard.missed_before.total()
    runs = "run" if count == 1 else "runs"
    return f"{count} {runs} missed while Picket was stopped" if count else ""
