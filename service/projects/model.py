"""Projects and deployments as they are stored and worked on."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from service.notices import SharedNotice

Key = tuple[str, str]
"""Type and logical id: what names a resource within its project."""


class DeploymentStatus(StrEnum):
    """How far a deployment is; the last three are final."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Action(StrEnum):
    """What a deployment does to a resource."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    DETACHED = "DETACHED"
    """It is of the project no more, and stays."""


@dataclass(frozen=True, slots=True)
class DeploymentEnded(SharedNotice):
    """Notice: the deployment has reached its final state."""

    deployment_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project as it is stored."""

    id: str
    account_id: str
    logical_id: str
    """Its name in code, unique in its account."""
    name: str
    repo_url: str | None
    created_ms: int
    updated_ms: int | None
    """None: never changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedResource:
    """What a project has, and which thing of the account it is."""

    type: str
    logical_id: str
    physical_id: str
    source_file: str | None
    """None: not known."""
    digest: bytes | None
    """Keyed, of what was sent and what came of it. None: not known."""

    @property
    def key(self) -> Key:
        """What names it within its project."""
        return self.type, self.logical_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A deployment as it is stored."""

    id: str
    account_id: str
    logical_id: str
    """The project's."""
    status: DeploymentStatus
    progress: int
    """Percent."""
    error: Mapping[str, Any] | None
    """Why it failed. None: it did not."""
    result: Mapping[str, Any] | None
    """The project and its diff. None: it has not succeeded."""
    created_ms: int
    started_ms: int | None
    ended_ms: int | None
    """None: it goes on."""
    cancel_ms: int | None
    """When somebody asked to cancel it. None: nobody did."""
    lease_ms: int
    """Until then the process that makes it must have ended it."""
    key_id: str | None
    """The API key that asked for it. None: a user did, or it is not known."""
    user_id: str | None
    """The user who asked for it. None: an API key did, or it is not known."""

    @property
    def is_over(self) -> bool:
        """Whether it has reached its final state."""
        return self.ended_ms is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource in the body of a deployment."""

    order: int
    """Its place in the body."""
    type: str
    logical_id: str
    physical_id: str | None
    """What it is in the account already. None: the project knows, or it is new."""
    is_member: bool
    """False: it is there without the project, and others refer to it."""
    payload: Mapping[str, Any]
    source_file: str | None
    source_line: int | None

    @property
    def key(self) -> Key:
        """What names it within its project."""
        return self.type, self.logical_id

    @property
    def title(self) -> str:
        """What errors call it, with where it came from."""
        if self.source_file is None:
            return f'{self.type} "{self.logical_id}"'
        line = "" if self.source_line is None else f":{self.source_line}"
        return f'{self.type} "{self.logical_id}" ({self.source_file}{line})'


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of a diff."""

    type: str
    logical_id: str
    physical_id: str | None
    """None: it was not made yet."""
    action: Action
    fields: tuple[str, ...] = ()
    """The names of the fields that an UPDATE changes. Empty: it changes nothing."""

    @property
    def is_change(self) -> bool:
        """Whether anything is other than before."""
        return self.action is not Action.UPDATE or bool(self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a deployment is asked for."""

    logical_id: str
    name: str
    repo_url: str | None
    resources: tuple[Resource, ...]
    keeps_resources: bool
    """Whether what is not in the body stays in the account."""
    runs_at_once: bool
    """Whether new and changed checks run right after it."""
    keeps_missing: bool = False
    """Whether what is not in the body stays in the project as it is."""
    removes_project: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceProblem:
    """Why a resource cannot be deployed."""

    resource: Resource
    message: str
    keys: tuple[str, ...] = ()
    """Paths of wrong fields within its payload."""


class ResourceError(Exception):
    """Resources cannot be deployed; nothing of the deployment is."""

    def __init__(self, problems: tuple[ResourceProblem, ...]) -> None:
        self.problems: Final = problems
        super().__init__("\n".join(f"{one.resource.title}: {one.message}" for one in problems))

    @property
    def keys(self) -> tuple[str, ...]:
        """Paths of wrong fields in the body of the deployment."""
        return tuple(
            f"resources[{one.resource.order}].payload{'.' if key else ''}{key}"
            for one in self.problems
            for key in one.keys or ("",)
        )


class CancelledError(Exception):
    """Somebody has cancelled the deployment, or its lease has ended."""
