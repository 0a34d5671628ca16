"""What a check comes to: its group's settings, its scripts and its places worked in.

It is worked out when a check or its group is written, so that ticks, claims and results read
columns of the check alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from contract.checks import CheckSpec, CheckType, Lane, lane
from contract.runtimes import runtime_problem
from contract.wire import encode
from service.checks.model import CheckRow
from service.checks.places import places
from service.checks.scripted import completed
from service.checks.sealing import UNREADABLE_SPEC
from service.checks.spec import spec_of
from service.groups.model import GroupRow
from service.groups.rules import applied
from service.http.errors import InvalidError
from service.locations import actions as locations


@dataclass(frozen=True, slots=True)
class Owned:
    """What an account has that its checks name."""

    account_id: str
    locations: Mapping[str, str]
    """Ids by slug, oldest first."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What runs of a check go by."""

    columns: Mapping[str, Any]
    """Of its row, beside what was written."""
    location_ids: list[str]

    @property
    def activated(self) -> bool:
        """Whether it runs."""
        return bool(self.columns["activated"])

    @property
    def without_spec(self) -> "Effect":
        """The same where a secret does not open: no run can be told what to ask for."""
        return replace(self, columns={**self.columns, "spec": UNREADABLE_SPEC})

    def is_of(self, row: CheckRow, spec: bytes | None) -> bool:
        """Whether a check of a group, whole, comes to this already.

        `spec`: what runs need by now. None: nobody knows.
        """
        return bool(self.columns["applied"] == row.applied and self.columns["spec"] == spec)


def owned_by(connection: Connection, account_id: str) -> Owned:
    """Asked once, however many checks it is for."""
    return Owned(account_id, locations.ids_by_slug(connection, account_id))


def effect_of(
    connection: Connection,
    owned: Owned,
    doc: Mapping[str, Any],
    *,
    kind: CheckType,
    group: GroupRow | None,
) -> Effect:
    """What a check in this group comes to; no group: it is in none.

    Raises:
        InvalidError: it names a location, snippet, bundle or runtime that is not there, or no
            location.
    """
    whole = applied(doc, kind, group) if group else doc
    location_ids = places(owned.locations, whole, kind)
    spec = completed(connection, owned.account_id, spec_of(whole, kind), doc=whole, group=group)
    _hold_runtime(whole["runtimeId"], spec)
    columns = {
        "lane": lane(spec).value,
        "activated": whole["activated"],
        "muted": whole["muted"],
        "run_parallel": whole["runParallel"],
        "group_id": group.id if group else None,
        "applied": whole if group else None,
        "spec": encode(spec),
    }
    return Effect(columns, location_ids)


def _hold_runtime(runtime_id: str | None, spec: CheckSpec) -> None:
    """Where there is a script, it needs a runtime that agents have; it may be the group's."""
    if runtime_id and lane(spec) is Lane.MAIN and (problem := runtime_problem(runtime_id)):
        raise InvalidError(f'"runtimeId" {problem}.', keys=("runtimeId",))
