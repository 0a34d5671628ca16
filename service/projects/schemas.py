"""Projects and deployments in requests and answers."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.http.schema import JsonNumber, RequestModel, ResponseModel, Text
from service.http.times import Moment, format_time
from service.projects.model import (
    Action,
    Change,
    Deployment,
    DeploymentStatus,
    MappedResource,
    Project,
    Resource,
    Wish,
)

MOST_RESOURCES = 5_000
_MOST_FILES = 5_000

LogicalId = Annotated[Text, Field(min_length=1, max_length=255)]


class ProjectWrite(RequestModel):
    """A project in a request."""

    logical_id: LogicalId
    """Its name in code, unique in the account."""
    name: Annotated[Text, Field(min_length=1, max_length=255)]
    repo_url: Annotated[Text, Field(max_length=2048)] | None = None
    """Where its code is. Null: not known."""


class DeployedFile(RequestModel):
    """A file that several checks import, which name it by its place in the list."""

    path: Annotated[Text, Field(min_length=1, max_length=1024)]
    content: Text


class ResourceWrite(RequestModel):
    """A resource in a request."""

    logical_id: LogicalId
    """Its name in code, unique among those of its type."""
    type: Annotated[Text, Field(max_length=100)]
    """Such as `check` or `alert-channel`."""
    physical_id: (
        Annotated[Text, Field(min_length=1, max_length=200)] | Annotated[int, JsonNumber] | None
    ) = None
    """The id of a thing of the account: the project takes it over, or refers to it if `member` is
    false. Null: the project knows it, or it is new."""
    member: bool = True
    """False: others refer to it, and the project does not manage it."""
    payload: dict[str, Any] | None = None
    """The body of its own API. `{"ref": logicalId}` stands for the id of another resource."""
    source_file: Annotated[Text, Field(max_length=1024)] | None = None
    """The file that declares it, for errors."""
    source_line: Annotated[int, Field(ge=1), JsonNumber] | None = None
    """The line in that file, for errors."""


class DeployWrite(RequestModel):
    """A project as it shall be: what it has and is not in `resources` is deleted."""

    project: ProjectWrite
    shared_files: Annotated[list[DeployedFile], Field(max_length=_MOST_FILES)] = Field(
        default_factory=list
    )
    """Files that checks name by their places in this list, in `dependencies`."""
    resources: Annotated[list[ResourceWrite], Field(max_length=MOST_RESOURCES)]
    repo_info: dict[str, Any] | None = None
    """The commit; accepted, and not kept."""


class ChangeShown(ResponseModel):
    """What a deployment does to a resource."""

    type: str
    logical_id: str
    physical_id: str | int | None
    action: Action
    """UPDATE: it is there; `changed` says whether anything changes."""
    changed: bool
    """An addition of ours: whether anything is other than before."""
    fields: list[str]
    """An addition of ours: of an UPDATE, the fields that change."""


class ProjectShown(ResponseModel):
    """A project."""

    id: str
    logical_id: str
    name: str
    repo_url: str | None
    created_at: Moment
    updated_at: Moment | None
    """Null: never changed."""


class ListedProject(ProjectShown):
    """A project with what it has."""

    counts: dict[str, int]
    """How many resources of each type it has."""


class MappedShown(ResponseModel):
    """A resource of a project."""

    type: str
    logical_id: str
    physical_id: str | int
    source_file: str | None
    """Null: not known."""


class WholeProject(ProjectShown):
    """A project with all that it has."""

    resources: list[MappedShown]


class DeployedShown(ResponseModel):
    """What a deployment came to, or would come to."""

    project: ProjectShown | None
    """Null: there is none any more."""
    diff: list[ChangeShown]


class ErrorShown(ResponseModel):
    """Why a deployment failed."""

    code: str
    message: str
    """Names each resource that does not fit, and its file."""
    keys: list[str] = Field(default_factory=list)
    """Paths of wrong fields, as in `resources[3].payload.frequency`."""


class DeploymentShown(ResponseModel):
    """A deployment."""

    id: str
    logical_id: str
    """The project's."""
    status: DeploymentStatus
    dry_run: Literal[False]
    progress: int
    """Percent."""
    error: ErrorShown | None
    result: DeployedShown | None
    created_at: Moment
    started_at: Moment | None
    ended_at: Moment | None
    cancel_requested_at: Moment | None


def _read_resources(body: DeployWrite) -> tuple[Resource, ...]:
    """The resources of a deployment's body."""
    return tuple(
        Resource(
            order=order,
            type=one.type,
            logical_id=one.logical_id,
            physical_id=None if one.physical_id is None else str(one.physical_id),
            is_member=one.member,
            payload=one.payload or {},
            source_file=one.source_file,
            source_line=one.source_line,
        )
        for order, one in enumerate(body.resources)
    )


def build_wish(
    body: DeployWrite, *, keeps: bool, runs_at_once: bool, keeps_missing: bool = False
) -> Wish:
    """What a deployment is asked for."""
    return Wish(
        logical_id=body.project.logical_id,
        name=body.project.name,
        repo_url=body.project.repo_url,
        resources=_read_resources(body),
        keeps_resources=keeps,
        runs_at_once=runs_at_once,
        keeps_missing=keeps_missing,
    )


def render_project(row: Project) -> dict[str, Any]:
    """A project as its answer."""
    created = format_time(row.created_ms)
    return {
        "id": row.id,
        "logicalId": row.logical_id,
        "name": row.name,
        "repoUrl": row.repo_url,
        "createdAt": created,
        "updatedAt": format_time(row.updated_ms),
        "created_at": created,
        "updated_at": format_time(row.updated_ms),
    }


def render_mapped(one: MappedResource, physical_id: str | int) -> dict[str, Any]:
    """A resource of a project as its answer."""
    return {
        "type": one.type,
        "logicalId": one.logical_id,
        "physicalId": physical_id,
        "sourceFile": one.source_file,
    }


def render_change(one: Change, physical_id: str | int | None) -> dict[str, Any]:
    """A line of a diff as its answer."""
    return {
        "type": one.type,
        "logicalId": one.logical_id,
        "physicalId": physical_id,
        "action": one.action.value,
        "changed": one.is_change,
        "fields": list(one.fields),
    }


def render_deployment(row: Deployment, *, progress: int | None = None) -> dict[str, Any]:
    """A deployment as its answer; `progress`: what its process knows better."""
    return {
        "id": row.id,
        "logicalId": row.logical_id,
        "status": row.status.value,
        "dryRun": False,
        "progress": row.progress if progress is None else progress,
        "error": row.error,
        "result": row.result,
        "createdAt": format_time(row.created_ms),
        "startedAt": format_time(row.started_ms),
        "endedAt": format_time(row.ended_ms),
        "cancelRequestedAt": format_time(row.cancel_ms),
    }
