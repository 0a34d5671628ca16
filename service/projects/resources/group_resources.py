"""Check groups of a project."""

from collections.abc import Mapping
from typing import Any, Final

from service.groups import actions, group_changes
from service.groups.schemas import AnyGroupWrite, GroupV2Write, GroupWrite, compare
from service.projects.resources.resource_type import (
    OWN_FIELDS,
    ResourceType,
    View,
    Work,
    look,
    reader,
)

_SUBSCRIBED: Final = frozenset({"alertChannelSubscriptions"})
"""Subscriptions are resources of their own."""
_SECOND_FORM: Final = 2
_V1: Final = reader(GroupWrite)
_V2: Final = reader(GroupV2Write)


def _read(payload: Mapping[str, Any]) -> AnyGroupWrite:
    body: AnyGroupWrite = (_V2 if payload.get("v") == _SECOND_FORM else _V1)(payload)
    return body


def _view(work: Work, group_id: str) -> View | None:
    def find() -> View:
        held = actions.find(work.connection, work.scope.account_id, int(group_id))
        (row,) = actions.complete(work.connection, [held])
        whole = compare(row, work.scope.vault)
        shown = {name: whole[name] for name in whole.keys() - OWN_FIELDS - _SUBSCRIBED}
        return {**shown, "v": row.form.value}

    return look(find)


def _create(work: Work, body: AnyGroupWrite) -> str:
    return str(group_changes.create(work.connection, work.scope, body, auto_assign=False).id)


def _replace(work: Work, group_id: str, body: AnyGroupWrite) -> str:
    group_changes.replace(work.connection, work.scope, int(group_id), body)
    return group_id


GROUPS: Final = ResourceType(
    placeholder=1,
    is_number=True,
    read=_read,
    view=_view,
    create=_create,
    replace=_replace,
    delete=lambda work, one: group_changes.delete(work.connection, work.scope, int(one)),
)
