"""Groups as the API shows them: what was written, every default filled in, and what we know."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import Field

from service.checks.alert_fields import AlertSettings
from service.groups.bodies import GroupFields
from service.groups.model import BASE_URL, GroupRow
from service.groups.sealing import opened, readable
from service.http.errors import UnreadableError
from service.http.times import spelled
from service.variables.model import VariableRow
from service.variables.views import Sight, shown_doc
from service.variables.views import compared as variable
from service.vault.sealing import UnsealableError, Vault


class GroupShown(GroupFields):
    """A check group."""

    id: int
    double_check: bool
    use_global_alert_settings: bool | None
    """True: the account's alert settings, not the group's."""
    alert_settings: AlertSettings | None
    """Null: the group has none."""
    run_parallel: bool | None
    """Null: as each check says."""
    created_at: datetime = Field(alias="created_at")
    updated_at: datetime | None = Field(alias="updated_at")
    """Null: never changed."""


def shown(group: GroupRow, sight: Sight) -> dict[str, Any]:
    """A stored group, read with its variables, as its answer; what is not shown is not opened.

    Raises:
        UnreadableError: a secret is to be shown, and does not open.
    """
    return {
        "id": group.id,
        **_seen(group, sight).doc,
        "environmentVariables": [shown_doc(one, sight) for one in _own(group)],
        "created_at": spelled(group.created_ms),
        "updated_at": spelled(group.updated_ms),
    }


def compared(group: GroupRow, vault: Vault) -> dict[str, Any]:
    """All of a group, its secrets too: to tell what a change changed, and never for an answer.

    Secrets that do not open are like no other, so that whatever takes their place is a change.
    """
    whole = shown(_opened(group, vault), Sight(vault, may_write=True))
    return {**whole, "environmentVariables": [variable(one, vault) for one in _own(group)]}


def _seen(group: GroupRow, sight: Sight) -> GroupRow:
    if not sight.may_write:
        return group
    try:
        return readable(group, sight.vault)
    except UnreadableError:
        if sight.hides_unreadable:
            return group
        raise


def _own(group: GroupRow) -> Sequence[VariableRow]:
    """Without the group's address, which stands elsewhere in its answer."""
    has_url = bool(group.doc["apiCheckDefaults"]["url"])
    return [one for one in group.variables if not (has_url and one.key == BASE_URL)]


def _opened(group: GroupRow, vault: Vault) -> GroupRow:
    try:
        return opened(group, vault)
    except UnsealableError:
        return replace(group, doc={**group.doc, "apiCheckDefaults": {"url": None}}, secrets=None)
