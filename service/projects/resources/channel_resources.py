"""Alert channels of a project, and who is subscribed to them."""

from typing import Annotated, Any, Final

from service.alert_channels import channel_changes as changes
from service.alert_channels.kinds.registry import ANY_WRITE
from service.alert_channels.schemas import ChannelSubscriptionWrite, ChannelWrite, render
from service.alert_channels.secrets import decrypt_for_people
from service.http.schema import JsonNumber
from service.projects.resources.resource_type import (
    OWN_FIELDS,
    ResourceType,
    View,
    Work,
    look,
    reader,
)
from service.vault.encryption import Viewer

_ELSEWHERE: Final = frozenset({"subscriptions", "paused"})
"""Subscriptions are resources of their own, and a pause is a state."""


class _SubscriptionResource(ChannelSubscriptionWrite):
    """A subscription, which names its channel."""

    alert_channel_id: Annotated[int, JsonNumber]
    activated: bool = True


def _view_channel(work: Work, channel_id: str) -> View | None:
    def find() -> View:
        row = changes.find(work.connection, work.scope.account_id, int(channel_id))
        viewer = Viewer.writer(work.scope.vault).hiding
        whole = render(row, lambda stored: viewer.reveal(stored, decrypt_for_people))
        return {name: whole[name] for name in whole.keys() - OWN_FIELDS - _ELSEWHERE}

    return look(find)


def _create_channel(work: Work, body: ChannelWrite) -> str:
    return str(changes.create(work.connection, work.scope, body).id)


def _replace_channel(work: Work, channel_id: str, body: ChannelWrite) -> str:
    changes.replace(work.connection, work.scope, int(channel_id), body)
    return channel_id


CHANNELS: Final = ResourceType(
    placeholder=1,
    is_number=True,
    read=reader(ANY_WRITE),
    view=_view_channel,
    create=_create_channel,
    replace=_replace_channel,
    delete=lambda work, one: changes.delete(work.connection, work.scope.account_id, int(one)),
)


def _view_subscription(work: Work, subscription_id: str) -> View | None:
    def find() -> View:
        account_id = work.scope.account_id
        row = changes.find_subscription(work.connection, account_id, int(subscription_id))
        return {
            "alertChannelId": row.channel_id,
            "checkId": row.check_id,
            "groupId": row.group_id,
            "activated": row.activated,
        }

    return look(find)


def _create_subscription(work: Work, body: Any) -> str:
    account_id = work.scope.account_id
    row = changes.subscribe(work.connection, account_id, body.alert_channel_id, body)
    return str(row.id)


def _replace_subscription(work: Work, subscription_id: str, body: Any) -> str:
    """One of something else takes its place; of the same thing it keeps its id."""
    made = _create_subscription(work, body)
    if made != subscription_id:
        changes.unsubscribe(work.connection, work.scope.account_id, int(subscription_id))
    return made


SUBSCRIPTIONS: Final = ResourceType(
    placeholder=1,
    is_number=True,
    read=reader(_SubscriptionResource),
    view=_view_subscription,
    create=_create_subscription,
    replace=_replace_subscription,
    delete=lambda work, one: changes.unsubscribe(work.connection, work.scope.account_id, int(one)),
)
