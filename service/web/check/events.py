"""What happened to a check and stands as a mark on the time axis: alerts, and edits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from service.alerting import actions as alerting
from service.alerting.model import AlertFilter
from service.audit import audit
from service.checks.model import CheckRow
from service.web.alerts.alert_words import describe_alert
from service.web.check.ranges import Range
from service.web.forms.field_labels import label_of
from service.web.states import State

_MOST: Final = 40
_LISTED_FIELDS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened."""

    at_ms: int
    state: str
    """The state that its mark shows; `edit` for a change of the check."""
    text: str


def list_events(connection: Connection, check: CheckRow, shown: Range) -> list[Event]:
    """What happened in a range, newest first; the newest ones, if there is a lot."""
    found = [*_alerts(connection, check, shown), *_edits(connection, check, shown)]
    return sorted(found, key=lambda one: -one.at_ms)[:_MOST]


def _alerts(connection: Connection, check: CheckRow, shown: Range) -> Iterator[Event]:
    wanted = AlertFilter(
        account_id=check.account_id,
        check_id=check.id,
        from_ms=shown.span[0],
        to_ms=shown.span[1] + 1,
    )
    for stored in alerting.list_alerts(connection, wanted, limit=_MOST):
        if stored.alert.reminder:
            continue
        state, word = describe_alert(stored.alert.alert_type)
        silent = "" if stored.notified else ", nobody was notified"
        # Since when it is in trouble, as its heading says; of a recovery, when it came.
        is_over = state is State.PASSING
        at_ms = stored.alert.created_ms if is_over else stored.alert.started_ms
        yield Event(at_ms=at_ms, state=state.value, text=word + silent)


def _edits(connection: Connection, check: CheckRow, shown: Range) -> Iterator[Event]:
    for one in audit.list_of(
        connection,
        check.account_id,
        ("checks", check.id),
        window=(shown.span[0], shown.span[1] + 1),
        limit=_MOST,
    ):
        if one.operation.startswith("create"):
            yield Event(at_ms=one.at_ms, state="edit", text="Created")
            continue
        yield Event(at_ms=one.at_ms, state="edit", text=_describe_edit(one.fields))


def _describe_edit(fields: Sequence[str]) -> str:
    if not fields:
        return "Saved without a change"
    if tuple(fields) == ("activated",):
        return "Paused or resumed"
    names = ", ".join(map(label_of, fields[:_LISTED_FIELDS]))
    return f"Edited: {names}{', …' if len(fields) > _LISTED_FIELDS else ''}"
