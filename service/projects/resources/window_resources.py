"""Maintenance windows of a project."""

from collections.abc import Mapping
from typing import Any, Final

from service.maintenance import window_changes as changes
from service.maintenance.model import WindowWrite, render
from service.maintenance.rules import Plan, plan
from service.projects.resources.resource_type import (
    OWN_FIELDS,
    ResourceType,
    View,
    Work,
    look,
    reader,
)

_READ: Final = reader(WindowWrite)
_Body = tuple[WindowWrite, Plan]


def _read(payload: Mapping[str, Any]) -> _Body:
    body: WindowWrite = _READ(payload)
    return body, plan(body)


def _view(work: Work, window_id: str) -> View | None:
    def find() -> View:
        row = changes.find(work.connection, work.scope.account_id, int(window_id))
        whole = render(row).model_dump(mode="json")
        return {name: whole[name] for name in whole.keys() - OWN_FIELDS}

    return look(find)


def _create(work: Work, body: _Body) -> str:
    return str(changes.create(work.connection, work.scope, *body).id)


def _replace(work: Work, window_id: str, body: _Body) -> str:
    changes.replace(work.connection, work.scope, int(window_id), *body)
    return window_id


WINDOWS: Final = ResourceType(
    placeholder=1,
    is_number=True,
    read=_read,
    view=_view,
    create=_create,
    replace=_replace,
    delete=lambda work, one: changes.delete(work.connection, work.scope, int(one)),
)
