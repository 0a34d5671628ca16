"""SQL of import plans."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from service.db.tables.projects import import_plan
from service.projects.imports.model import ImportPlan, Planned


def add(connection: Connection, plan: ImportPlan) -> None:
    """Store a new plan."""
    values = {column.name: getattr(plan, column.name) for column in import_plan.c}
    values["resources"] = [[one.type, one.logical_id, one.physical_id] for one in plan.resources]
    connection.execute(insert(import_plan).values(**values))


def find(connection: Connection, account_id: str, plan_id: str) -> ImportPlan | None:
    """A plan of the account. None: it has none with this id."""
    query = select(import_plan).where(
        import_plan.c.id == plan_id, import_plan.c.account_id == account_id
    )
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _read(row)


def list_all(
    connection: Connection, account_id: str, *, project_id: str | None = None
) -> tuple[ImportPlan, ...]:
    """The plans of a project, or of all projects of the account; the oldest first."""
    query = select(import_plan).where(import_plan.c.account_id == account_id)
    if project_id is not None:
        query = query.where(import_plan.c.project_id == project_id)
    rows = connection.execute(query.order_by(import_plan.c.id)).mappings()
    return tuple(map(_read, rows))


def change(connection: Connection, plan_id: str, values: Mapping[str, Any]) -> None:
    """Change columns of a plan."""
    connection.execute(update(import_plan).where(import_plan.c.id == plan_id).values(**values))


def remove(connection: Connection, plan_id: str) -> None:
    """Forget a plan."""
    connection.execute(delete(import_plan).where(import_plan.c.id == plan_id))


def _read(row: Mapping[Any, Any]) -> ImportPlan:
    resources = tuple(
        Planned(type=kind, logical_id=logical_id, physical_id=physical_id)
        for kind, logical_id, physical_id in row["resources"]
    )
    return ImportPlan(**{**row, "resources": resources})
