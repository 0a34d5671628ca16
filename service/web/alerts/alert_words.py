"""Alerts, and what became of them in channels, in words; wherever pages show them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from service.alert_channels import actions as alert_channels
from service.alert_channels.model import ChannelRow, NotificationRow, NotificationStatus
from service.alerting.model import AlertType, Silence, StoredAlert
from service.vault.texts import HIDDEN
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
    Silence.NOT_NOTIFIED_BEFORE: "no channel had been notified before it recovered",
}
KINDS: Final[Mapping[str, str]] = {
    "EMAIL": "Email",
    "SLACK": "Slack",
    "WEBHOOK": "Webhook",
    "PAGERDUTY": "PagerDuty",
    "OPSGENIE": "Opsgenie",
    "SMS": "SMS",
    "CALL": "Phone call",
    "WEBHOOK_CORALOGIX": "Coralogix",
    "WEBHOOK_DISCORD": "Discord",
    "WEBHOOK_FIREHYDRANT": "FireHydrant",
    "WEBHOOK_GITLAB_ALERT": "GitLab",
    "WEBHOOK_ILERT": "ilert",
    "WEBHOOK_INCIDENTIO": "incident.io",
    "WEBHOOK_MSTEAMS": "Microsoft Teams",
    "WEBHOOK_ROOTLY": "Rootly",
    "WEBHOOK_SPIKESH": "Spike.sh",
    "WEBHOOK_SPLUNK": "Splunk On-Call",
    "WEBHOOK_TELEGRAM": "Telegram",
}
"""Kinds of channels, and of webhooks, as the makers of the products write them."""
_NAMES: Final = ("name", "address", "number", "channel", "serviceName", "account")
"""Fields of a channel's config by which people know it; the first that is there. None is secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What became of an alert in one channel."""

    channel: str
    kind: str
    """Empty: the channel's name says it."""
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


@dataclass(frozen=True, slots=True)
class Door:
    """Where something is set."""

    path: str
    words: str


def find_door(stored: StoredAlert, sent: Sequence[Sent]) -> Door | None:
    """Where it is set whom an alert that reached nobody goes to. None: nowhere, or it did."""
    alert = stored.alert
    check = "" if alert.check_deleted or not alert.check_id else f"/checks/{alert.check_id}/edit"
    if sent or stored.silence is Silence.NOT_NOTIFIED_BEFORE:
        return None
    if stored.silence is Silence.MAINTENANCE:
        return Door("/maintenance", "See maintenance windows")
    if stored.silence is Silence.NOT_WANTED or not check:
        return Door("/channels", "See what channels take")
    if stored.silence is Silence.NO_SUBSCRIPTION:
        return Door(check, "Choose its channels")
    return None if stored.notified else Door(check, "See whom the check alerts")


def list_sent(
    connection: Connection, check_id: str | None, alert_ids: Iterable[str]
) -> Mapping[str, Sequence[Sent]]:
    """What became of alerts about a check, or about a location (None), by alert."""
    found: dict[str, list[Sent]] = {}
    for row, channel in alert_channels.list_of_alerts(connection, check_id, alert_ids):
        found.setdefault(row.alert_id, []).append(_describe_sent(row, channel))
    return found


def describe_delivery(row: NotificationRow) -> tuple[State, str]:
    """How far a notification is."""
    if row.status is NotificationStatus.IN_PROGRESS and row.attempts:
        return State.DEGRADED, "not delivered yet"
    return _DELIVERY[row.status]


def _describe_sent(row: NotificationRow, channel: ChannelRow) -> Sent:
    state, word = describe_delivery(row)
    kind, name = label_channel(channel)
    return Sent(
        channel=name,
        kind=kind,
        state=state,
        word=word,
        outcome=row.outcome or "",
        attempts=row.attempts,
    )


def label_channel(channel: ChannelRow) -> tuple[str, str]:
    """A channel's kind and name; the kind is empty where the name begins with it."""
    kind = name_kind(channel.type.value, channel.config)
    name = name_channel(channel.type.value, channel.id, channel.config)
    return "" if name.startswith(kind) else kind, name


def name_kind(kind: str, config: Mapping[str, Any]) -> str:
    """The product that a channel sends to, as its maker writes it."""
    return KINDS[config.get("webhookType") or kind]


def name_channel(kind: str, channel_id: int, config: Mapping[str, Any]) -> str:
    """What people call a channel: its name or its address, or else its kind and number."""
    known = (config.get(field) for field in _NAMES)
    numbered = f"{name_kind(kind, config)} channel {channel_id}"
    return next((str(name) for name in known if name and name != HIDDEN), numbered)
