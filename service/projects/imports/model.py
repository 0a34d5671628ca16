"""Plans to take over what an account has into a project."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.projects.model import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Includes or excludes things; of several that match, the last one decides."""

    includes: bool
    type: str | None = None
    """None: things of any type."""
    physical_id: str | None = None
    """None: all of the type."""

    def matches(self, kind: str, physical_id: str) -> bool:
        """Whether it says anything about a thing."""
        return self.type in (None, kind) and self.physical_id in (None, physical_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A thing of the account that no project has."""

    type: str
    physical_id: str
    name: str
    """What people call it; its name in code is made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A thing with its name in code."""

    type: str
    logical_id: str
    physical_id: str

    @property
    def key(self) -> Key:
        """What names it within its project."""
        return self.type, self.logical_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeResource:
    """A thing with all that its code says."""

    planned: Planned
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What can be taken over."""

    resources: tuple[CodeResource, ...]
    friends: tuple[Planned, ...]
    """What the project has already, and code may refer to."""
    snippets: tuple[Mapping[str, Any], ...]
    """Scripts that scripts load, with their ids and names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """A plan as it is stored."""

    id: str
    account_id: str
    project_id: str
    created_ms: int
    applied_ms: int | None
    """When its things became the project's. None: they are not."""
    committed_ms: int | None
    """From then on deployments without them delete them. None: not yet."""
    resources: tuple[Planned, ...]
