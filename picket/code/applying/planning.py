"""Finds out what a deployment changes, with the values of fields before and after."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from picket.code.applying.deployments import Action, Deployments, Entry
from picket.code.applying.differences import FieldChange, find_changes, show_reset
from picket.code.applying.plan_text import Plan
from picket.code.applying.stored import Stored
from picket.code.reading.documents import Kind
from picket.code.reading.env_values import EnvValues
from picket.code.reading.linking import Linked, Resource

_PLACES: Final = "privateLocations"
_ASSIGNMENTS: Final = ("private-location-check-assignment", "private-location-group-assignment")
"""Parts of checks and groups, which show them as a field."""
_SUBSCRIPTION: Final = "alert-channel-subscription"
_REFERRED_TO: Final = (Kind.GROUP.resource_type, Kind.STATUS_PAGE_SERVICE.resource_type)
"""Types that fields of others name."""


class Planner:
    """Asks a service what a deployment of these resources changes."""

    def __init__(
        self, deployments: Deployments, stored: Stored, linked: Linked, values: EnvValues
    ) -> None:
        """`values`: what was filled in, and is not shown: neither is what it takes the place of."""
        self._values = values
        self._deployments = deployments
        self._stored = stored
        self._linked = linked
        self._resources = {one.key: one for one in linked.resources}

    async def plan(self, *, prunes: bool) -> Plan:
        """What changes; with what stays though it is not in the files, unless it is pruned.

        Raises:
            ApiRefusedError: the service refuses the deployment.
        """
        members = await self._deployments.members()
        found = [one for one in await self._deployments.plan() if one.type not in _ASSIGNMENTS]
        entries = [one for one in found if not await self._is_there(one, members)]
        names = self._names([*members, *found])
        return Plan(
            entries=tuple(entries),
            joining=len(self._find_joining(members, entries)),
            kept=() if prunes else tuple(self._find_kept(members)),
            resources=self._resources,
            changes={one.key: await self._changes(one, names) for one in entries},
        )

    def _find_joining(self, members: Iterable[Entry], entries: Iterable[Entry]) -> list[Resource]:
        known = {one.key for one in (*members, *entries)}
        return [one for key, one in self._resources.items() if one.document and key not in known]

    def _find_kept(self, members: Iterable[Entry]) -> list[Entry]:
        return [
            one
            for one in members
            if one.key not in self._resources and one.type not in (*_ASSIGNMENTS, _SUBSCRIPTION)
        ]

    def _names(self, entries: Sequence[Entry]) -> dict[str, str]:
        """Logical ids of what fields refer to, by physical id."""
        own = [(one.type, one.physical_id, one.logical_id) for one in self._linked.resources]
        theirs = [(one.type, one.physical_id, one.logical_id) for one in entries]
        return {
            physical_id: logical_id
            for kind, physical_id, logical_id in (*theirs, *own)
            if physical_id is not None and kind in _REFERRED_TO
        }

    async def _is_there(self, entry: Entry, members: Sequence[Entry]) -> bool:
        """Whether it is a subscription that exists, and only becomes one of the project."""
        resource = self._resources.get(entry.key)
        if entry.type != _SUBSCRIPTION or entry.action is not Action.CREATE or resource is None:
            return False
        payload: Mapping[str, Any] = resource.payload or {}
        target = Kind.CHECK if "checkId" in payload else Kind.GROUP
        ends = payload.get("checkId") or payload.get("groupId") or {}
        owner = self._find_id(target.resource_type, ends.get("ref"), members)
        channel_type = Kind.ALERT_CHANNEL.resource_type
        channel = self._find_id(channel_type, payload["alertChannelId"]["ref"], members)
        found = await self._stored.read(target.resource_type, owner)
        return found is not None and any(
            str(one["alertChannelId"]) == channel and one["activated"]
            for one in found.get("alertChannelSubscriptions") or ()
        )

    def _find_id(self, kind: str, logical_id: object, members: Iterable[Entry]) -> str | None:
        for one in members:
            if one.key == (kind, logical_id):
                return one.physical_id
        resource = self._resources.get((kind, str(logical_id)))
        return resource.physical_id if resource is not None else None

    async def _changes(self, entry: Entry, names: Mapping[str, str]) -> list[FieldChange]:
        """The fields that change by the service's word, with values as far as they are known."""
        resource = self._resources.get(entry.key)
        if entry.action is not Action.UPDATE or resource is None or resource.payload is None:
            return []
        stored = await self._stored.read(entry.type, entry.physical_id) or {}
        found = find_changes(self._wanted(resource), stored, names)
        named = [
            one.without_values() if self._values.is_part_of(one.new) else one
            for one in found
            if _top(one.path) in entry.fields
        ]
        rest = [one for one in entry.fields if one not in {_top(change.path) for change in named}]
        return [*named, *(show_reset(name, stored.get(name)) for name in rest)]

    def _wanted(self, resource: Resource) -> dict[str, Any]:
        """The payload with files in the place of their numbers, and with its places."""
        wanted = dict(resource.payload or {})
        if numbers := wanted.get("dependencies"):
            wanted["dependencies"] = [self._linked.shared_files[number] for number in numbers]
        document = resource.document
        if document is not None and document.kind in (Kind.CHECK, Kind.GROUP):
            wanted[_PLACES] = list(document.fields.get(_PLACES) or ())  # type: ignore[call-overload]
        return wanted


def _top(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]
