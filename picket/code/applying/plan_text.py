"""Says what a deployment changes, in lines that people read in a terminal or a merge request."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from picket.code.applying.deployments import Action, Entry
from picket.code.applying.differences import FieldChange
from picket.code.reading.linking import Resource

_SIGNS: Final = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.DELETE: "-",
    Action.DETACHED: "-",
}
_ORDER: Final = (Action.CREATE, Action.UPDATE, Action.DETACHED, Action.DELETE)
_JOINS: Final = {
    "alert-channel-subscription": "subscription",
    "private-location-check-assignment": "place of a check",
    "private-location-group-assignment": "place of a group",
}
_MOST_KEPT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a deployment changes."""

    entries: tuple[Entry, ...]
    kept: tuple[Entry, ...] = ()
    """What is in the project and not in the files, and stays."""
    joining: int = 0
    """How many things that exist, and do not change, become part of the project."""
    resources: Mapping[tuple[str, str], Resource]
    changes: Mapping[tuple[str, str], Sequence[FieldChange]]
    """By resource, for those that are updated."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.entries

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to deploy either."""
        return self.is_empty and not self.joining


def plan_lines(plan: Plan) -> Iterator[str]:
    """A line for each resource and each field that changes, and their numbers."""
    for entry in _sort(plan.entries):
        yield _describe(entry, plan)
        if entry.action is Action.UPDATE:
            for change in plan.changes.get(entry.key, ()):
                yield from _change_lines(change)
    yield from _kept_lines(plan.kept)
    if plan.joining:
        yield f"  {plan.joining} that exist become part of the project as they are"
    yield _count(plan)


def _sort(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda one: (_ORDER.index(one.action), one.type, one.logical_id))


def _describe(entry: Entry, plan: Plan) -> str:
    sign, what = _SIGNS[entry.action], _JOINS.get(entry.type, entry.type)
    resource = plan.resources.get(entry.key)
    document = resource.document if resource is not None else None
    line = f"{sign} {what} {entry.logical_id}"
    if document is not None:
        line = f"{sign} {what} {document.name} ({document.source})"
    return line + (", leaves the project" if entry.action is Action.DETACHED else "")


def _change_lines(change: FieldChange) -> Iterator[str]:
    if len(change.lines) == 1:
        yield f"    {change.path}: {change.lines[0]}"
        return
    yield f"    {change.path}:"
    for line in change.lines:
        yield f"      {line}"


def _kept_lines(kept: Sequence[Entry]) -> Iterator[str]:
    own = [one for one in _sort(kept) if one.type not in _JOINS]
    for entry in own[:_MOST_KEPT]:
        yield f"  {entry.type} {entry.logical_id} is not in the files; kept (--prune deletes it)"
    if (more := len(own) - _MOST_KEPT) > 0:
        yield f"  {more} more are not in the files; kept"


def _count(plan: Plan) -> str:
    if plan.is_empty:
        return "Nothing to change."
    numbers = dict.fromkeys(_ORDER, 0)
    for entry in plan.entries:
        numbers[entry.action] += 1
    gone = numbers[Action.DELETE] + numbers[Action.DETACHED]
    return (
        f"{numbers[Action.CREATE]} to create, {numbers[Action.UPDATE]} to change, {gone} to delete."
    )
