"""SQL of alert channels, subscriptions and notifications."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from service.alert_channels.model import (
    AnyAlert,
    ChannelRow,
    ChannelType,
    NotificationFilter,
    NotificationRow,
    NotificationStatus,
    Pause,
    Subscriber,
    SubscriptionRow,
)
from service.alerting.model import Alert, LocationAlert
from service.db.json_columns import readable_json
from service.db.tables.alert_channels import (
    alert_channel,
    alert_notification,
    alert_subscription,
    certificate_notice,
)

SECRETS: Final = alert_channel.c.secrets
_CHANNELS: Final[Select[Any]] = select(
    *(column for column in alert_channel.c if column.name != "config"),
    readable_json(alert_channel.c.config).label("config"),
).order_by(alert_channel.c.id)
_OF_ACCOUNT: Final = _CHANNELS.where(alert_channel.c.account_id == bindparam("account"))
_OPEN: Final = alert_notification.c.status == NotificationStatus.IN_PROGRESS.value
_NOTIFICATIONS: Final[Select[Any]] = select(
    *(column for column in alert_notification.c if column.name != "alert"),
    readable_json(alert_notification.c.alert).label("alert"),
)
_IS_OPEN: Final = text("status = 'IN_PROGRESS'")
"""In the very words of the partial index, which a parameter keeps from being used."""
_HEADS: Final = select(
    select(func.min(alert_notification.c.serial))
    .where(alert_notification.c.channel_id == alert_channel.c.id, _IS_OPEN)
    .correlate(alert_channel)
    .scalar_subquery()
).select_from(alert_channel)
"""The first that waits in each channel: one look into the index for each, however many wait."""
_FAILED: Final = (NotificationStatus.FAILURE.value, NotificationStatus.RATE_LIMITED.value)


def find(connection: Connection, account_id: str, channel_id: int) -> ChannelRow | None:
    """One channel. None: the account has none with this id."""
    query = _OF_ACCOUNT.where(alert_channel.c.id == channel_id)
    row = connection.execute(query, {"account": account_id}).first()
    return None if row is None else read(row)


def find_any(connection: Connection, channel_id: int) -> ChannelRow | None:
    """One channel, whosever it is. None: there is none with this id."""
    row = connection.execute(_CHANNELS.where(alert_channel.c.id == channel_id)).first()
    return None if row is None else read(row)


def list_page(
    connection: Connection, account_id: str, *, limit: int, offset: int
) -> tuple[ChannelRow, ...]:
    """A page of the account's channels, oldest first."""
    query = _OF_ACCOUNT.limit(limit).offset(offset)
    return tuple(map(read, connection.execute(query, {"account": account_id})))


def list_all(connection: Connection, account_id: str) -> tuple[ChannelRow, ...]:
    """All channels of an account, oldest first."""
    return tuple(map(read, connection.execute(_OF_ACCOUNT, {"account": account_id})))


def list_some(connection: Connection, channel_ids: Iterable[int]) -> tuple[ChannelRow, ...]:
    """The channels with these ids, oldest first."""
    query = _CHANNELS.where(alert_channel.c.id.in_(list(channel_ids)))
    return tuple(map(read, connection.execute(query)))


def list_automatic(connection: Connection, account_id: str) -> dict[int, bool]:
    """By channel of the account: whether it takes new checks by itself."""
    query = select(alert_channel.c.id, alert_channel.c.auto_subscribe).where(
        alert_channel.c.account_id == account_id
    )
    rows = connection.execute(query.order_by(alert_channel.c.id))
    return {row.id: row.auto_subscribe for row in rows}


def count(connection: Connection, account_id: str) -> int:
    """How many channels an account has."""
    query = select(func.count()).where(alert_channel.c.account_id == account_id)
    return int(connection.execute(query).scalar_one())


def add(connection: Connection, values: Mapping[str, Any]) -> int:
    """Store a new channel; the mapping holds every column but the id, which comes back."""
    made = connection.execute(insert(alert_channel).values(**values)).inserted_primary_key
    return int(made[0]) if made else 0


def change(connection: Connection, channel_id: int, values: Mapping[str, Any]) -> None:
    """Change a channel."""
    is_it = alert_channel.c.id == channel_id
    connection.execute(update(alert_channel).where(is_it).values(**values))


def pause(
    connection: Connection, channel_id: int, values: Mapping[str, Any], *, updated_ms: int | None
) -> bool:
    """Pause a channel that was changed last at this time. False: it was changed since, or is gone.

    `updated_ms`: None stands for never.
    """
    wanted = and_(
        alert_channel.c.id == channel_id,
        alert_channel.c.updated_ms.is_not_distinct_from(updated_ms),
    )
    found = connection.execute(update(alert_channel).where(wanted).values(**values))
    return found.rowcount > 0


def remove(connection: Connection, channel_id: int) -> None:
    """Forget a channel, with its subscriptions and notifications."""
    connection.execute(delete(alert_channel).where(alert_channel.c.id == channel_id))


def with_subscriptions(
    connection: Connection, channels: Sequence[ChannelRow]
) -> tuple[ChannelRow, ...]:
    """The channels with their subscriptions, oldest first."""
    of_these = alert_subscription.c.channel_id.in_([one.id for one in channels])
    found: dict[int, list[SubscriptionRow]] = {}
    for one in _list_subscriptions(connection, of_these):
        found.setdefault(one.channel_id, []).append(one)
    return tuple(replace(one, subscriptions=tuple(found.get(one.id, ()))) for one in channels)


def count_senders(connection: Connection, channel_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """How many checks and how many groups send to each of these channels by its subscriptions."""
    table = alert_subscription.c
    query = (
        select(table.channel_id, func.count(table.check_id), func.count(table.group_id))
        .where(table.channel_id.in_(list(channel_ids)), table.activated)
        .group_by(table.channel_id)
    )
    return {row[0]: (row[1], row[2]) for row in connection.execute(query)}


def list_subscriptions_of(
    connection: Connection, *, check_ids: Iterable[str] = (), group_ids: Iterable[int] = ()
) -> tuple[SubscriptionRow, ...]:
    """All subscriptions of these checks and groups, oldest first."""
    wanted = or_(
        alert_subscription.c.check_id.in_(list(check_ids)),
        alert_subscription.c.group_id.in_(list(group_ids)),
    )
    return _list_subscriptions(connection, wanted)


def find_subscription(
    connection: Connection, account_id: str, subscription_id: int
) -> SubscriptionRow | None:
    """A subscription to a channel of the account. None: there is none with this id."""
    own = select(alert_channel.c.id).where(alert_channel.c.account_id == account_id)
    wanted = and_(
        alert_subscription.c.id == subscription_id, alert_subscription.c.channel_id.in_(own)
    )
    return next(iter(_list_subscriptions(connection, wanted)), None)


def _list_subscriptions(
    connection: Connection, wanted: ColumnElement[bool]
) -> tuple[SubscriptionRow, ...]:
    query = select(alert_subscription).where(wanted).order_by(alert_subscription.c.id)
    return tuple(
        SubscriptionRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented face of a row
        for row in connection.execute(query)
    )


def subscribe(
    connection: Connection, channel_id: int, subscriber: Subscriber, *, activated: bool
) -> SubscriptionRow:
    """Subscribe a check or a group, or change its subscription."""
    wanted = and_(alert_subscription.c.channel_id == channel_id, _is_of(subscriber))
    values = {"activated": activated}
    if not connection.execute(update(alert_subscription).where(wanted).values(values)).rowcount:
        named = {"channel_id": channel_id, **asdict(subscriber)}
        connection.execute(insert(alert_subscription).values(**named, **values))
    (row,) = _list_subscriptions(connection, wanted)
    return row


def unsubscribe(connection: Connection, subscriber: Subscriber, *, kept: Iterable[int]) -> None:
    """Forget the subscriptions of a check or a group, but those to some channels."""
    is_kept = alert_subscription.c.channel_id.in_(list(kept))
    connection.execute(delete(alert_subscription).where(_is_of(subscriber), ~is_kept))


def unsubscribe_one(connection: Connection, subscription_id: int) -> None:
    """Forget a subscription."""
    connection.execute(delete(alert_subscription).where(alert_subscription.c.id == subscription_id))


def unsubscribe_all(connection: Connection, channel_id: int) -> None:
    """Forget all subscriptions of a channel."""
    of_channel = alert_subscription.c.channel_id == channel_id
    connection.execute(delete(alert_subscription).where(of_channel))


def _is_of(subscriber: Subscriber) -> ColumnElement[bool]:
    if subscriber.group_id is None:
        return alert_subscription.c.check_id == subscriber.check_id
    return alert_subscription.c.group_id == subscriber.group_id


def add_notification(connection: Connection, values: Mapping[str, Any], alert: AnyAlert) -> None:
    """Queue a notification; the mapping holds every column but the serial and the alert."""
    stored = {**values, "alert": msgspec.to_builtins(alert)}
    connection.execute(insert(alert_notification).values(stored))


def find_alarmed(connection: Connection, check_id: str) -> set[int]:
    """The channels whose newest notification about the check is no recovery."""
    newest = (
        select(func.max(alert_notification.c.serial))
        .where(alert_notification.c.check_id == check_id, alert_notification.c.is_logged)
        .group_by(alert_notification.c.channel_id)
    )
    rows = connection.execute(_NOTIFICATIONS.where(alert_notification.c.serial.in_(newest)))
    return {row.channel_id for row in map(_read_notification, rows) if not _ends(row)}


def _ends(row: NotificationRow) -> bool:
    return isinstance(row.alert, Alert) and row.alert.alert_type.is_recovery


def list_due(connection: Connection, *, now_ms: int) -> tuple[NotificationRow, ...]:
    """The first that waits in each channel, if it is due."""
    query = _NOTIFICATIONS.where(
        alert_notification.c.serial.in_(_HEADS), alert_notification.c.next_try_ms <= now_ms
    )
    return tuple(
        map(_read_notification, connection.execute(query.order_by(alert_notification.c.serial)))
    )


def find_next_due(connection: Connection, *, after_ms: int) -> int | None:
    """When the next one is due. None: none waits."""
    query = select(func.min(alert_notification.c.next_try_ms)).where(
        alert_notification.c.serial.in_(_HEADS), alert_notification.c.next_try_ms > after_ms
    )
    found: int | None = connection.execute(query).scalar_one()
    return found


def begin_try(connection: Connection, row: NotificationRow, values: Mapping[str, Any]) -> bool:
    """Keep that a try begins. False: the notification is settled, gone, or another's by now."""
    table = alert_notification.c
    wanted = and_(table.serial == row.serial, table.attempts == row.attempts, _OPEN)
    found = connection.execute(update(alert_notification).where(wanted).values(**values))
    return found.rowcount > 0


def note_try(connection: Connection, serial: int, values: Mapping[str, Any]) -> bool:
    """Keep what is known of a try. False: the notification is settled, or gone."""
    wanted = and_(alert_notification.c.serial == serial, _OPEN)
    found = connection.execute(update(alert_notification).where(wanted).values(**values))
    return found.rowcount > 0


def fail_waiting(
    connection: Connection,
    channel_id: int,
    outcome: str,
    *,
    status: NotificationStatus = NotificationStatus.FAILURE,
    before_ms: int | None = None,
) -> None:
    """What waits in a channel, and was queued before, has failed. None: all of it."""
    wanted = [alert_notification.c.channel_id == channel_id, _OPEN]
    if before_ms is not None:
        wanted.append(alert_notification.c.created_ms < before_ms)
    values = {"status": status.value, "outcome": outcome}
    connection.execute(update(alert_notification).where(*wanted).values(**values))


def set_next_try(connection: Connection, channel_id: int, at_ms: int) -> None:
    """Have the first that waits in a channel tried then, and those behind it after it."""
    first = select(func.min(alert_notification.c.serial)).where(
        alert_notification.c.channel_id == channel_id, _OPEN
    )
    is_first = alert_notification.c.serial == first.scalar_subquery()
    connection.execute(update(alert_notification).where(is_first).values(next_try_ms=at_ms))


def count_failure(connection: Connection, channel_id: int) -> int:
    """Count a try that the receiver did not take; how many there were in a row."""
    counted = update(alert_channel).where(alert_channel.c.id == channel_id)
    counted = counted.values(failures=alert_channel.c.failures + 1)
    found = connection.execute(counted.returning(alert_channel.c.failures)).scalar_one_or_none()
    return found or 1


def forget_failures(connection: Connection, channel_id: int) -> None:
    """The receiver takes notifications."""
    wanted = and_(alert_channel.c.id == channel_id, alert_channel.c.failures > 0)
    connection.execute(update(alert_channel).where(wanted).values(failures=0))


def has_later(connection: Connection, row: NotificationRow) -> bool:
    """Whether the channel is notified of the same check's state by a later notification too."""
    later = select(alert_notification.c.serial).where(
        alert_notification.c.check_id == row.check_id,
        alert_notification.c.channel_id == row.channel_id,
        alert_notification.c.serial > row.serial,
        alert_notification.c.is_logged,
    )
    return connection.execute(later.limit(1)).first() is not None


def list_notifications(
    connection: Connection,
    account_id: str,
    wanted: NotificationFilter,
    *,
    limit: int,
    offset: int,
) -> tuple[NotificationRow, ...]:
    """A page of the account's notifications, newest first."""
    query = _NOTIFICATIONS.where(*_match_notifications(account_id, wanted))
    query = query.order_by(alert_notification.c.serial.desc()).limit(limit).offset(offset)
    return tuple(map(_read_notification, connection.execute(query)))


def count_notifications(connection: Connection, account_id: str, wanted: NotificationFilter) -> int:
    """How many notifications of the account match."""
    query = select(func.count()).select_from(alert_notification)
    return _count(connection, query.where(*_match_notifications(account_id, wanted)))


def count_channels(connection: Connection, account_id: str) -> int:
    """How many channels the account has."""
    query = select(func.count()).select_from(alert_channel)
    return _count(connection, query.where(alert_channel.c.account_id == account_id))


def _count(connection: Connection, query: Select[Any]) -> int:
    return int(connection.execute(query).scalar_one())


def _match_notifications(
    account_id: str, wanted: NotificationFilter
) -> Sequence[ColumnElement[bool]]:
    conditions = [
        alert_notification.c.account_id == account_id,
        alert_notification.c.is_logged,
        alert_notification.c.created_ms >= wanted.from_ms,
        alert_notification.c.created_ms < wanted.to_ms,
    ]
    if wanted.channel_id is not None:
        conditions.append(alert_notification.c.channel_id == wanted.channel_id)
    if wanted.has_failures is not None:
        has_failed = alert_notification.c.status.in_(_FAILED)
        conditions.append(has_failed if wanted.has_failures else ~has_failed)
    return conditions


def list_newest(
    connection: Connection, account_id: str, channel_ids: Iterable[int]
) -> tuple[NotificationRow, ...]:
    """The newest notification of each channel that has one."""
    newest = (
        select(func.max(alert_notification.c.serial))
        .where(
            alert_notification.c.account_id == account_id,
            alert_notification.c.channel_id.in_(list(channel_ids)),
        )
        .group_by(alert_notification.c.channel_id)
    )
    query = _NOTIFICATIONS.where(alert_notification.c.serial.in_(newest))
    return tuple(map(_read_notification, connection.execute(query)))


def list_first_waiting(
    connection: Connection, channel_ids: Iterable[int]
) -> tuple[NotificationRow, ...]:
    """The first that waits in each of these channels."""
    first = _HEADS.where(alert_channel.c.id.in_(list(channel_ids)))
    query = _NOTIFICATIONS.where(alert_notification.c.serial.in_(first))
    return tuple(map(_read_notification, connection.execute(query)))


def list_of_alerts(
    connection: Connection, check_id: str | None, alert_ids: Iterable[str]
) -> tuple[NotificationRow, ...]:
    """The notifications of alerts of a check, or of a location (None), oldest first."""
    query = _NOTIFICATIONS.where(
        alert_notification.c.check_id == check_id,
        alert_notification.c.alert_id.in_(list(alert_ids)),
    ).order_by(alert_notification.c.serial)
    return tuple(map(_read_notification, connection.execute(query)))


def forget_notifications(connection: Connection, *, before_ms: int) -> int:
    """Delete settled notifications that are older; how many."""
    wanted = and_(alert_notification.c.created_ms < before_ms, ~_OPEN)
    return connection.execute(delete(alert_notification).where(wanted)).rowcount


def find_notified_expiry(connection: Connection, channel_id: int, check_id: str) -> int | None:
    """When the certificate expires that the channel was notified of last. None: it was of none."""
    found: int | None = connection.execute(
        select(certificate_notice.c.expires_ms).where(*_notice(channel_id, check_id))
    ).scalar_one_or_none()
    return found


def note_notified_expiry(
    connection: Connection, channel_id: int, check_id: str, expires_ms: int
) -> None:
    """The channel is notified of a certificate that expires then."""
    connection.execute(delete(certificate_notice).where(*_notice(channel_id, check_id)))
    values = {"channel_id": channel_id, "check_id": check_id, "expires_ms": expires_ms}
    connection.execute(insert(certificate_notice).values(values))


def _notice(channel_id: int, check_id: str) -> tuple[ColumnElement[bool], ...]:
    return (
        certificate_notice.c.channel_id == channel_id,
        certificate_notice.c.check_id == check_id,
    )


def read(row: Row[Any]) -> ChannelRow:
    """A channel of a row with all columns."""
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's documented face of a row
    reason, since_ms = values.pop("paused_reason"), values.pop("paused_ms")
    return ChannelRow(
        **{
            **values,
            "type": ChannelType(row.type),
            "config": row.config or {},
            "pause": None if reason is None else Pause(reason=reason, since_ms=since_ms),
        }
    )


def _read_notification(row: Row[Any]) -> NotificationRow:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's documented face of a row
    del values["is_logged"]
    return NotificationRow(
        **{
            **values,
            "status": NotificationStatus(row.status),
            "alert": _read_alert(row.alert),
        }
    )


def _read_alert(stored: Any) -> AnyAlert | None:
    """None: it is no alert, which must not keep the others back."""
    if not isinstance(stored, dict):
        return None
    kind: type[AnyAlert] = LocationAlert if "location_name" in stored else Alert
    try:
        return msgspec.convert(stored, kind)
    except msgspec.ValidationError:
        return None
