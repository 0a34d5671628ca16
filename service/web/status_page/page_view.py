"""What a status page says, ready for its template."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from service.incidents.model import Incident, IncidentStatus, Severity
from service.incidents.rules import find_course, list_public
from service.status_pages.model import Card, Maintenance, ServiceRow, StatusPage
from service.web.states import State
from service.web.status_page.history import (
    STATE_OF,
    WORD_OF,
    Affected,
    History,
    draw_history,
    list_affected,
    month_of,
)
from service.web.status_page.visitor_text import (
    format_day_and_time,
    format_month,
    format_since,
    format_span,
)
from service.web.words import format_duration

PAST_MS: Final = 90 * 86_400_000
MOST_PAST: Final = 50
_MOST_UPDATES: Final = 20
_MOST_DRAWN: Final = 100
"""Services with a history; a page of thousands would be slow to load and hard to read."""
_MOST_ANNOUNCED: Final = 5
_WORST_FIRST: Final = tuple(Severity)
_NAMED: Final = 2
_SAYS: Final = {
    Severity.MINOR: "had minor problems",
    Severity.MEDIUM: "been degraded",
    Severity.MAJOR: "been partly down",
    Severity.CRITICAL: "been down",
}
STATUS: Final = {
    IncidentStatus.INVESTIGATING: "Investigating",
    IncidentStatus.IDENTIFIED: "Identified",
    IncidentStatus.MONITORING: "Monitoring",
    IncidentStatus.RESOLVED: "Resolved",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceView:
    """A service on a card."""

    name: str
    state: State
    word: str
    history: History | None
    """None: the page has too many services to draw it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    """A card."""

    name: str
    services: tuple[ServiceView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateView:
    """An update of an incident."""

    id: str
    status: str
    description: str
    at_ms: int
    time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentView:
    """An incident."""

    id: str
    name: str
    severity: str
    state: State
    services: str
    """The services of the page that it affects."""
    began_ms: int
    when: str
    """`since 02:58 UTC`, or from when to when and for how long."""
    updates: tuple[UpdateView, ...]
    """The newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthView:
    """The incidents that began in a month."""

    name: str
    incidents: tuple[IncidentView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceView:
    """Scheduled maintenance."""

    name: str
    services: str
    """The services of the page that it concerns."""
    when: str
    """`until 04:00 UTC`, or from when to when."""
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """A status page."""

    name: str
    description: str
    sentence: str
    state: State
    cards: tuple[CardView, ...]
    current: tuple[IncidentView, ...]
    maintenance: tuple[MaintenanceView, ...]
    """What goes on, and what begins within a week."""
    months: tuple[MonthView, ...]
    """Closed incidents, the newest first."""
    has_more: bool
    """Whether more incidents were closed within the time than are shown."""

    @property
    def shows_uptime(self) -> bool:
        """Whether any service has an uptime yet."""
        histories = (one.history for card in self.cards for one in card.services)
        return any(one is not None and one.uptime is not None for one in histories)


def build_view(
    page: StatusPage,
    incidents: Sequence[Incident],
    maintenance: Sequence[Maintenance],
    *,
    now_ms: int,
) -> PageView:
    """What a page says, of whose services `incidents` are the newest ones."""
    services = page.list_services()
    names = {one.id: one.name for one in services}
    open_ones, past = _divide(incidents, now_ms=now_ms)
    shown = [_view_incident(one, names, now_ms=now_ms) for one in past[:MOST_PAST]]
    months = groupby(shown, key=lambda one: month_of(one.began_ms))
    affected = list_affected(incidents, now_ms=now_ms)
    drawn = {one.id for one in services[:_MOST_DRAWN]}
    return PageView(
        name=page.name,
        description=page.look.get("description") or "",
        sentence=describe_state(services, open_ones, now_ms=now_ms),
        state=STATE_OF[_worst(open_ones)],
        cards=tuple(_view_card(card, affected, drawn, now_ms=now_ms) for card in page.cards),
        current=tuple(_view_incident(one, names, now_ms=now_ms) for one in open_ones),
        maintenance=tuple(
            _view_maintenance(one, names, now_ms=now_ms) for one in maintenance[:_MOST_ANNOUNCED]
        ),
        months=tuple(_view_month(tuple(found)) for _, found in months),
        has_more=len(past) > MOST_PAST,
    )


def describe_state(
    services: Sequence[ServiceRow], open_ones: Sequence[Incident], *, now_ms: int
) -> str:
    """The page in one sentence, as in: Checkout has been degraded since 02:58 UTC."""
    worst = _worst(open_ones)
    if worst is None:
        return "All services are operational." if services else "No services are shown yet."
    causes = [one for one in open_ones if one.severity is worst]
    names = [one.name for one in services if any(one.id in cause.service_ids for cause in causes)]
    since_ms = min(
        course.began_ms
        for one in causes
        if (course := find_course(one.updates, now_ms=now_ms)) is not None
    )
    has = "has" if len(names) == 1 else "have"
    since = format_since(since_ms, now_ms=now_ms)
    return f"{_list_names(names)} {has} {_SAYS[worst]} since {since}."


def _list_names(names: Sequence[str]) -> str:
    if len(names) > _NAMED + 1:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _divide(incidents: Iterable[Incident], *, now_ms: int) -> tuple[list[Incident], list[Incident]]:
    """Open ones, the worst first; and those that were closed lately, the newest first."""
    open_ones, past = [], []
    for one in incidents:
        course = find_course(one.updates, now_ms=now_ms)
        if course is None:
            continue
        if course.ended_ms is None:
            open_ones.append((_WORST_FIRST.index(one.severity), -course.began_ms, one))
        elif course.ended_ms >= now_ms - PAST_MS:
            past.append((-course.began_ms, one))
    open_ones.sort(key=lambda found: found[:2])
    past.sort(key=lambda found: found[0])
    return [found[-1] for found in open_ones], [found[-1] for found in past]


def _worst(incidents: Iterable[Incident]) -> Severity | None:
    return min((one.severity for one in incidents), key=_WORST_FIRST.index, default=None)


def _view_card(
    card: Card, affected: Sequence[Affected], drawn: set[str], *, now_ms: int
) -> CardView:
    services = []
    for one in card.services:
        own = [stretch for stretch in affected if one.id in stretch.service_ids]
        services.append(_view_service(one, own, is_drawn=one.id in drawn, now_ms=now_ms))
    return CardView(name=card.name, services=tuple(services))


def _view_service(
    service: ServiceRow, affected: Sequence[Affected], *, is_drawn: bool, now_ms: int
) -> ServiceView:
    open_ones = [one.severity for one in affected if one.is_open]
    worst = min(open_ones, key=_WORST_FIRST.index, default=None)
    created_ms = service.created_ms
    return ServiceView(
        name=service.name,
        state=STATE_OF[worst],
        word=WORD_OF[worst],
        history=draw_history(affected, created_ms=created_ms, now_ms=now_ms) if is_drawn else None,
    )


def _view_maintenance(
    one: Maintenance, names: Mapping[str, str], *, now_ms: int
) -> MaintenanceView:
    is_open = one.begins_ms <= now_ms
    return MaintenanceView(
        name=one.name,
        services=", ".join(names[service_id] for service_id in one.service_ids),
        when=f"until {format_since(one.ends_ms, now_ms=now_ms)}"
        if is_open
        else format_span(one.begins_ms, one.ends_ms),
        is_open=is_open,
    )


def _view_month(incidents: tuple[IncidentView, ...]) -> MonthView:
    return MonthView(name=format_month(incidents[0].began_ms), incidents=incidents)


def _view_incident(incident: Incident, names: dict[str, str], *, now_ms: int) -> IncidentView:
    course = find_course(incident.updates, now_ms=now_ms)
    if course is None:
        raise ValueError("an incident without a public update is shown nowhere")
    newest_first = list(reversed(list_public(incident.updates, now_ms=now_ms)))
    if course.ended_ms is None:
        when = f"since {format_since(course.began_ms, now_ms=now_ms)}"
    else:
        lasted = format_duration(max(course.duration_s(now_ms), 1) * 1000)
        when = f"{format_span(course.began_ms, course.ended_ms)} ({lasted})"
        newest_first = newest_first[:_MOST_UPDATES]
    return IncidentView(
        id=incident.id,
        name=incident.name,
        severity=WORD_OF[incident.severity],
        state=STATE_OF[incident.severity],
        services=", ".join(name for one, name in names.items() if one in incident.service_ids),
        began_ms=course.began_ms,
        when=when,
        updates=tuple(
            UpdateView(
                id=one.id,
                status=STATUS[one.status],
                description=one.description,
                at_ms=one.public_ms,
                time=format_day_and_time(one.public_ms),
            )
            for one in newest_first
        ),
    )
