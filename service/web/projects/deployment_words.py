"""What pages say of a deployment and of what a project has."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from service.audit.model import Kind
from service.projects import rules
from service.projects.actions import GONE
from service.projects.model import Action, Deployment, DeploymentStatus
from service.web.settings.audit_people import key_of_person
from service.web.states import State

_MOST_CHANGES: Final = 100
_STATES: Final[Mapping[DeploymentStatus, tuple[State, str]]] = {
    DeploymentStatus.PENDING: (State.RUNNING, "waits for its turn"),
    DeploymentStatus.RUNNING: (State.RUNNING, "running"),
    DeploymentStatus.SUCCEEDED: (State.PASSING, "succeeded"),
    DeploymentStatus.FAILED: (State.FAILING, "failed"),
    DeploymentStatus.CANCELLED: (State.PAUSED, "cancelled"),
}
_DONE: Final[Mapping[Action, str]] = {
    Action.CREATE: "created",
    Action.UPDATE: "updated",
    Action.DELETE: "deleted",
    Action.DETACHED: "kept outside of the project",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind:
    """A type of resources, as pages name it."""

    one: str
    many: str
    kind: Kind | None = None
    """What has a page of its own. None: it is part of others."""

    @property
    def title(self) -> str:
        """A heading."""
        return self.many[0].upper() + self.many[1:]


KINDS: Final[Mapping[str, ResourceKind]] = {
    rules.CHECK: ResourceKind(one="check", many="checks", kind=Kind.CHECK),
    rules.GROUP: ResourceKind(one="group", many="groups", kind=Kind.GROUP),
    rules.LOCATION: ResourceKind(one="location", many="locations", kind=Kind.LOCATION),
    rules.CHANNEL: ResourceKind(one="alert channel", many="alert channels", kind=Kind.CHANNEL),
    rules.WINDOW: ResourceKind(
        one="maintenance window", many="maintenance windows", kind=Kind.WINDOW
    ),
    rules.PAGE: ResourceKind(one="status page", many="status pages", kind=Kind.STATUS_PAGE),
    rules.SERVICE: ResourceKind(one="service", many="services", kind=Kind.SERVICE),
    rules.COMPONENT: ResourceKind(
        one="component of a status page", many="components of status pages", kind=Kind.SERVICE
    ),
    rules.RULE: ResourceKind(one="automation rule", many="automation rules"),
    rules.SUBSCRIPTION: ResourceKind(
        one="subscription of a channel", many="subscriptions of channels"
    ),
    rules.CHECK_ASSIGNMENT: ResourceKind(one="location of a check", many="locations of checks"),
    rules.GROUP_ASSIGNMENT: ResourceKind(one="location of a group", many="locations of groups"),
}
"""In the order in which pages list them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentShown:
    """A deployment, as a page shows it."""

    at_ms: int
    state: State
    word: str
    is_over: bool
    who: str
    """Empty: it is not known."""
    took_ms: int | None
    """None: it goes on, or never began."""
    sentences: Sequence[str]
    """Why it failed; one for each resource that does not fit."""
    counts: Sequence[str]
    """What it did, as in `2 created`."""
    unchanged: int
    changes: Sequence[tuple[str, str, str]]
    """The first ones: what was done, the type, and the logical id."""
    more_changes: int


def path_of(logical_id: str) -> str:
    """The page of a project."""
    return f"/projects/{quote(logical_id, safe='')}"


def show_deployment(one: Deployment, names: Mapping[str, str], *, now_ms: int) -> DeploymentShown:
    """A deployment in words; one whose process is gone has failed.

    `names`: of who may have asked for it, by `key_of_person`.
    """
    is_gone = not one.is_over and now_ms >= one.lease_ms
    state, word = _STATES[DeploymentStatus.FAILED if is_gone else one.status]
    diff: Sequence[Mapping[str, Any]] = (one.result or {}).get("diff", ())
    changed = [line for line in diff if line["changed"]]
    done = Counter(Action(line["action"]) for line in changed)
    return DeploymentShown(
        at_ms=one.created_ms,
        state=state,
        word=word,
        is_over=one.is_over or is_gone,
        who=names.get(key_of_person(one.key_id, one.user_id), ""),
        took_ms=None if one.ended_ms is None else one.ended_ms - one.created_ms,
        sentences=_explain(GONE if is_gone else one.error),
        counts=[f"{done[action]:,} {word}" for action, word in _DONE.items() if done[action]],
        unchanged=len(diff) - len(changed),
        changes=[
            (_DONE[Action(line["action"])], _name_type(line["type"]), line["logicalId"])
            for line in changed[:_MOST_CHANGES]
        ],
        more_changes=max(0, len(changed) - _MOST_CHANGES),
    )


def _explain(error: Mapping[str, Any] | None) -> Sequence[str]:
    return str(error["message"]).splitlines() if error else ()


def _name_type(kind: str) -> str:
    return KINDS[kind].one if kind in KINDS else kind
