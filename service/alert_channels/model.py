"""Alert channels, subscriptions and notifications as they are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from service.alerting.model import Alert, LocationAlert
from service.notices import SharedNotice
from service.vault.encryption import Place

AnyAlert = Alert | LocationAlert


class ChannelType(StrEnum):
    """How a channel sends."""

    EMAIL = "EMAIL"
    SLACK = "SLACK"
    WEBHOOK = "WEBHOOK"
    SMS = "SMS"
    PAGERDUTY = "PAGERDUTY"
    OPSGENIE = "OPSGENIE"
    CALL = "CALL"


class NotificationStatus(StrEnum):
    """How far a notification is."""

    IN_PROGRESS = "IN_PROGRESS"
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    RATE_LIMITED = "RATE_LIMITED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A channel sends nothing until it is replaced."""

    reason: str
    """What the receiver refused for good, in one sentence."""
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRow:
    """A channel as it is stored."""

    id: int
    account_id: str
    type: ChannelType
    config: Mapping[str, Any]
    """What keys are shown that only read."""
    secrets: bytes = field(repr=False)
    """The whole config, encrypted for `place`."""
    send_recovery: bool
    send_failure: bool
    send_degraded: bool
    ssl_expiry: bool
    ssl_expiry_threshold: int
    """Days before a certificate expires."""
    auto_subscribe: bool
    pause: Pause | None
    """None: it sends."""
    created_ms: int
    updated_ms: int | None
    """None: never changed."""
    failures: int = 0
    """Tries in a row that its receiver did not take; they delay the next one."""
    subscriptions: Sequence["SubscriptionRow"] = ()
    """Read by `store.with_subscriptions` alone."""

    @property
    def place(self) -> Place:
        """Where its config is encrypted for."""
        return place_of(self.account_id, self.id)


def place_of(account_id: str, channel_id: int) -> Place:
    """Where the config of a channel is encrypted for."""
    return ("alert_channel", account_id, str(channel_id), "secrets")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRow:
    """A check or a group whose alerts a channel gets."""

    id: int
    channel_id: int
    check_id: str | None
    """None: it is of a group."""
    group_id: int | None
    """None: it is of a check."""
    activated: bool
    """False: it gets none, whatever the check's group says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A check, or a group."""

    check_id: str | None = None
    """None: it is a group."""
    group_id: int | None = None
    """None: it is a check."""


@dataclass(frozen=True, slots=True)
class ChannelChoice:
    """What a check or a group says about a channel."""

    channel_id: int
    activated: bool

    def shown(self) -> dict[str, Any]:
        """The item of a check's or a group's body."""
        return {"alertChannelId": self.channel_id, "activated": self.activated}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSubscriptions:
    """Where the alerts of a check go."""

    own: tuple[ChannelChoice, ...] = ()
    """What the check itself says."""
    effective: tuple[ChannelChoice, ...] = ()
    """With what its group says about other channels."""
    channels: tuple[ChannelRow, ...] = ()
    """Those that get its alerts."""


NO_SUBSCRIPTIONS = CheckSubscriptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRow:
    """One alert on its way through one channel."""

    serial: int
    id: str
    """The receiver sees it; each try has the same."""
    account_id: str
    channel_id: int
    check_id: str | None
    """None: it is about a location."""
    check_type: str | None
    """None: it is about a location."""
    result_id: str | None
    """None: no result caused it."""
    alert_id: str
    alert: AnyAlert | None
    """None: what is stored is no alert."""
    status: NotificationStatus
    attempts: int
    next_try_ms: int
    outcome: str | None
    """None: it was not tried yet."""
    created_ms: int
    refusals: int
    """Tries in a row that the receiver refused, or that the service's end cut short."""


@dataclass(frozen=True, slots=True)
class NotificationsQueued(SharedNotice):
    """An announcement: there is something to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationFilter:
    """Which notifications a list shows."""

    from_ms: int
    """The beginning, inclusive."""
    to_ms: int
    """The end, exclusive."""
    channel_id: int | None = None
    """None: of any channel."""
    has_failures: bool | None = None
    """True: those that failed. False: the others. None: all."""
