"""Which channels get an alert, when a notification is tried again, and what pauses a channel."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from service.alert_channels.model import AnyAlert, ChannelChoice, ChannelRow
from service.alerting.model import Alert, AlertType, LocationAlert

MOST_REFUSALS: Final = 10
"""Tries in a row after which the notification itself is held to be at fault."""
LONGEST_WAIT_MS: Final = 86_400_000
"""Older ones are given up when their channel's receiver takes nothing."""
_FIRST_WAIT_MS: Final = 20_000
_LONGEST_BACKOFF_MS: Final = 300_000
_MOST_DOUBLINGS: Final = 10
_LONGEST_DEMANDED_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000
_SAME_CERTIFICATE_MS: Final = DAY_MS // 2
"""The time at which a certificate expires comes from days left, which results round."""


def wants(channel: ChannelRow, alert: AnyAlert) -> bool:
    """Whether a channel that is subscribed gets this alert."""
    if isinstance(alert, LocationAlert):
        return channel.send_recovery if alert.is_recovery else channel.send_failure
    if alert.alert_type is AlertType.SSL:
        return channel.ssl_expiry and _has_crossed(channel, alert)
    return _wants_type(channel, alert)


def _wants_type(channel: ChannelRow, alert: Alert) -> bool:
    match alert.alert_type:
        case AlertType.FAILURE | AlertType.FAILURE_REMAIN | AlertType.DEGRADED_FAILURE:
            return channel.send_failure
        case AlertType.DEGRADED | AlertType.DEGRADED_REMAIN | AlertType.FAILURE_DEGRADED:
            return channel.send_degraded
        case AlertType.RECOVERY | AlertType.DEGRADED_RECOVERY:
            return channel.send_recovery
        case AlertType.NO_ALERT | AlertType.SSL:
            return False


def _has_crossed(channel: ChannelRow, alert: Alert) -> bool:
    certificate = alert.certificate
    return certificate is not None and certificate.days_remaining <= channel.ssl_expiry_threshold


def expiry_ms(alert: Alert) -> int:
    """When the certificate of an alert expires; 0: the alert is about none."""
    if alert.certificate is None:
        return 0
    return alert.created_ms + round(alert.certificate.days_remaining * DAY_MS)


def is_same_certificate(known_expires_ms: int | None, expires_ms: int) -> bool:
    """Whether a certificate is the one that a channel was notified of. None: it was of none."""
    return known_expires_ms is not None and (
        abs(known_expires_ms - expires_ms) < _SAME_CERTIFICATE_MS
    )


def join_choices(
    own: Sequence[ChannelChoice], of_group: Iterable[ChannelChoice]
) -> tuple[ChannelChoice, ...]:
    """What a check says, and what its group says about channels that the check does not name."""
    named = {choice.channel_id for choice in own}
    return (*own, *(choice for choice in of_group if choice.channel_id not in named))


def choose_for_new_check(
    own: Sequence[ChannelChoice], channels: Mapping[int, bool], *, auto_assign: bool
) -> tuple[ChannelChoice, ...]:
    """The subscriptions of a new check or group.

    `channels`: those of the account, and whether they take new checks by themselves.
    """
    added = (
        ChannelChoice(channel_id, activated=True)
        for channel_id, is_automatic in channels.items()
        if auto_assign or is_automatic
    )
    return join_choices(own, added)


def backoff_ms(failures: int, chance: float, *, demanded_s: float | None) -> int:
    """How long a channel waits after so many tries in a row that failed.

    Full jitter: any time up to a bound that doubles, by a `chance` from 0 to 1. A receiver that
    demands a time, as by `Retry-After`, gets it.
    """
    doublings = min(failures - 1, _MOST_DOUBLINGS)
    bound_ms = min(_FIRST_WAIT_MS << doublings, _LONGEST_BACKOFF_MS)
    demanded_ms = 0 if demanded_s is None else min(demanded_s * 1000, _LONGEST_DEMANDED_MS)
    return round(max(chance * bound_ms, demanded_ms))


def incident_key(alert: AnyAlert) -> str:
    """What an incident tool knows all alerts of one trouble by, from the first to the recovery."""
    if isinstance(alert, LocationAlert):
        return f"picket-location-{alert.account_id}-{alert.location}"
    if alert.certificate is not None:
        return f"picket-certificate-{alert.check_id}"
    return f"picket-check-{alert.check_id}"
