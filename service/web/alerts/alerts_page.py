"""`/alerts`: what went wrong, who was notified, and how it ended."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.alerting import actions as alerting
from service.alerting.model import AlertFilter, AlertType, LocationAlert, StoredAlert
from service.checks import actions as checks
from service.incidents import actions as incidents
from service.incidents.model import Incident
from service.maintenance import actions as maintenance
from service.maintenance.model import Occurrence
from service.results import actions as results
from service.web.alerts.alert_words import (
    Door,
    Sent,
    describe_alert,
    explain_silence,
    find_door,
    list_sent,
)
from service.web.page_routing import Pages
from service.web.states import State
from service.web.visit import Visit

_DAY_MS: Final = 86_400_000
_DAYS: Final = (1, 7, 30)
_MOST: Final = 500
"""The most alerts that a page has."""
_MOST_LASTING: Final = 50
_MOST_OF_LASTING: Final = 20
"""For a check that has been failing for longer than the page looks back."""


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The page."""
    return (pages.show("/alerts", _show),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One alert of an episode."""

    at_ms: int
    state: State
    word: str
    sent: Sequence[Sent]
    note: str
    """Why nobody was notified; empty: somebody was."""
    door: Door | None = None
    """Where that is set. None: nowhere."""
    result_id: str | None
    """None: no result is stored any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """From the first alert of a check to its recovery."""

    check_id: str = ""
    """Empty: it is about a location."""
    name: str
    path: str
    """Leads to the check or the location. Empty: it is not there any more."""
    state: State
    """How the newest alert left it."""
    sentence: str
    since_ms: int
    until_ms: int | None
    """None: it goes on."""
    where: str
    """Locations in words; empty when nothing is to be said."""
    moments: Sequence[Moment]
    """The oldest first."""
    incidents: Sequence[Incident] = ()
    """What its alerts opened on status pages."""
    maintained: Occurrence | None = None
    """The maintenance window that covers the check now. None: none does, or it is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """A maintenance window that is open now."""

    now: Occurrence
    checks: int
    """How many it covers."""


def group_alerts(oldest_first: Iterable[StoredAlert]) -> list[list[StoredAlert]]:
    """Alerts of each check up to a recovery; one about a certificate stands for itself."""
    open_of: dict[str, list[StoredAlert]] = {}
    found: list[list[StoredAlert]] = []
    for one in oldest_first:
        alert = one.alert
        if alert.alert_type is AlertType.SSL:
            found.append([one])
            continue
        episode = open_of.get(alert.check_id)
        if episode is None:
            episode = open_of[alert.check_id] = []
            found.append(episode)
        episode.append(one)
        if alert.alert_type.is_recovery:
            del open_of[alert.check_id]
    return found


def group_location_alerts(oldest_first: Iterable[LocationAlert]) -> list[list[LocationAlert]]:
    """Alerts of each location up to a recovery."""
    open_of: dict[str, list[LocationAlert]] = {}
    found: list[list[LocationAlert]] = []
    for one in oldest_first:
        episode = open_of.get(one.location)
        if episode is None:
            episode = open_of[one.location] = []
            found.append(episode)
        episode.append(one)
        if one.is_recovery:
            del open_of[one.location]
    return found


async def _show(visit: Visit) -> Response:
    asked = visit.request.query_params.get("days", "")
    days = int(asked) if asked in map(str, _DAYS) else _DAYS[1]
    check_id = visit.request.query_params.get("check") or None

    read = partial(_read, account_id=visit.account_id, check_id=check_id, days=days)
    now_ms = await visit.read(visit.now_ms)
    episodes, covering, has_more = await visit.read(partial(read, now_ms=now_ms))
    newest_first = sorted(episodes, key=lambda one: -one.since_ms)
    return visit.page(
        "alerts.html",
        going_on=[one for one in newest_first if one.until_ms is None],
        past=[one for one in newest_first if one.until_ms is not None],
        covering=[one for one in covering if one.checks],
        now_ms=now_ms,
        days=days,
        all_days=_DAYS,
        check_id=check_id,
        has_more=has_more,
    )


def _read(
    connection: Connection, *, account_id: str, check_id: str | None, days: int, now_ms: int
) -> tuple[list[Episode], Sequence[Covering], bool]:
    """Episodes, the windows that are open, and whether there are more alerts."""
    wanted = AlertFilter(
        account_id=account_id,
        check_id=check_id,
        from_ms=now_ms - days * _DAY_MS,
        to_ms=now_ms + 1,
    )
    alerts = alerting.list_alerts(connection, wanted, limit=_MOST + 1)
    names = checks.list_names(connection, account_id)
    there = {one.id for one in names}
    asked = [check_id] if check_id in there else list(there) if check_id is None else []
    oldest_first = [*_list_lasting(connection, wanted, asked), *reversed(alerts[:_MOST])]
    opened = maintenance.list_open(connection, account_id, now_ms=now_ms)
    # Tags cost more than names do, and most of the time no window is open.
    labels = checks.list_labels(connection, account_id) if opened else ()
    tags = {one.id: one.tags for one in labels if check_id in (None, one.id)}
    episodes = [_describe(connection, one, there) for one in group_alerts(oldest_first)]
    around = _look_around(connection, account_id, oldest_first)
    episodes = [
        _complete(one, around, maintenance.find_applying(opened, tags.get(one.check_id, ())))
        for one in episodes
    ]
    if check_id is None:
        about = alerting.list_location_alerts(connection, account_id, limit=_MOST)
        recent = [one for one in about if one.created_ms >= wanted.from_ms]
        episodes += [
            _describe_location(connection, one) for one in group_location_alerts(reversed(recent))
        ]
    covering = [
        Covering(now=one.now, checks=sum(map(one.window.applies_to, tags.values())))
        for one in opened
    ]
    return episodes, covering, len(alerts) > _MOST


def _list_lasting(
    connection: Connection, window: AlertFilter, check_ids: Sequence[str]
) -> Sequence[StoredAlert]:
    """The alerts from before the window of what still goes on, oldest first."""
    lasting = alerting.list_lasting(connection, check_ids, before_ms=window.from_ms)
    newest_first = sorted(lasting.items(), key=lambda one: -one[1])[:_MOST_LASTING]
    found: list[StoredAlert] = []
    for check_id, began_ms in newest_first:
        earlier = replace(window, check_id=check_id, from_ms=began_ms, to_ms=window.from_ms)
        found += alerting.list_alerts(connection, earlier, limit=_MOST_OF_LASTING)
    return sorted(found, key=lambda one: one.alert.created_ms)


def _describe(connection: Connection, episode: Sequence[StoredAlert], there: set[str]) -> Episode:
    first, last = episode[0].alert, episode[-1].alert
    sent = list_sent(connection, first.check_id, [one.alert.id for one in episode])
    certificate = last.certificate
    errors = [one.alert.error for one in episode if one.alert.error]
    sentence = errors[-1] if errors else ""
    if certificate is not None:
        days = certificate.days_remaining
        when = f"expires in {days:.0f} days" if days > 0 else "has expired"
        sentence = f"The certificate of {certificate.domain} {when}."
    is_over = last.alert_type.is_recovery or last.alert_type is AlertType.SSL
    return Episode(
        check_id=last.check_id,
        name=last.check_name,
        path=f"/checks/{last.check_id}" if last.check_id in there else "",
        state=describe_alert(last.alert_type)[0],
        sentence=sentence,
        since_ms=first.started_ms,
        until_ms=last.created_ms if is_over else None,
        where=_where(last.failing_locations, last.passing_locations),
        moments=[_moment(one, sent.get(one.alert.id, ())) for one in episode],
    )


@dataclass(frozen=True, slots=True)
class _Around:
    """What is known of the checks that alerts are about."""

    reasons: Mapping[str, str]
    """Why those that do not pass do not, by their newest run that was no pass."""
    incidents: Mapping[str, Sequence[Incident]]
    """What their alerts opened, by check."""
    opened: Mapping[str, str | None]
    """The incident that goes on with the alert, by check."""


def _look_around(
    connection: Connection, account_id: str, oldest_first: Sequence[StoredAlert]
) -> _Around:
    ids = list(dict.fromkeys(one.alert.check_id for one in oldest_first))
    states = alerting.find_states(connection, ids)
    newest = {check_id: one.result_id for check_id, one in states.items() if one.result_id}
    since_ms = min((one.alert.created_ms for one in oldest_first), default=0)
    found: defaultdict[str, list[Incident]] = defaultdict(list)
    opened = incidents.list_of_checks(connection, account_id, since_ms=since_ms, limit=_MOST)
    for one in opened if ids else ():
        found[one.check_id or ""].append(one)
    return _Around(
        results.find_reasons(connection, newest),
        found,
        {check_id: one.incident_id for check_id, one in states.items()},
    )


def _complete(episode: Episode, around: _Around, maintained: Occurrence | None) -> Episode:
    """With what the newest run says, what was opened, and why nobody is notified now."""
    begin_ms, end_ms = episode.moments[0].at_ms, episode.until_ms
    goes_on, check_id = end_ms is None, episode.check_id
    return replace(
        episode,
        sentence=around.reasons.get(check_id, episode.sentence) if goes_on else episode.sentence,
        incidents=[
            one
            for one in around.incidents.get(check_id, ())
            if (begin_ms <= one.created_ms and (end_ms is None or one.created_ms < end_ms))
            or (goes_on and one.id == around.opened.get(check_id))
        ],
        maintained=maintained if goes_on else None,
    )


def _moment(stored: StoredAlert, sent: Sequence[Sent]) -> Moment:
    alert = stored.alert
    state, word = describe_alert(alert.alert_type)
    if alert.check_deleted:
        state, word = State.UNKNOWN, "The check was deleted"
    if alert.reminder:
        word = f"{word}, reminder {alert.reminder}"
    return Moment(
        at_ms=alert.created_ms,
        state=state,
        word=word,
        sent=sent,
        note=explain_silence(stored, sent),
        door=find_door(stored, sent),
        result_id=alert.result_id,
    )


def _where(failing: Sequence[str], passing: Sequence[str]) -> str:
    if not failing:
        return ""
    sentence = f"At {', '.join(failing)}"
    return f"{sentence}; it passes at {', '.join(passing)}." if passing else f"{sentence}."


def _describe_location(connection: Connection, episode: Sequence[LocationAlert]) -> Episode:
    first, last = episode[0], episode[-1]
    names = ", ".join(first.check_names)
    rest = first.check_count - len(first.check_names)
    more = f" and {rest} more" if rest > 0 else ""
    sent = list_sent(connection, None, [one.id for one in episode])
    return Episode(
        name=last.location_name,
        path="/locations",
        state=State.PASSING if last.is_recovery else State.FAILING,
        sentence=f"No agent was connected; {first.check_count} checks did not run"
        + (f": {names}{more}." if names else "."),
        since_ms=first.since_ms,
        until_ms=last.created_ms if last.is_recovery else None,
        where="",
        moments=[
            Moment(
                at_ms=one.created_ms,
                state=State.PASSING if one.is_recovery else State.FAILING,
                word="An agent is there again" if one.is_recovery else "No agent",
                sent=sent.get(one.id, ()),
                note="" if one.id in sent else "No notification of it is stored.",
                result_id=None,
            )
            for one in episode
        ],
    )
