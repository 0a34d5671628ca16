"""A page of checks as a list, with all that it shows of each; as many reads for 100 as for one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.accounts import actions as accounts
from service.checks import actions as checks
from service.groups import actions as groups
from service.groups.model import GroupRow
from service.locations import actions as locations
from service.maintenance import actions as maintenance
from service.maintenance.actions import OpenWindow
from service.maintenance.model import Occurrence
from service.overview import actions as overview
from service.overview.model import (
    TROUBLE,
    CheckState,
    Grouping,
    OverviewRow,
    QuietLocation,
    Recent,
    StateCounts,
    Wanted,
)
from service.results.model import RunStatus
from service.web.check.ranges import RANGES, usual_range
from service.web.overview.list_address import HOME, RANGE_WORDS, Asked, read_address, type_word
from service.web.states import (
    State,
    Strip,
    draw_sparkline,
    draw_strip,
    name_state,
    state_of_run,
)
from service.web.visit import Visit
from service.web.words import format_duration, format_plural

PAGE_ROWS: Final = 100
_MOST_LABELS: Final = 4


def read_asked(connection: Connection, visit: Visit) -> Asked:
    """What the address of a visit asks for."""
    made_ms = accounts.find_account(connection, visit.account_id).created_ms
    usual = usual_range(made_ms, now_ms=visit.now_ms(connection))
    return read_address(visit.request.query_params, usual=usual)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A check as the list shows it."""

    row: OverviewRow
    seen: "_Seen"
    kind: str
    labels: Sequence[str]
    """Its group, and some of its tags."""
    places: str
    strip: Strip
    line: str
    line_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """Rows under one heading."""

    key: str
    heading: str
    counts: Mapping[CheckState, int]
    rows: Sequence[_Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """All that was read for a page of the list."""

    now_ms: int
    counts: StateCounts
    maintained: int
    """To how many checks an open maintenance window applies."""
    matching: int | None
    """How many checks match the filter. None: there is no filter."""
    quiet: Sequence[QuietLocation]
    sections: Sequence[_Section]
    has_more: bool


def list_values(asked: Asked, listed: Listed, *, is_part: bool) -> dict[str, Any]:
    """What the template of the list draws."""
    return {
        "asked": asked,
        "wanted": asked.wanted,
        "listed": listed,
        "now_ms": listed.now_ms,
        "states": list(CheckState),
        "troubles": TROUBLE,
        "range_word": RANGE_WORDS[asked.range],
        "is_part": is_part,
        "most_rows": PAGE_ROWS,
        "group": None,
    }


def read_list(connection: Connection, visit: Visit, asked: Asked) -> Listed:
    """Read the page of the list that is asked for."""
    account_id, now_ms = visit.account_id, visit.now_ms(connection)
    opened = maintenance.list_open(connection, account_id, now_ms=now_ms)
    wanted = complete(asked.wanted, opened)
    offset = (asked.page - 1) * PAGE_ROWS
    found = overview.list_rows(
        connection, account_id, wanted, now_ms=now_ms, page=(PAGE_ROWS + 1, offset)
    )
    headings: Mapping[str, Mapping[CheckState, int]] = {}
    if wanted.is_filter or wanted.grouping is not None:
        headings = overview.count_headings(connection, account_id, wanted, now_ms=now_ms)
    matching = sum(sum(one.values()) for one in headings.values()) if wanted.is_filter else None
    rows = found[:PAGE_ROWS]
    by_id = groups.list_by_id(connection, account_id)
    names = {str(one.id): one.name for one in by_id.values()}
    window = (now_ms - RANGES[asked.range][1], now_ms)
    shown = [
        _show_row(connection, row, seen, names, asked)
        for row, seen in _look_up(connection, rows, window, _Around(account_id, by_id, opened))
    ]
    return Listed(
        now_ms=now_ms,
        counts=overview.count_states(connection, account_id, now_ms=now_ms),
        maintained=_count_maintained(connection, account_id, opened, now_ms=now_ms),
        matching=matching,
        quiet=overview.list_quiet_locations(connection, account_id, now_ms=now_ms),
        sections=_put_together(shown, headings, names, wanted.grouping),
        has_more=len(found) > PAGE_ROWS,
    )


def complete(wanted: Wanted, opened: Sequence[OpenWindow]) -> Wanted:
    """With the tags of the open windows, where checks in maintenance are asked for."""
    applies_to_all = any(not one.window.tags for one in opened)
    if not wanted.is_maintained or applies_to_all:
        return wanted
    tags = {tag for one in opened for tag in one.window.tags}
    return replace(wanted, any_of_tags=tuple(sorted(tags)))


def _count_maintained(
    connection: Connection, account_id: str, opened: Sequence[OpenWindow], *, now_ms: int
) -> int:
    if not opened:
        return 0
    wanted = complete(Wanted(is_maintained=True), opened)
    found = overview.count_headings(connection, account_id, wanted, now_ms=now_ms)
    return sum(sum(counts.values()) for counts in found.values())


@dataclass(frozen=True, slots=True)
class _Around:
    """What is known of the account that checks of a page share."""

    account_id: str
    groups: Mapping[int, GroupRow]
    opened: Sequence[OpenWindow]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What is known of a check besides its row."""

    recent: Recent
    reason: str
    """Empty: it passes, or nothing is stored of why it does not."""
    tags: Sequence[str]
    places: Sequence[str]
    """Names of its locations."""
    maintained: Occurrence | None
    """The maintenance window that applies to it now. None: none does."""


def _look_up(
    connection: Connection, rows: Sequence[OverviewRow], window: tuple[int, int], around: _Around
) -> Iterator[tuple[OverviewRow, _Seen]]:
    ids = [row.id for row in rows]
    names = {one.id: one.name for one in locations.list_all(connection, around.account_id)}
    at = checks.find_locations_of_many(connection, ids)
    recent = overview.find_recent(connection, rows, at, window=window)
    reasons = overview.find_reasons(connection, rows)
    tags = overview.find_tags(connection, ids)
    for row in rows:
        group = around.groups.get(row.group_id or 0)
        own = (*tags.get(row.id, ()), *((group.doc.get("tags") or ()) if group else ()))
        yield (
            row,
            _Seen(
                recent=recent[row.id],
                reason=reasons.get(row.id, ""),
                tags=tags.get(row.id, ()),
                places=[names[one] for one in at.get(row.id, ()) if one in names],
                maintained=maintenance.find_applying(around.opened, own),
            ),
        )


def _show_row(
    connection: Connection,
    row: OverviewRow,
    seen: _Seen,
    group_names: Mapping[str, str],
    asked: Asked,
) -> _Row:
    is_known = asked.wanted.grouping is Grouping.GROUP or asked.home != HOME
    group = "" if is_known else group_names.get(str(row.group_id), "")
    return _Row(
        row=row,
        seen=seen,
        kind=type_word(row.kind),
        labels=[*filter(None, [group]), *seen.tags[:_MOST_LABELS]],
        places=_name_places(connection, row, seen.places),
        strip=_draw_strip(seen.recent, asked.range),
        line=draw_sparkline(seen.recent.line),
        line_text=_describe_line(seen.recent.line),
    )


def _name_places(connection: Connection, row: OverviewRow, names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    if row.state in {CheckState.FAILING, CheckState.DEGRADED}:
        bad, looked = overview.find_failing_locations(connection, row.id)
        if 0 < bad < looked:
            return f"{bad} of {len(names)} locations"
    return f"{len(names)} locations"


_OF_MARKS: Final[Mapping[RunStatus | None, State]] = {
    None: State.UNKNOWN,
    **{status: state_of_run(status) for status in RunStatus},
}


def _draw_strip(recent: Recent, length: str) -> Strip:
    slot = format_duration(RANGES[length][1] / len(recent.marks))
    span = f"{RANGE_WORDS[length]} in slots of {slot}"
    parts = [f"{span}: {format_plural(recent.runs, 'run')}"]
    if recent.failed:
        parts.append(f"{recent.failed} failed")
    if recent.missed:
        parts.append(f"{recent.missed} missed")
    passed = RunStatus.PASSED  # nearly all, and to compare is quicker than to look up
    states = [State.PASSING if one is passed else _OF_MARKS[one] for one in recent.marks]
    return draw_strip(states, text=", ".join(parts))


def _describe_line(values: Sequence[float | None]) -> str:
    known = [one for one in values if one is not None]
    if not known:
        return "No response times"
    return f"{format_duration(min(known))} to {format_duration(max(known))}"


def _put_together(
    rows: Sequence[_Row],
    headings: Mapping[str, Mapping[CheckState, int]],
    group_names: Mapping[str, str],
    grouping: Grouping | None,
) -> list[_Section]:
    sections: list[tuple[str, list[_Row]]] = []
    for one in rows:
        key = one.row.heading
        if not sections or sections[-1][0] != key:
            sections.append((key, []))
        sections[-1][1].append(one)
    return [
        _Section(
            key=key,
            heading=_name_heading(key, group_names, grouping),
            counts=headings.get(key, {}),
            rows=some,
        )
        for key, some in sections
    ]


def _name_heading(key: str, group_names: Mapping[str, str], grouping: Grouping | None) -> str:
    match grouping:
        case Grouping.GROUP:
            return group_names.get(key, "In no group")
        case Grouping.TYPE:
            return type_word(CheckType(key))
        case Grouping.STATUS:
            return name_state(key).capitalize()
        case None:
            return ""
