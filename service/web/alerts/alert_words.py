"""Alerts, and what became of them in channels, in words; wherever pages show them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from service.alert_channels import actions as alert_channels
from service.alert_channels.model import ChannelRow, NotificationRow, NotificationStatus
from service.alerting.model import AlertType, Silence, StoredAlert
from service.web.states import State

_ALERTS: Final[Mapping[AlertType, tuple[State, str]]] = {
    AlertType.NO_ALERT: (State.UNKNOWN, "No alert"),
    AlertType.FAILURE: (State.FAILING, "Failing"),
    AlertType.FAILURE_REMAIN: (State.FAILING, "Still failing"),
    AlertType.FAILURE_DEGRADED: (State.DEGRADED, "Degraded, after failing"),
    AlertType.RECOVERY: (State.PASSING, "Recovered"),
    AlertType.DEGRADED: (State.DEGRADED, "Degraded"),
    AlertType.DEGRADED_REMAIN: (State.DEGRADED, "Still degraded"),
    AlertType.DEGRADED_FAILURE: (State.FAILING, "Failing, after being degraded"),
    AlertType.DEGRADED_RECOVERY: (State.PASSING, "Recovered"),
    AlertType.SSL: (State.DEGRADED, "Certificate expires"),
}
_DELIVERY: Final[Mapping[NotificationStatus, tuple[State, str]]] = {
    NotificationStatus.SUCCESS: (State.PASSING, "delivered"),
    NotificationStatus.IN_PROGRESS: (State.RUNNING, "on its way"),
    NotificationStatus.FAILURE: (State.FAILING, "not delivered"),
    NotificationStatus.RATE_LIMITED: (State.FAILING, "not delivered: too many"),
}
_SILENCES: Final[Mapping[Silence, str]] = {
    Silence.MUTED: "the check was muted",
    Silence.NO_SUBSCRIPTION: "no channel was subscribed at that time",
    Silence.NOT_WANTED: "no channel that was subscribed takes alerts of this kind",
    Silence.NOT_NOTIFIED_BEFORE: "nobody had been notified that something was wrong",
}
_NAMES: Final = ("name", "address", "number", "channel", "serviceName", "account")
"""Fields of a channel's config by which people know it; the first that is there. None is secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What became of an alert in one channel."""

    channel: str
    kind: str
    state: State
    word: str
    outcome: str
    """What the receiver said. Empty: nothing, or it was not tried yet."""
    attempts: int


def describe_alert(kind: AlertType) -> tuple[State, str]:
    """An alert's state and words."""
    return _ALERTS[kind]


def explain_silence(stored: StoredAlert, sent: Sequence[Sent]) -> str:
    """Why nobody was notified of an alert when it was made. Empty: somebody was."""
    if sent:
        return ""
    if stored.silence is Silence.MAINTENANCE:
        return f"Nobody was notified: the maintenance window “{stored.window}” was open."
    if stored.silence is not None:
        return f"Nobody was notified: {_SILENCES[stored.silence]}."
    if not stored.notified:
        return "Nobody was notified: the check was muted or in maintenance."
    return "No notification of it is stored."


def list_sent(
    connection: Connection, check_id: str | None, alert_ids: Iterable[str]
) -> Mapping[str, Sequence[Sent]]:
    """What became of alerts about a check, or about a location (None), by alert."""
    found: dict[str, list[Sent]] = {}
    for row, channel in alert_channels.list_of_alerts(connection, check_id, alert_ids):
        found.setdefault(row.alert_id, []).append(_describe_sent(row, channel))
    return found


def _describe_sent(row: NotificationRow, channel: ChannelRow) -> Sent:
    state, word = _DELIVERY[row.status]
    if row.status is NotificationStatus.IN_PROGRESS and row.attempts:
        state, word = State.DEGRADED, "not delivered yet"
    return Sent(
        channel=name_channel(channel.type.value, channel.id, channel.config),
        kind=channel.type.value.capitalize(),
        state=state,
        word=word,
        outcome=row.outcome or "",
        attempts=row.attempts,
    )


def name_channel(kind: str, channel_id: int, config: Mapping[str, Any]) -> str:
    """What people call a channel: its name or its address, or else its kind and number."""
    known = (config.get(field) for field in _NAMES)
    return next((str(name) for name in known if name), f"{kind.capitalize()} {channel_id}")
