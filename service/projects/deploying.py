"""Makes a deployment: everything that it asks for, in the transaction of its caller."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from contract.checks import CheckType
from service.db.ids import new_id
from service.db.savepoints import attempt
from service.http.errors import ApiError, ConflictError, NotFoundError
from service.http.mutations import changed_fields
from service.projects import rules, store
from service.projects.imports import actions as imports
from service.projects.model import (
    Action,
    Change,
    Key,
    MappedResource,
    Project,
    Resource,
    ResourceError,
    ResourceProblem,
    Wish,
)
from service.projects.resources.location_resources import find_slug
from service.projects.resources.registry import TYPES, type_of
from service.projects.resources.resource_type import ResourceType, View, Work, blamed
from service.scheduling import actions as scheduling

MOST_PROJECTS: Final = 1_000
"""In an account."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
"""What fits into the column of any id."""
Tick = Callable[[int], None]
"""Told of the progress in percent; raises to end the deployment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a deployment came to."""

    project: Project | None
    """None: there is none any more."""
    diff: tuple[Change, ...]


class _UnchangedError(Exception):
    """Nothing has changed: the part of the deployment is undone."""


def check_payloads(resources: Sequence[Resource]) -> None:
    """Refuse payloads that do not fit, whatever their references lead to.

    Raises:
        ResourceError: says which, of several at once.
    """
    references = rules.References(resources)
    problems: list[ResourceProblem] = []

    def stand_in(field: str, meant: Resource) -> object:
        return "reference" if field == "privateLocations" else type_of(meant).placeholder

    for one in resources:
        if not one.is_member:
            continue
        try:
            type_of(one).read(references.resolve(one, stand_in))
        except Exception as problem:
            found = blamed(one, problem)
            if found is None:
                raise
            problems += found.problems
    rules.raise_all(problems)


def deploy(work: Work, wish: Wish, tick: Tick) -> Outcome:
    """Make what a deployment asks for.

    Raises:
        ResourceError: a resource cannot be deployed.
        ConflictError: the account has too many projects.
    """
    project = _put_project(work, wish)
    mapped = store.list_resources(work.connection, project.id)
    return _Deploying(work, wish, project, mapped, tick).run()


def _put_project(work: Work, wish: Wish) -> Project:
    connection, scope = work.connection, work.scope
    held = store.find(connection, scope.account_id, wish.logical_id)
    if held is None:
        return add_project(work, wish.logical_id, wish.name, wish.repo_url)
    if wish.removes_project or (held.name, held.repo_url) == (wish.name, wish.repo_url):
        return held
    changed = replace(held, name=wish.name, repo_url=wish.repo_url, updated_ms=scope.now_ms)
    store.change(connection, changed)
    return changed


def add_project(work: Work, logical_id: str, name: str, repo_url: str | None) -> Project:
    """Make a project that has nothing yet.

    Raises:
        ConflictError: the account has too many.
    """
    if store.count(work.connection, work.scope.account_id) >= MOST_PROJECTS:
        raise ConflictError(
            f"The account has {MOST_PROJECTS} projects, and may have no more; delete one first."
        )
    made = Project(
        id=new_id(work.scope.now_ms),
        account_id=work.scope.account_id,
        logical_id=logical_id,
        name=name,
        repo_url=repo_url,
        created_ms=work.scope.now_ms,
        updated_ms=None,
    )
    store.add(work.connection, made)
    return made


class _Deploying:
    """One deployment in its transaction."""

    def __init__(
        self,
        work: Work,
        wish: Wish,
        project: Project,
        mapped: Mapping[Key, MappedResource],
        tick: Tick,
    ) -> None:
        self._work = work
        self._wish = wish
        self._project = project
        self._mapped = mapped
        self._tick = tick
        self._references = rules.References(wish.resources)
        self._lent = {(one.type, one.physical_id) for one in wish.resources if not one.is_member}
        """Types and ids of what the body uses and leaves to others: it must stay."""
        self._ids: dict[Key, str] = {}
        """What references lead to."""
        self._rows: list[MappedResource] = []
        """What is new or other than before in the project."""
        self._changes: dict[Key, Change] = {}

    def run(self) -> Outcome:
        """Make all of it."""
        self._find_others()
        wanted = {one.key for one in self._wish.resources if one.is_member}
        # Whoever deploys may not have the code of what was taken over yet.
        kept = wanted | imports.list_pending(self._work.connection, self._project)
        gone = [one for key, one in self._mapped.items() if key not in kept]
        if self._wish.keeps_missing:
            gone = [one for one in gone if self._goes_with_its_owner(one, wanted)]
        self._remove(gone, rules.REMOVED_FIRST)
        members = [one for one in rules.in_order(self._wish.resources) if one.is_member]
        for number, one in enumerate(members):
            self._tick(100 * number // len(members))
            self._put(one)
        self._remove(gone, rules.REMOVED_LAST)
        connection, project_id = self._work.connection, self._project.id
        store.remove_resources(connection, project_id, [one.key for one in gone])
        store.put_resources(connection, project_id, self._rows)
        self._schedule()
        if self._wish.removes_project:
            store.remove(connection, project_id)
        in_body = [one.key for one in self._wish.resources if one.key in self._changes]
        removed = [one.key for one in gone]
        diff = tuple(self._changes[key] for key in dict.fromkeys((*in_body, *removed)))
        return Outcome(project=None if self._wish.removes_project else self._project, diff=diff)

    def _goes_with_its_owner(self, one: MappedResource, wanted: Collection[Key]) -> bool:
        """Whether it is part of a check or a group of the body, which decides what it has."""
        if one.type in (rules.CHECK_ASSIGNMENT, rules.GROUP_ASSIGNMENT):
            return True  # only a name: the field of its owner says where that runs
        if one.type != rules.SUBSCRIPTION:
            return False
        view = TYPES[one.type].view(self._work, one.physical_id) or {}
        ends = ((rules.CHECK, view.get("checkId")), (rules.GROUP, view.get("groupId")))
        owners = {(kind, str(owner)) for kind, owner in ends if owner is not None}
        in_body = {(it.type, it.physical_id) for key, it in self._mapped.items() if key in wanted}
        return not owners or bool(owners & in_body)

    def _find_others(self) -> None:
        """Look up what resources refer to that is there without the project."""
        for one in self._wish.resources:
            if not one.is_member and one.physical_id is not None:
                if self._view(one, type_of(one), one.physical_id) is None:
                    raise _problem(one, f"there is no {one.type} {one.physical_id}.")
                self._ids[one.key] = one.physical_id

    def _view(self, resource: Resource, kind: ResourceType, physical_id: str) -> View | None:
        if kind.is_number and _NUMBER.fullmatch(physical_id) is None:
            raise _problem(
                resource, f"its physicalId {physical_id} is no number of a {resource.type}."
            )
        return kind.view(self._work, physical_id)

    def _remove(self, gone: Iterable[MappedResource], types: Sequence[str]) -> None:
        for kind in types:
            for one in gone:
                if one.type == kind:
                    self._remove_one(one)

    def _remove_one(self, one: MappedResource) -> None:
        stays = self._wish.keeps_resources or (one.type, one.physical_id) in self._lent
        action = Action.DETACHED if stays else Action.DELETE
        if action is Action.DELETE:
            try:
                TYPES[one.type].delete(self._work, one.physical_id)
            except NotFoundError:
                pass  # somebody has deleted it by hand
            except ApiError as problem:
                raise _problem(_as_resource(one), problem.message) from problem
        self._changes[one.key] = Change(
            type=one.type, logical_id=one.logical_id, physical_id=one.physical_id, action=action
        )

    def _put(self, resource: Resource) -> None:
        try:
            self._put_one(resource, type_of(resource))
        except Exception as problem:
            found = blamed(resource, problem)
            if found is None or found is problem:
                raise
            raise found from problem

    def _put_one(self, resource: Resource, kind: ResourceType) -> None:
        payload = self._references.resolve(resource, self._refer)
        held = self._find_held(resource)
        view = self._view(resource, kind, held.physical_id) if held else None
        if held is None or view is None:
            physical_id = kind.create(self._work, kind.read(payload))
            self._note(resource, kind, payload, physical_id, Action.CREATE)
            return
        if held.digest is not None and held.digest == self._digest(payload, view):
            self._keep(resource, held)
            return
        physical_id, fields = self._replace(kind, held.physical_id, kind.read(payload), view)
        self._note(resource, kind, payload, physical_id, Action.UPDATE, fields=fields)

    def _find_held(self, resource: Resource) -> MappedResource | None:
        """What the project has under this name, or takes over. None: it is new."""
        held = self._mapped.get(resource.key)
        if held is not None or resource.physical_id is None:
            return held
        if self._view(resource, type_of(resource), resource.physical_id) is None:
            raise _problem(resource, f"there is no {resource.type} {resource.physical_id}.")
        other = store.find_project_of(
            self._work.connection,
            self._work.scope.account_id,
            resource.type,
            resource.physical_id,
        )
        if other is not None:
            raise _problem(
                resource,
                f"{resource.physical_id} belongs to the project {other.logical_id}; leave it out"
                " here, or deploy that project without it and with preserveResources=true first.",
            )
        return MappedResource(
            type=resource.type,
            logical_id=resource.logical_id,
            physical_id=resource.physical_id,
            source_file=None,
            digest=None,
        )

    def _replace(
        self, kind: ResourceType, physical_id: str, body: Any, before: View
    ) -> tuple[str, tuple[str, ...]]:
        """Set a thing up anew, unless that changes nothing; its id, and what has changed."""
        done: list[tuple[str, tuple[str, ...]]] = []

        def part() -> None:
            made = kind.replace(self._work, physical_id, body)
            fields = changed_fields(before, kind.view(self._work, made) or {})
            if not fields:
                raise _UnchangedError
            done.append((made, fields))

        problem = attempt(self._work.connection, part)
        if isinstance(problem, _UnchangedError):
            return physical_id, ()
        if problem is not None:
            raise problem
        return done[0]

    def _refer(self, field: str, meant: Resource) -> object:
        physical_id = self._ids.get(meant.key)
        if physical_id is None:
            held = self._mapped.get(meant.key)
            if held is None:
                raise _problem(meant, f'the field "{field}" cannot refer to a {meant.type}.')
            physical_id = held.physical_id
        if field == "privateLocations":
            return find_slug(self._work, physical_id)
        return type_of(meant).read_id(physical_id)

    def _note(  # noqa: PLR0913 - what is known of what was made
        self,
        resource: Resource,
        kind: ResourceType,
        payload: Mapping[str, Any],
        physical_id: str,
        action: Action,
        *,
        fields: tuple[str, ...] = (),
    ) -> None:
        view = kind.view(self._work, physical_id) or {}
        self._ids[resource.key] = physical_id
        row = MappedResource(
            type=resource.type,
            logical_id=resource.logical_id,
            physical_id=physical_id,
            source_file=resource.source_file,
            digest=self._digest(payload, view),
        )
        self._rows.append(row)
        self._changes[resource.key] = Change(
            type=resource.type,
            logical_id=resource.logical_id,
            physical_id=physical_id,
            action=action,
            fields=fields,
        )

    def _keep(self, resource: Resource, held: MappedResource) -> None:
        self._ids[resource.key] = held.physical_id
        if held.source_file != resource.source_file:
            self._rows.append(replace(held, source_file=resource.source_file))
        self._changes[resource.key] = Change(
            type=resource.type,
            logical_id=resource.logical_id,
            physical_id=held.physical_id,
            action=Action.UPDATE,
        )

    def _digest(self, payload: Mapping[str, Any], view: View) -> bytes:
        """Keyed, because both hold secrets."""
        whole = json.dumps([payload, view], sort_keys=True, default=str).encode()
        return self._work.pepper.keyed(hashlib.sha256(whole).digest())

    def _schedule(self) -> None:
        """Run new and changed checks at once, or let new ones wait for their turn."""
        now_ms = self._work.scope.now_ms
        for one in self._wish.resources:
            change = self._changes.get(one.key)
            if one.type != rules.CHECK or change is None or change.physical_id is None:
                continue
            if one.payload.get("checkType") == CheckType.HEARTBEAT or not change.is_change:
                continue
            plan = partial(scheduling.run_now, self._work.connection, change.physical_id)
            if not self._wish.runs_at_once:
                if change.action is not Action.CREATE:
                    continue
                plan = partial(scheduling.wait_for_phase, self._work.connection, change.physical_id)
            plan(now_ms=now_ms)


def _problem(resource: Resource, message: str) -> ResourceError:
    return ResourceError((ResourceProblem(resource=resource, message=message),))


def _as_resource(one: MappedResource) -> Resource:
    return Resource(
        order=0,
        type=one.type,
        logical_id=one.logical_id,
        physical_id=one.physical_id,
        is_member=True,
        payload={},
        source_file=one.source_file,
        source_line=None,
    )
