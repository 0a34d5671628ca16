"""Request and response bodies of alert channels; their configs stand with their kinds."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from service.alert_channels.model import (
    ChannelRow,
    ChannelType,
    NotificationRow,
    NotificationStatus,
    SubscriptionRow,
)
from service.http.schema import (
    JsonNumber,
    RequestModel,
    ResponseModel,
    Text,
    blank_is_none,
    field_error,
    zero_is_none,
)
from service.http.times import Moment, format_time, moment

MOST_SUBSCRIPTIONS = 500
CheckIdText = Annotated[
    Annotated[Text, Field(max_length=200)] | None, BeforeValidator(blank_is_none)
]
GroupNumber = Annotated[int | None, BeforeValidator(zero_is_none), JsonNumber]


class ChannelSubscriptionWrite(RequestModel):
    """A check or a group whose alerts the channel gets."""

    check_id: CheckIdText = None
    """The id of the check. Null: it is of a group."""
    group_id: GroupNumber = None
    """The id of the group. Null: it is of a check."""
    activated: bool
    """False: the channel gets no alerts of it."""

    @model_validator(mode="after")
    def _is_of_one(self) -> "ChannelSubscriptionWrite":
        if (self.check_id is None) == (self.group_id is None):
            raise field_error("checkId", "or groupId must be set, and not both")
        return self


class ChannelSubscriptionsWrite(RequestModel):
    """Subscriptions of a channel that change; the others stay as they are."""

    subscriptions: Annotated[
        list[ChannelSubscriptionWrite], Field(min_length=1, max_length=MOST_SUBSCRIPTIONS)
    ]
    """The checks and groups to subscribe, or whose subscriptions change."""


class ChannelWrite(RequestModel):
    """What channels of all types have."""

    kind: ClassVar[ChannelType]

    subscriptions: (
        Annotated[list[ChannelSubscriptionWrite], Field(max_length=MOST_SUBSCRIPTIONS)] | None
    ) = None
    """The checks and groups whose alerts it gets; they replace those of before. Null: they stay."""
    send_recovery: bool = True
    """Whether it is notified when what it was notified of before passes again."""
    send_failure: bool = True
    """Whether it is notified of checks that fail, and of locations that lose their last agent."""
    send_degraded: bool = False
    """Whether it is notified of checks that are slow or lose packets, but do not fail."""
    ssl_expiry: bool = False
    """Whether it is notified of certificates that expire soon, once of each."""
    ssl_expiry_threshold: Annotated[int, Field(ge=1, le=30), JsonNumber] = 30
    """How many days before."""
    auto_subscribe: bool = False
    """Whether each check that is made from now on subscribes to it; others stay as they are."""


class ChannelSubscriptionShown(ResponseModel):
    """A subscription of a channel."""

    id: int
    check_id: str | None
    """Null: it is of a group."""
    group_id: int | None
    """Null: it is of a check."""
    activated: bool


class PausedShown(ResponseModel):
    """Why a channel sends nothing."""

    reason: str
    """What its receiver refused for good."""
    since: Moment


class ChannelShown(ResponseModel):
    """An alert channel."""

    id: int
    type: Literal["EMAIL", "SLACK", "WEBHOOK", "SMS", "PAGERDUTY", "OPSGENIE", "CALL"]
    config: dict[str, Any]
    """Keys that only read are shown `*********` for its secrets; sent back, it keeps them."""
    subscriptions: list[ChannelSubscriptionShown]
    send_recovery: bool
    send_failure: bool
    send_degraded: bool
    ssl_expiry: bool
    ssl_expiry_threshold: int
    auto_subscribe: bool
    paused: PausedShown | None
    """An addition of ours. Null: it sends. A PUT ends the pause."""
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment | None = Field(alias="updated_at")
    """Null: never changed."""


class NotificationShown(ResponseModel):
    """An alert on its way through a channel."""

    id: str
    """The receiver of a webhook finds it in `x-picket-delivery`."""
    type: Literal["EMAIL", "SLACK", "WEBHOOK", "SMS", "PAGERDUTY", "OPSGENIE", "CALL"]
    status: NotificationStatus
    alert_config: dict[str, Any]
    """The channel's config, with `*********` for its secrets."""
    notification_result: str | None
    """What became of the last try. Null: it was not tried yet."""
    timestamp: Moment
    """When the alert was raised."""
    check_type: str | None
    """Null: it is about a location."""
    check_id: str | None
    """Null: it is about a location."""
    check_alert_id: str
    alert_channel_id: int
    check_result_id: str | None
    """Null: no result caused it."""
    attempts: int
    """An addition of ours: how often it was tried."""


class TestShown(ResponseModel):
    """What became of a sample alert."""

    __test__ = False

    status: Literal["SUCCESS", "FAILURE", "RATE_LIMITED"]
    notification_result: str


def render_subscription(row: SubscriptionRow) -> dict[str, Any]:
    """A subscription as its answer."""
    return {
        "id": row.id,
        "checkId": row.check_id,
        "groupId": row.group_id,
        "activated": row.activated,
    }


def render(row: ChannelRow, reveal: Callable[[ChannelRow], ChannelRow]) -> dict[str, Any]:
    """A channel, read with its subscriptions, as its answer.

    Raises:
        UnreadableError: its config is to be shown, and cannot be decrypted.
    """
    pause = row.pause
    return {
        "id": row.id,
        "type": row.type.value,
        "config": dict(reveal(row).config),
        "subscriptions": [render_subscription(one) for one in row.subscriptions],
        "sendRecovery": row.send_recovery,
        "sendFailure": row.send_failure,
        "sendDegraded": row.send_degraded,
        "sslExpiry": row.ssl_expiry,
        "sslExpiryThreshold": row.ssl_expiry_threshold,
        "autoSubscribe": row.auto_subscribe,
        "paused": pause and {"reason": pause.reason, "since": format_time(pause.since_ms)},
        "created_at": format_time(row.created_ms),
        "updated_at": format_time(row.updated_ms),
    }


def render_notification(row: NotificationRow, channel: ChannelRow) -> NotificationShown:
    """A notification as its answer."""
    return NotificationShown.model_validate(
        {
            "id": row.id,
            "type": channel.type.value,
            "status": row.status,
            "alertConfig": dict(channel.config),
            "notificationResult": row.outcome,
            "timestamp": moment(row.created_ms),
            "checkType": row.check_type,
            "checkId": row.check_id,
            "checkAlertId": row.alert_id,
            "alertChannelId": row.channel_id,
            "checkResultId": row.result_id,
            "attempts": row.attempts,
        }
    )
