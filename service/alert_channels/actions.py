"""What other features ask of alert channels; each function is part of the caller's transaction.

Setting channels up stands in `service.alert_channels.channel_changes`, which itself asks the
features that ask here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from service.alert_channels import store
from service.alert_channels.model import (
    AnyAlert,
    ChannelChoice,
    ChannelRow,
    CheckSubscriptions,
    NotificationRow,
    NotificationsQueued,
    NotificationStatus,
    Subscriber,
    SubscriptionRow,
)
from service.alert_channels.rules import (
    DAY_MS,
    choose_for_new_check,
    expiry_ms,
    is_same_certificate,
    join_choices,
    wants,
)
from service.alerting.model import Alert, AlertType, LocationAlert
from service.db.engine import announce
from service.db.ids import new_id
from service.http.errors import InvalidError

FIELD: Final = "alertChannelSubscriptions"
_KEPT_MS: Final = 30 * DAY_MS


def enqueue(connection: Connection, alert: Alert, *, now_ms: int) -> int:
    """Send an alert through each channel that gets those of its check; how many.

    One about a certificate goes to each channel once per certificate; a recovery goes to those
    whose last notification about the check was no recovery, subscribed or not.
    """
    channels = [one for one in _find_receivers(connection, alert, now_ms) if wants(one, alert)]
    if alert.alert_type is AlertType.SSL:
        channels = [one for one in channels if _is_news(connection, one, alert)]
    return _queue(connection, channels, alert, now_ms=now_ms)


def has_receivers(connection: Connection, alert: Alert, *, now_ms: int) -> bool:
    """Whether any channel is subscribed, or, of a recovery, was notified of what it ends."""
    return bool(_find_receivers(connection, alert, now_ms))


def _find_receivers(connection: Connection, alert: Alert, now_ms: int) -> Sequence[ChannelRow]:
    # Notifications of a longer outage are gone, so that nobody knows whom they went to.
    if alert.alert_type.is_recovery and alert.started_ms > now_ms - _KEPT_MS:
        return store.list_some(connection, store.find_alarmed(connection, alert.check_id))
    return find_of_check(connection, alert.check_id, alert.group_id).channels


def enqueue_location(connection: Connection, alert: LocationAlert, *, now_ms: int) -> int:
    """Send an alert about a location through each channel of its account; how many."""
    channels = store.list_all(connection, alert.account_id)
    return _queue(connection, [one for one in channels if wants(one, alert)], alert, now_ms=now_ms)


def _is_news(connection: Connection, channel: ChannelRow, alert: Alert) -> bool:
    expires_ms = expiry_ms(alert)
    known_ms = store.find_notified_expiry(connection, channel.id, alert.check_id)
    if is_same_certificate(known_ms, expires_ms):
        return False
    store.note_notified_expiry(connection, channel.id, alert.check_id, expires_ms)
    return True


def _queue(
    connection: Connection, channels: Sequence[ChannelRow], alert: AnyAlert, *, now_ms: int
) -> int:
    for channel in channels:
        _add(connection, channel, alert, now_ms=now_ms)
    if channels:
        announce(connection, NotificationsQueued())
    return len(channels)


def _add(connection: Connection, channel: ChannelRow, alert: AnyAlert, *, now_ms: int) -> None:
    """A paused channel fails at once, where people can see it."""
    pause = channel.pause
    values = {
        "id": new_id(now_ms),
        "account_id": alert.account_id,
        "channel_id": channel.id,
        **_describe_subject(alert),
        "alert_id": alert.id,
        "status": (NotificationStatus.FAILURE if pause else NotificationStatus.IN_PROGRESS).value,
        "attempts": 0,
        "next_try_ms": now_ms,
        "outcome": pause and paused_outcome(pause.reason),
        "created_ms": now_ms,
    }
    store.add_notification(connection, values, alert)


def _describe_subject(alert: AnyAlert) -> dict[str, Any]:
    if isinstance(alert, LocationAlert):
        nothing = dict.fromkeys(("check_id", "check_type", "result_id"))
        return {**nothing, "is_logged": True}
    return {
        "check_id": alert.check_id,
        "check_type": alert.check_type.value,
        "result_id": alert.result_id,
        "is_logged": alert.alert_type is not AlertType.SSL,
    }


def list_of_alerts(
    connection: Connection, check_id: str | None, alert_ids: Iterable[str]
) -> Sequence[tuple[NotificationRow, ChannelRow]]:
    """The notifications of alerts of a check, or of a location (None), oldest first."""
    found = store.list_of_alerts(connection, check_id, alert_ids)
    channels = {one.id: one for one in store.list_some(connection, {n.channel_id for n in found})}
    return [(one, channels[one.channel_id]) for one in found if one.channel_id in channels]


def list_page(
    connection: Connection, account_id: str, *, limit: int, offset: int
) -> Sequence[tuple[ChannelRow, tuple[int, int]]]:
    """A page of channels, oldest first, each with how many checks and groups it names."""
    found = store.list_page(connection, account_id, limit=limit, offset=offset)
    senders = store.count_senders(connection, [one.id for one in found])
    return [(one, senders.get(one.id, (0, 0))) for one in found]


def list_newest(
    connection: Connection, account_id: str, channel_ids: Iterable[int]
) -> Mapping[int, NotificationRow]:
    """The newest notification of each channel that has one, by channel.

    Where it waits, it is the first in line instead, whose tries say why.
    """
    newest = {one.channel_id: one for one in store.list_newest(connection, account_id, channel_ids)}
    waiting = [
        one.channel_id
        for one in newest.values()
        if one.status is NotificationStatus.IN_PROGRESS and not one.attempts
    ]
    first = {one.channel_id: one for one in store.list_first_waiting(connection, waiting)}
    return {**newest, **first}


def paused_outcome(reason: str) -> str:
    """What is said of a notification that a paused channel did not send."""
    return f"Not sent: the channel is paused, because: {reason} Replace it with PUT to resume it."


def find_of_check(
    connection: Connection, check_id: str, group_id: int | None
) -> CheckSubscriptions:
    """Where the alerts of a check go."""
    return find_of_checks(connection, {check_id: group_id})[check_id]


def find_of_checks(
    connection: Connection, groups: Mapping[str, int | None]
) -> dict[str, CheckSubscriptions]:
    """Where the alerts of several checks go, by check; each check comes with its group."""
    group_ids = {one for one in groups.values() if one is not None}
    rows = store.list_subscriptions_of(connection, check_ids=groups, group_ids=group_ids)
    of_checks, of_groups = _by_owner(rows)
    channels = _find_channels(connection, rows)
    return {
        check_id: _join(of_checks[check_id], of_groups[group_id or 0], channels)
        for check_id, group_id in groups.items()
    }


def _join(
    own: Sequence[ChannelChoice],
    of_group: Sequence[ChannelChoice],
    channels: Mapping[int, ChannelRow],
) -> CheckSubscriptions:
    effective = join_choices(own, of_group)
    found = (channels[one.channel_id] for one in effective if one.activated)
    return CheckSubscriptions(
        own=tuple(own),
        effective=effective,
        channels=tuple(sorted(found, key=lambda channel: channel.id)),
    )


def _by_owner(
    rows: Iterable[SubscriptionRow],
) -> tuple[Mapping[str, list[ChannelChoice]], Mapping[int, list[ChannelChoice]]]:
    of_checks: dict[str, list[ChannelChoice]] = defaultdict(list)
    of_groups: dict[int, list[ChannelChoice]] = defaultdict(list)
    for row in rows:
        choice = ChannelChoice(row.channel_id, row.activated)
        if row.check_id is not None:
            of_checks[row.check_id].append(choice)
        elif row.group_id is not None:
            of_groups[row.group_id].append(choice)
    return of_checks, of_groups


def find_some(
    connection: Connection, account_id: str, channel_ids: Iterable[int]
) -> Sequence[ChannelRow]:
    """Those of some channels that are there and the account's own."""
    found = store.list_some(connection, channel_ids)
    return [one for one in found if one.account_id == account_id]


def _find_channels(
    connection: Connection, rows: Iterable[SubscriptionRow]
) -> dict[int, ChannelRow]:
    wanted = {row.channel_id for row in rows}
    return {one.id: one for one in store.list_some(connection, wanted)}


def find_of_groups(
    connection: Connection, group_ids: Iterable[int]
) -> Mapping[int, Sequence[ChannelChoice]]:
    """What several groups say about channels, by group; a group that says nothing is left out."""
    rows = store.list_subscriptions_of(connection, group_ids=group_ids)
    return _by_owner(rows)[1]


def subscribe_new(
    connection: Connection,
    account_id: str,
    subscriber: Subscriber,
    wanted: Sequence[ChannelChoice],
    *,
    auto_assign: bool,
) -> None:
    """Subscribe a new check or group as it says; perhaps to all channels.

    A check is subscribed to the channels that take new checks, too.

    Raises:
        InvalidError: it names a channel that is not there.
    """
    channels = store.list_automatic(connection, account_id)
    _require_known(channels, wanted)
    if subscriber.check_id is None:
        channels = dict.fromkeys(channels, False)
    choices = choose_for_new_check(wanted, channels, auto_assign=auto_assign)
    _subscribe(connection, subscriber, choices)


def replace_subscriptions(
    connection: Connection,
    account_id: str,
    subscriber: Subscriber,
    wanted: Sequence[ChannelChoice],
) -> None:
    """Make these the subscriptions of a check or a group; those that it has keep their ids.

    Raises:
        InvalidError: it names a channel that is not there.
    """
    _require_known(store.list_automatic(connection, account_id), wanted)
    store.unsubscribe(connection, subscriber, kept=[one.channel_id for one in wanted])
    _subscribe(connection, subscriber, wanted)


def _subscribe(
    connection: Connection, subscriber: Subscriber, choices: Iterable[ChannelChoice]
) -> None:
    for one in choices:
        store.subscribe(connection, one.channel_id, subscriber, activated=one.activated)


def _require_known(channels: Mapping[int, bool], wanted: Iterable[ChannelChoice]) -> None:
    for order, one in enumerate(wanted):
        if one.channel_id not in channels:
            field = f"{FIELD}[{order}].alertChannelId"
            raise InvalidError(
                f'"{field}" is {one.channel_id}, and there is no alert channel with this id.',
                keys=(field,),
            )


def forget_old(connection: Connection, *, now_ms: int) -> int:
    """Delete notifications that were settled long ago; how many."""
    return store.forget_notifications(connection, before_ms=now_ms - _KEPT_MS)


def watches_certificates(connection: Connection, account_id: str) -> bool:
    """Whether any channel of the account is notified of certificates that expire soon."""
    return any(channel.ssl_expiry for channel in store.list_all(connection, account_id))


def list_all(connection: Connection, account_id: str) -> tuple[ChannelRow, ...]:
    """All channels of an account, oldest first."""
    return store.list_all(connection, account_id)


def list_subscriptions(
    connection: Connection, *, check_ids: Iterable[str], group_ids: Iterable[int]
) -> tuple[SubscriptionRow, ...]:
    """The subscriptions of checks and groups."""
    return store.list_subscriptions_of(connection, check_ids=check_ids, group_ids=group_ids)
