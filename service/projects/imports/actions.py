"""What happens to import plans; each is part of the caller's transaction.

A plan names things in code. Once it is applied, its things are the project's, and deployments
change them. A deployment without them does not delete them before the plan is committed.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from service.db.ids import new_id
from service.http.errors import ConflictError, ForbiddenError, NotFoundError
from service.projects import store as project_store
from service.projects.imports import inventory, store
from service.projects.imports.model import Filter, Found, ImportPlan, Planned
from service.projects.imports.rules import choose, name_all
from service.projects.model import Key, MappedResource, Project
from service.projects.resources.resource_type import Work

MOST_RESOURCES: Final = 1_000
"""In a plan, without what joins them."""
MOST_PLANS: Final = 100
"""How many plans of an account may wait to be committed."""


def find_importable(
    work: Work, project: Project, filters: Sequence[Filter], friends: Sequence[Key]
) -> Found:
    """What the project can take over.

    Raises:
        NotFoundError: nothing.
        ConflictError: too much at once.
    """
    connection, account_id = work.connection, work.scope.account_id
    taken = project_store.list_taken(connection, account_id) | _reserved(connection, account_id)
    candidates = [
        one
        for one in inventory.list_candidates(connection, account_id)
        if (one.type, one.physical_id) not in taken
    ]
    chosen = choose(candidates, filters)
    if len(chosen) > MOST_RESOURCES:
        raise ConflictError(
            f"{len(chosen)} resources can be imported, and a plan has {MOST_RESOURCES} at most;"
            " name types or ids."
        )
    mapped = project_store.list_resources(connection, project.id)
    names = {logical_id for _, logical_id in mapped}
    views = inventory.view_all(work, name_all(chosen, names))
    if not views:
        raise NotFoundError("No importable resources were found.")
    own = [
        Planned(type=one.type, logical_id=one.logical_id, physical_id=one.physical_id)
        for one in mapped.values()
    ]
    links = inventory.build_links(connection, account_id, views, [*own, *views])
    return Found(
        resources=(*inventory.build_code(views), *links),
        friends=tuple(one for one in own if one.key in set(friends)),
        snippets=inventory.find_snippets(connection, account_id, [*views.values()]),
    )


def _reserved(connection: Connection, account_id: str) -> frozenset[tuple[str, str]]:
    """Things of plans that are not applied yet."""
    return frozenset(
        (one.type, one.physical_id)
        for plan in store.list_all(connection, account_id)
        if plan.applied_ms is None
        for one in plan.resources
    )


def add(connection: Connection, project: Project, found: Found, *, now_ms: int) -> ImportPlan:
    """Store what is to be taken over as a plan.

    Raises:
        ConflictError: the account has too many plans.
    """
    open_plans = list_plans(connection, project.account_id, only_uncommitted=True)
    if len(open_plans) >= MOST_PLANS:
        raise ConflictError(f"The account has {MOST_PLANS} open plans; commit or cancel one first.")
    plan = ImportPlan(
        id=new_id(now_ms),
        account_id=project.account_id,
        project_id=project.id,
        created_ms=now_ms,
        applied_ms=None,
        committed_ms=None,
        resources=tuple(one.planned for one in found.resources),
    )
    store.add(connection, plan)
    return plan


def find(connection: Connection, account_id: str, plan_id: str) -> ImportPlan:
    """A plan of the account.

    Raises:
        NotFoundError: it has none with this id.
    """
    plan = store.find(connection, account_id, plan_id)
    if plan is None:
        raise NotFoundError(f"There is no import plan {plan_id}.")
    return plan


def list_plans(
    connection: Connection,
    account_id: str,
    *,
    project_id: str | None = None,
    only_unapplied: bool = False,
    only_uncommitted: bool = False,
) -> tuple[ImportPlan, ...]:
    """The plans of an account, or of one of its projects."""
    return tuple(
        plan
        for plan in store.list_all(connection, account_id, project_id=project_id)
        if not (only_unapplied and plan.applied_ms is not None)
        and not (only_uncommitted and plan.committed_ms is not None)
    )


def apply(connection: Connection, plan: ImportPlan, *, now_ms: int) -> ImportPlan:
    """Make the things of a plan the project's.

    Raises:
        ForbiddenError: they are already.
        ConflictError: some are of a project by now, or their names are taken.
    """
    if plan.applied_ms is not None:
        raise ForbiddenError("The plan is applied already.")
    taken = project_store.list_taken(connection, plan.account_id)
    names = project_store.list_resources(connection, plan.project_id)
    late = [one for one in plan.resources if (one.type, one.physical_id) in taken]
    late += [one for one in plan.resources if one.key in names]
    if late:
        raise ConflictError(
            f'{late[0].type} "{late[0].logical_id}" is of a project by now; cancel the plan and'
            " make another."
        )
    rows = [
        MappedResource(
            type=one.type,
            logical_id=one.logical_id,
            physical_id=one.physical_id,
            source_file=None,
            digest=None,
        )
        for one in plan.resources
    ]
    project_store.put_resources(connection, plan.project_id, rows)
    store.change(connection, plan.id, {"applied_ms": now_ms})
    return replace(plan, applied_ms=now_ms)


def commit(connection: Connection, plan: ImportPlan, *, now_ms: int) -> ImportPlan:
    """Let deployments delete what is not in them any more.

    Raises:
        ForbiddenError: the plan is not applied, or is committed already.
    """
    if plan.applied_ms is None:
        raise ForbiddenError("The plan is not applied yet; apply it first.")
    if plan.committed_ms is not None:
        raise ForbiddenError("The plan is committed already.")
    store.change(connection, plan.id, {"committed_ms": now_ms})
    return replace(plan, committed_ms=now_ms)


def cancel(connection: Connection, plan: ImportPlan) -> None:
    """Forget a plan; its things stay as they are, outside of the project.

    Raises:
        ForbiddenError: it is committed.
    """
    if plan.committed_ms is not None:
        raise ForbiddenError("The plan is committed, and cannot be cancelled any more.")
    if plan.applied_ms is not None:
        keys = [one.key for one in plan.resources]
        project_store.remove_resources(connection, plan.project_id, keys)
    store.remove(connection, plan.id)


def list_pending(connection: Connection, project: Project) -> frozenset[Key]:
    """What a project has taken over, and no deployment deletes yet."""
    return frozenset(
        one.key
        for plan in store.list_all(connection, project.account_id, project_id=project.id)
        if plan.applied_ms is not None and plan.committed_ms is None
        for one in plan.resources
    )
