"""`/`: all checks as a list: what is in trouble first, then by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

from markupsafe import escape
from sqlalchemy import Connection
from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

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
from service.web.api_calls import ApiAnswer
from service.web.check.ranges import RANGES, USUAL, usual_range
from service.web.form_data import read_form
from service.web.page_routing import Pages
from service.web.rendering import html_response
from service.web.states import State, Strip, draw_sparkline, draw_strip, state_of_run
from service.web.visit import Visit
from service.web.words import format_duration, format_plural

PAGE_ROWS: Final = 100
_MOST_TAGS: Final = 200
_MOST_LABELS: Final = 4
_MOST_LETTERS: Final = 200
_MOST_PAGES: Final = 10_000
_RANGE_WORDS: Final = {
    "1h": "1 hour",
    "6h": "6 hours",
    "24h": "24 hours",
    "7d": "7 days",
    "30d": "30 days",
}
MUTED: Final = "muted"
MAINTENANCE: Final = "maintenance"
_TYPES: Final = tuple(kind for kind in CheckType if kind is not CheckType.AGENTIC)
TYPE_WORDS: Final[Mapping[CheckType, str]] = {
    CheckType.MULTI_STEP: "Multi-step",
    CheckType.BROWSER: "Browser",
    CheckType.HEARTBEAT: "Heartbeat",
    CheckType.PLAYWRIGHT: "Playwright",
    CheckType.AGENTIC: "Agentic",
}
"""What people call a type; the others are known by their own names."""


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The overview."""
    return (
        pages.show("/", _show),
        pages.show("/overview/list", _show_list),
        pages.change("/overview/run", _run),
        pages.change("/overview/run-listed", _run_listed),
        pages.show("/overview/run/{session}", _wait),
    )


def type_word(kind: CheckType) -> str:
    """What people call a type of checks."""
    return TYPE_WORDS.get(kind, kind.value)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address asks for."""

    wanted: Wanted
    range: str
    usual: str
    """The range that is shown where an address names none."""
    page: int

    def address(self, **changes: Any) -> str:
        """The query of the same list with changes: of a filter, the range or the page."""
        page = changes.pop("page", 1)
        length = changes.pop("range", self.range)
        one = replace(self.wanted, **changes)
        quiet = MUTED if one.is_muted else MAINTENANCE if one.is_maintained else ""
        pairs = [
            ("q", one.search),
            ("status", one.state or quiet),
            ("type", one.kind or ""),
            *(("tag", tag) for tag in one.tags),
            ("location", one.location),
            ("group", "" if one.group_id is None else one.group_id),
            ("by", one.grouping or ""),
            ("range", "" if length == self.usual else length),
            ("page", str(page) if page > 1 else ""),
        ]
        query = urlencode([(name, str(value)) for name, value in pairs if value])
        return f"?{query}" if query else ""


def read_address(query: QueryParams, *, usual: str) -> _Asked:
    """What an address asks for; what it names that there is not is passed over."""
    status = query.get("status", "")
    length, page = query.get("range", ""), query.get("page", "")
    wanted = Wanted(
        search=_text(query.get("q", "")),
        state=_member(CheckState, status),
        is_muted=status == MUTED,
        is_maintained=status == MAINTENANCE,
        kind=_member(CheckType, query.get("type", "")),
        tags=tuple(dict.fromkeys(filter(None, map(_text, query.getlist("tag")))))[:20],
        location=_text(query.get("location", "")),
        group_id=_number(query.get("group", ""), most_digits=15),
        grouping=_member(Grouping, query.get("by", "")),
    )
    number = _number(page, most_digits=5) or 1
    return _Asked(
        wanted,
        length if length in RANGES else usual,
        usual,
        min(max(number, 1), _MOST_PAGES),
    )


def _text(value: str) -> str:
    return value.replace("\0", "").strip()[:_MOST_LETTERS]


def _number(value: str, *, most_digits: int) -> int | None:
    is_number = value.isascii() and value.isdigit() and len(value) <= most_digits
    return int(value) if is_number else None


def _member(kind: Any, value: str) -> Any:
    return kind(value) if value in frozenset(kind) else None


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
class _Listed:
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


def _ask(connection: Connection, visit: Visit) -> _Asked:
    made_ms = accounts.find_account(connection, visit.account_id).created_ms
    usual = usual_range(made_ms, now_ms=visit.now_ms(connection))
    return read_address(visit.request.query_params, usual=usual)


async def _show(visit: Visit) -> Response:
    def read(
        connection: Connection,
    ) -> tuple[_Asked, _Listed, Sequence[str], Sequence[tuple[str, str]]]:
        account_id, asked = visit.account_id, _ask(connection, visit)
        tags = overview.list_tags(connection, account_id, most=_MOST_TAGS)
        places = [(one.slug_name, one.name) for one in locations.list_all(connection, account_id)]
        return asked, _read(connection, visit, asked), tags, places

    asked, listed, tags, places = await visit.read(read)
    return visit.page(
        "overview.html",
        **_shared(asked, listed, is_part=False),
        live="/live",
        tags=tags,
        places=places,
        types=[(kind.value, type_word(kind)) for kind in _TYPES],
        ranges=_RANGE_WORDS,
        groupings=list(Grouping),
        base_url=visit.base_url,
    )


async def _show_list(visit: Visit) -> Response:
    """The list alone: another page of it, or as it is now."""

    def read(connection: Connection) -> tuple[_Asked, _Listed]:
        asked = _ask(connection, visit)
        return asked, _read(connection, visit, asked)

    asked, listed = await visit.read(read)
    answer = visit.page("overview_list.html", **_shared(asked, listed, is_part=True))
    if asked.page == 1:
        answer.headers["hx-push-url"] = visit.renderer.url("/") + asked.address()
    return answer


def _shared(asked: _Asked, listed: _Listed, *, is_part: bool) -> dict[str, Any]:
    return {
        "asked": asked,
        "wanted": asked.wanted,
        "listed": listed,
        "now_ms": listed.now_ms,
        "states": list(CheckState),
        "troubles": TROUBLE,
        "range_word": _RANGE_WORDS[asked.range],
        "is_part": is_part,
        "most_rows": PAGE_ROWS,
    }


def _read(connection: Connection, visit: Visit, asked: _Asked) -> _Listed:
    account_id, now_ms = visit.account_id, visit.now_ms(connection)
    opened = maintenance.list_open(connection, account_id, now_ms=now_ms)
    wanted = _complete(asked.wanted, opened)
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
    return _Listed(
        now_ms=now_ms,
        counts=overview.count_states(connection, account_id, now_ms=now_ms),
        maintained=_count_maintained(connection, account_id, opened, now_ms=now_ms),
        matching=matching,
        quiet=overview.list_quiet_locations(connection, account_id, now_ms=now_ms),
        sections=_put_together(shown, headings, names, wanted.grouping),
        has_more=len(found) > PAGE_ROWS,
    )


def _complete(wanted: Wanted, opened: Sequence[OpenWindow]) -> Wanted:
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
    wanted = _complete(Wanted(is_maintained=True), opened)
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
    asked: _Asked,
) -> _Row:
    is_heading = asked.wanted.grouping is Grouping.GROUP
    group = "" if is_heading else group_names.get(str(row.group_id), "")
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
    span = f"{_RANGE_WORDS[length]} in slots of {slot}"
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
            return key.capitalize()
        case None:
            return ""


async def _run(visit: Visit) -> Response:
    """Run a check now; says so in one line, and where to wait for its end."""
    form = await read_form(visit.request)
    check_id = form.text("check")
    body = {"target": {"checkId": [check_id]}}
    answer = await visit.call("POST /v1/check-sessions/trigger", body)
    if answer.is_error:
        return JSONResponse({"line": answer.message})
    session = answer.body["sessions"][0]
    name, session_id = session["name"], session["checkSessionId"]
    return JSONResponse({"line": f"{name} runs now.", "next": f"/overview/run/{session_id}"})


async def _run_listed(visit: Visit) -> Response:
    """Run the checks of a filtered list now, as far as its first page goes."""
    query = QueryParams((await read_form(visit.request)).text("list"))

    def read(connection: Connection) -> tuple[str, list[str]]:
        account_id, now_ms = visit.account_id, visit.now_ms(connection)
        asked = read_address(query, usual=USUAL)
        opened = maintenance.list_open(connection, account_id, now_ms=now_ms)
        wanted, page = _complete(asked.wanted, opened), (PAGE_ROWS, 0)
        rows = overview.list_rows(connection, account_id, wanted, now_ms=now_ms, page=page)
        return asked.address(), [row.id for row in rows]

    address, check_ids = await visit.read(read)
    wanted = {"target": {"checkId": check_ids}}
    answer = await visit.call("POST /v1/check-sessions/trigger", wanted)
    if visit.request.headers.get("hx-request") == "true":
        return html_response(visit.request, str(escape(_describe_started(answer))))
    if answer.is_error:
        return visit.page(
            "check_refusal.html", status=answer.status, message=answer.message, back=f"/{address}"
        )
    return visit.go(f"/{address}")


def _describe_started(answer: ApiAnswer) -> str:
    if answer.is_error:
        return answer.message
    line = f"{format_plural(len(answer.body['sessions']), 'check')} started; results follow here."
    left = len(answer.body.get("notRun", ()))
    return f"{line} {left} not started: paused, or a heartbeat." if left else line


async def _wait(visit: Visit) -> Response:
    """How a run that was asked for ended."""
    session_id = quote(visit.request.path_params["session"], safe="")
    answer = await visit.call(f"GET /v1/check-sessions/{session_id}/completion")
    if answer.status == HTTPStatus.REQUEST_TIMEOUT:
        return JSONResponse({"line": "It still runs.", "next": f"/overview/run/{session_id}"})
    if answer.is_error:
        return JSONResponse({"line": answer.message})
    name, status = answer.body["name"], answer.body["status"]
    took = format_duration(answer.body["timeElapsed"])
    return JSONResponse({"line": f"{name}: {status.lower().replace('_', ' ')} after {took}."})
