"""Triggers as the API shows them; pure."""

from typing import Any

from service.http.times import maybe_moment, moment
from service.triggers.model import CheckTriggerShown, GroupTriggerShown, TriggerRow


def check_trigger_shown(row: TriggerRow, check_id: str, *, token: str) -> CheckTriggerShown:
    """A trigger of a check; `token` is the token itself, or what is shown of it later."""
    return CheckTriggerShown(**_fields(row, token), check_id=check_id)


def group_trigger_shown(row: TriggerRow, group_id: int, *, token: str) -> GroupTriggerShown:
    """A trigger of a check group, likewise."""
    return GroupTriggerShown(**_fields(row, token), group_id=group_id)


def _fields(row: TriggerRow, token: str) -> dict[str, Any]:
    return {
        "id": row.id,
        "token": token,
        "created_at": moment(row.created_ms),
        "called_at": maybe_moment(row.called_ms),
        "updated_at": None,
    }
