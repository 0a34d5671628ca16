"""What requests and answers about import plans look like."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from service.http.schema import JsonNumber, RequestModel, ResponseModel, Text
from service.http.times import Moment, format_time
from service.projects.imports.model import CodeResource, Filter, Found, ImportPlan, Planned
from service.projects.model import Key
from service.projects.resources.registry import TYPES

_Type = Annotated[Text, Field(min_length=1, max_length=100)]


class FilteredWrite(RequestModel):
    """Which things a filter matches."""

    type: _Type
    physical_id: (
        Annotated[Text, Field(min_length=1, max_length=200)] | Annotated[int, JsonNumber] | None
    ) = None
    """Null: all of the type."""


class FilterWrite(RequestModel):
    """A filter in a request; of several that match, the last one decides."""

    type: Literal["include", "exclude"]
    resource: FilteredWrite | None = None
    """Null: everything."""

    def build(self) -> Filter:
        """The filter as it is used."""
        wanted = self.resource
        named = None if wanted is None or wanted.physical_id is None else str(wanted.physical_id)
        return Filter(
            includes=self.type == "include",
            type=None if wanted is None else wanted.type,
            physical_id=named,
        )


class FriendWrite(RequestModel):
    """A resource of the project that its code exports."""

    type: _Type
    logical_id: Annotated[Text, Field(min_length=1, max_length=255)]


class ImportPlanWrite(RequestModel):
    """What a plan is to take over."""

    filters: Annotated[list[FilterWrite], Field(max_length=1_000)] | None = None
    """Null: everything that can be taken over."""
    friends: Annotated[list[FriendWrite], Field(max_length=10_000)] | None = None
    """What new code may refer to. Null: nothing."""

    def build_filters(self) -> list[Filter]:
        """The filters as they are used."""
        return [one.build() for one in self.filters or ()]

    def list_friends(self) -> list[Key]:
        """Types and logical ids of what new code may refer to."""
        return [(one.type, one.logical_id) for one in self.friends or ()]


class ImportedResource(ResponseModel):
    """A thing of the account and what code calls it."""

    type: str
    logical_id: str
    physical_id: str | int
    """Its id in the account."""
    member: bool
    payload: dict[str, Any] | None
    """What its code says. Null in lists of plans."""


class ImportedChanges(ResponseModel):
    """What a plan takes over."""

    resources: list[ImportedResource]
    friends: list[ImportedResource]
    """What the project has already."""
    auxiliary: list[dict[str, Any]]
    """Snippets that scripts load."""


class ImportPlanShown(ResponseModel):
    """A plan."""

    id: str | None
    """Null: it was not stored."""
    created_at: Moment | None
    applied_at: Moment | None
    """Null: its things are not the project's yet."""
    committed_at: Moment | None
    """Null: no deployment deletes them."""
    changes: ImportedChanges


def render_plan(plan: ImportPlan, found: Found | None = None) -> dict[str, Any]:
    """A plan as its answer, with what code says if that is at hand."""
    return {
        "id": plan.id,
        "createdAt": format_time(plan.created_ms),
        "appliedAt": format_time(plan.applied_ms),
        "committedAt": format_time(plan.committed_ms),
        "changes": render_found(found) if found else _render_planned(plan.resources),
    }


def render_preview(found: Found) -> dict[str, Any]:
    """What a plan would take over."""
    times = dict.fromkeys(("createdAt", "appliedAt", "committedAt"))
    return {"id": None, **times, "changes": render_found(found)}


def render_found(found: Found) -> dict[str, Any]:
    """What can be taken over, as an answer has it."""
    return {
        "resources": [_render(one) for one in found.resources],
        "friends": [_render_one(one, None) for one in found.friends],
        "auxiliary": [
            {"type": "snippet", "physicalId": one["id"], "payload": one} for one in found.snippets
        ],
    }


def _render_planned(planned: Iterable[Planned]) -> dict[str, Any]:
    resources = [_render_one(one, None) for one in planned]
    return {"resources": resources, "friends": [], "auxiliary": []}


def _render(one: CodeResource) -> dict[str, Any]:
    return _render_one(one.planned, one.payload)


def _render_one(one: Planned, payload: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "type": one.type,
        "logicalId": one.logical_id,
        "physicalId": TYPES[one.type].read_id(one.physical_id),
        "member": True,
        "payload": payload,
    }
