"""Creates, changes and removes alert channels, and subscribes checks and groups to them."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection

from service.alert_channels import store
from service.alert_channels.model import (
    AnyAlert,
    ChannelRow,
    NotificationsQueued,
    NotificationStatus,
    Subscriber,
    SubscriptionRow,
)
from service.alert_channels.schemas import ChannelSubscriptionWrite, ChannelWrite
from service.alert_channels.secrets import decrypt, encrypt, restore
from service.checks import actions as checks
from service.db.engine import announce
from service.db.ids import new_id
from service.groups import actions as groups
from service.http.errors import InvalidError, NotFoundError
from service.vault.encryption import DecryptionError, Scope

_MOST_CHANNELS: Final = 500
"""In an account: an alert may go through all of them."""
_MOST_ID: Final = 1 << 63


def find(connection: Connection, account_id: str, channel_id: int) -> ChannelRow:
    """A channel of the account, with its subscriptions.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, channel_id)
    if row is None:
        raise NotFoundError(f"There is no alert channel {channel_id}.")
    (found,) = store.with_subscriptions(connection, [row])
    return found


def create(connection: Connection, scope: Scope, body: ChannelWrite) -> ChannelRow:
    """Set up a channel.

    Raises:
        InvalidError: a subscription names a check or a group that is not there, a secret is
            `HIDDEN`, or the account has too many channels.
    """
    if store.count(connection, scope.account_id) >= _MOST_CHANNELS:
        raise InvalidError(
            f"The account has {_MOST_CHANNELS} alert channels, and may have no more;"
            " delete those that are not used.",
            keys=("type",),
        )
    config = restore(body.kind, _dump_config(body), {})
    # Its number, for which the config is encrypted, is known only then.
    bare = {"config": {}, "secrets": b"", "account_id": scope.account_id}
    made = {"created_ms": scope.now_ms, "updated_ms": None}
    channel_id = store.add(connection, {**_columns(body), **bare, **made})
    store.change(connection, channel_id, _seal(scope, channel_id, body, config))
    _subscribe_all(connection, scope.account_id, channel_id, body.subscriptions or ())
    return find(connection, scope.account_id, channel_id)


def replace(
    connection: Connection, scope: Scope, channel_id: int, body: ChannelWrite
) -> ChannelRow:
    """Set a channel up anew, which resumes it; subscriptions that are left out stay.

    Raises:
        NotFoundError: the account has no such channel.
        InvalidError: a subscription names a check or a group that is not there, or a secret is
            `HIDDEN` and there is none to keep.
    """
    before = find(connection, scope.account_id, channel_id)
    config = restore(body.kind, _dump_config(body), _stored_config(before, scope, body))
    sealed = _seal(scope, channel_id, body, config)
    changed = {"updated_ms": scope.now_ms, "failures": 0}
    store.change(connection, channel_id, {**_columns(body), **sealed, **changed})
    # What waits is tried at once: what the channel is now may do better.
    store.set_next_try(connection, channel_id, scope.now_ms)
    announce(connection, NotificationsQueued())
    if body.subscriptions is not None:
        store.unsubscribe_all(connection, channel_id)
        _subscribe_all(connection, scope.account_id, channel_id, body.subscriptions)
    return find(connection, scope.account_id, channel_id)


def delete(connection: Connection, account_id: str, channel_id: int) -> None:
    """Forget a channel, with its subscriptions and notifications.

    Raises:
        NotFoundError: the account has no such channel.
    """
    find(connection, account_id, channel_id)
    store.remove(connection, channel_id)


def subscribe(
    connection: Connection, account_id: str, channel_id: int, wanted: ChannelSubscriptionWrite
) -> SubscriptionRow:
    """Subscribe a check or a group, or change its subscription.

    Raises:
        NotFoundError: the account has no such channel.
        InvalidError: the account has no such check or group.
    """
    find(connection, account_id, channel_id)
    return _subscribe(connection, account_id, channel_id, wanted, path="")


def find_subscription(
    connection: Connection, account_id: str, subscription_id: int
) -> SubscriptionRow:
    """A subscription to a channel of the account.

    Raises:
        NotFoundError: there is none with this id.
    """
    row = store.find_subscription(connection, account_id, subscription_id)
    if row is None:
        raise NotFoundError(f"There is no subscription {subscription_id}.")
    return row


def unsubscribe(connection: Connection, account_id: str, subscription_id: int) -> None:
    """Forget a subscription.

    Raises:
        NotFoundError: there is none with this id.
    """
    find_subscription(connection, account_id, subscription_id)
    store.unsubscribe_one(connection, subscription_id)


def subscribe_some(
    connection: Connection,
    account_id: str,
    channel_id: int,
    wanted: Sequence[ChannelSubscriptionWrite],
) -> tuple[SubscriptionRow, ...]:
    """Subscribe checks and groups, or change their subscriptions; the others stay.

    Raises:
        NotFoundError: the account has no such channel.
        InvalidError: the account has no such check or group.
    """
    find(connection, account_id, channel_id)
    return _subscribe_all(connection, account_id, channel_id, wanted)


def note_test(
    connection: Connection, channel_id: int, alert: AnyAlert, *, outcome: str, has_failed: bool
) -> None:
    """Keep what became of a sample, for people; no list of the API has it."""
    status = NotificationStatus.FAILURE if has_failed else NotificationStatus.SUCCESS
    values = {
        "id": new_id(alert.created_ms),
        "account_id": alert.account_id,
        "channel_id": channel_id,
        **dict.fromkeys(("check_id", "check_type", "result_id")),
        "alert_id": alert.id,
        "is_logged": False,
        "status": status.value,
        "attempts": 1,
        "next_try_ms": alert.created_ms,
        "outcome": outcome,
        "created_ms": alert.created_ms,
    }
    if store.find(connection, alert.account_id, channel_id) is not None:
        store.add_notification(connection, values, alert)


def _subscribe_all(
    connection: Connection,
    account_id: str,
    channel_id: int,
    wanted: Sequence[ChannelSubscriptionWrite],
) -> tuple[SubscriptionRow, ...]:
    return tuple(
        _subscribe(connection, account_id, channel_id, one, path=f"subscriptions[{order}].")
        for order, one in enumerate(wanted)
    )


def _subscribe(
    connection: Connection,
    account_id: str,
    channel_id: int,
    wanted: ChannelSubscriptionWrite,
    *,
    path: str,
) -> SubscriptionRow:
    if wanted.check_id is not None:
        _require_check(connection, account_id, wanted.check_id, f"{path}checkId")
    elif wanted.group_id is not None:
        _require_group(connection, account_id, wanted.group_id, f"{path}groupId")
    subscriber = Subscriber(check_id=wanted.check_id, group_id=wanted.group_id)
    return store.subscribe(connection, channel_id, subscriber, activated=wanted.activated)


def _require_check(connection: Connection, account_id: str, check_id: str, field: str) -> None:
    try:
        checks.find(connection, account_id, check_id)
    except NotFoundError:
        raise InvalidError(
            f'"{field}" is {check_id}, and there is no check with this id.', keys=(field,)
        ) from None


def _require_group(connection: Connection, account_id: str, group_id: int, field: str) -> None:
    try:
        groups.find(connection, account_id, group_id if 0 < group_id < _MOST_ID else 0)
    except NotFoundError:
        raise InvalidError(
            f'"{field}" is {group_id}, and there is no check group with this id.', keys=(field,)
        ) from None


def _seal(
    scope: Scope, channel_id: int, body: ChannelWrite, config: dict[str, Any]
) -> dict[str, Any]:
    return encrypt(
        body.kind, config, scope.vault, account_id=scope.account_id, channel_id=channel_id
    )


def _dump_config(body: ChannelWrite) -> dict[str, Any]:
    whole: dict[str, Any] = body.model_dump(mode="json", by_alias=True)["config"]
    return whole


def _stored_config(before: ChannelRow, scope: Scope, body: ChannelWrite) -> dict[str, Any]:
    """What `HIDDEN` may stand for: nothing if the channel becomes one of another type."""
    if before.type is not body.kind:
        return {}
    try:
        return decrypt(before, scope.vault)
    except DecryptionError:
        return {}


def _columns(body: ChannelWrite) -> dict[str, Any]:
    return {
        "type": body.kind.value,
        "send_recovery": body.send_recovery,
        "send_failure": body.send_failure,
        "send_degraded": body.send_degraded,
        "ssl_expiry": body.ssl_expiry,
        "ssl_expiry_threshold": body.ssl_expiry_threshold,
        "auto_subscribe": body.auto_subscribe,
        "paused_reason": None,
        "paused_ms": None,
    }
