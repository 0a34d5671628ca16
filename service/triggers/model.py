"""Triggers as they are stored and as people see them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote

from pydantic import Field

from service.http.schema import ResponseModel
from service.http.times import Moment, moment, optional_moment

PREFIX: Final = "tr_"


class Runs(StrEnum):
    """What a trigger runs."""

    CHECK = "check"
    GROUP = "check group"


_LINKS: Final = {Runs.CHECK: "/checks", Runs.GROUP: "/check-groups"}


@dataclass(frozen=True, slots=True)
class Target:
    """What one trigger runs."""

    runs: Runs
    owner_id: str
    """The id of the check or the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRow:
    """A trigger as it is stored."""

    id: int
    account_id: str
    masked: str
    token: bytes | None
    """Sealed. None: an older release made it, which kept its hash alone."""
    created_ms: int
    called_ms: int | None
    """None: never."""


class TriggerShown(ResponseModel):
    """A trigger."""

    id: int
    token: str
    """Only its last letters for those who only read, and where an earlier release made it."""
    url: str
    """The link that runs it, with `token` in it."""
    created_at: Moment = Field(alias="created_at")
    called_at: Moment | None = Field(alias="called_at")
    """When its link was last called. Null: never."""
    updated_at: Moment | None = Field(alias="updated_at")
    """Always null: creating a trigger again makes a new one."""


class CheckTriggerShown(TriggerShown):
    """A trigger of a check."""

    check_id: str


class GroupTriggerShown(TriggerShown):
    """A trigger of a check group."""

    group_id: int


class VerdictShown(ResponseModel):
    """The verdict of a run by a trigger's link."""

    has_failures: bool
    response_time: int | None
    """Milliseconds; of several runs, the longest. Null: nothing was measured."""


def render(row: TriggerRow, target: Target, *, token: str, base_url: str) -> TriggerShown:
    """A trigger as its answer; `token` is the token itself, or what is shown of it."""
    fields: dict[str, Any] = {
        "id": row.id,
        "token": token,
        "url": f"{base_url}{_LINKS[target.runs]}/{quote(target.owner_id, safe='')}/trigger/{token}",
        "created_at": moment(row.created_ms),
        "called_at": optional_moment(row.called_ms),
        "updated_at": None,
    }
    if target.runs is Runs.CHECK:
        return CheckTriggerShown(**fields, check_id=target.owner_id)
    return GroupTriggerShown(**fields, group_id=int(target.owner_id))
