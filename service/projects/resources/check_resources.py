"""Checks of a project."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from contract.targets import format_value
from service.checks import actions, changes
from service.checks.schemas import CheckWrite
from service.checks.types.registry import ANY_TYPED
from service.checks.views import compare
from service.http.errors import InvalidError
from service.http.validation import NAMED_TYPES
from service.projects.resources.resource_type import (
    OWN_FIELDS,
    ResourceType,
    View,
    Work,
    look,
    reader,
)

_LACKING: Final = frozenset({"GRPC", "SSL", "TRACEROUTE"})
"""Types of the established service that there are none of here."""
_SUBSCRIBED: Final = frozenset({"alertChannelSubscriptions", "alertChannels"})
"""Subscriptions are resources of their own."""
_ANY: Final = reader(Annotated[ANY_TYPED, Field(discriminator="check_type")])


def _read(payload: Mapping[str, Any]) -> CheckWrite:
    kind = payload.get("checkType")
    if kind in _LACKING:
        raise InvalidError(
            f'"checkType" is {format_value(kind)}, and checks of this type are not supported;'
            f" use {NAMED_TYPES}, or remove it from the project.",
            keys=("checkType",),
        )
    body: CheckWrite = _ANY(payload)
    return body


def _view(work: Work, check_id: str) -> View | None:
    def find() -> View:
        held = actions.find(work.connection, work.scope.account_id, check_id)
        (row,) = actions.complete(work.connection, [held])
        whole = compare(row, base_url="", vault=work.scope.vault)
        return {name: whole[name] for name in whole.keys() - OWN_FIELDS - _SUBSCRIBED}

    return look(find)


def _create(work: Work, body: CheckWrite) -> str:
    return changes.create(work.connection, work.scope, body, auto_assign=False).id


def _replace(work: Work, check_id: str, body: CheckWrite) -> str:
    held = actions.find(work.connection, work.scope.account_id, check_id)
    if held.type != body.kind.value:
        raise InvalidError(
            f'"checkType" is {body.kind.value}, and the check that was deployed is of type'
            f" {held.type}; give the new one another logicalId.",
            keys=("checkType",),
        )
    changes.replace(work.connection, work.scope, check_id, body)
    return check_id


CHECKS: Final = ResourceType(
    placeholder="reference",
    is_number=False,
    read=_read,
    view=_view,
    create=_create,
    replace=_replace,
    delete=lambda work, check_id: changes.delete(work.connection, work.scope, check_id),
)
