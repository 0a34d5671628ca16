"""SQL of groups and their tags."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    delete,
    exists,
    insert,
    select,
    update,
)

from service.db.tables.checks import check_group, check_group_tag
from service.groups.model import Form, GroupFilter, GroupRow

_COLUMNS: Final = (
    check_group.c.id,
    check_group.c.account_id,
    check_group.c.name,
    check_group.c.form,
    check_group.c.doc,
    check_group.c.created_ms,
    check_group.c.updated_ms,
    check_group.c.secrets,
)
_ALL: Final[Select[Any]] = (
    select(*_COLUMNS)
    .where(check_group.c.account_id == bindparam("account"))
    .order_by(check_group.c.id)
)
_ONE: Final = _ALL.where(check_group.c.id == bindparam("wanted"))
SECRETS: Final = check_group.c.secrets
_REMOVE_TAGS: Final = delete(check_group_tag).where(check_group_tag.c.group_id == bindparam("gone"))
_REMOVE: Final = delete(check_group).where(check_group.c.id == bindparam("gone"))


def find(connection: Connection, account_id: str, group_id: int) -> GroupRow | None:
    """One group. None: the account has none with this id."""
    row = connection.execute(_ONE, {"account": account_id, "wanted": group_id}).first()
    return None if row is None else read(row)


def list_all(connection: Connection, account_id: str) -> tuple[GroupRow, ...]:
    """All groups of an account, oldest first."""
    return tuple(map(read, connection.execute(_ALL, {"account": account_id})))


def list_page(
    connection: Connection, account_id: str, wanted: GroupFilter, *, limit: int, offset: int
) -> tuple[GroupRow, ...]:
    """A page of the groups that match, oldest first."""
    query = _ALL.where(*_build_conditions(wanted)).limit(limit).offset(offset)
    return tuple(map(read, connection.execute(query, {"account": account_id})))


def add(connection: Connection, values: Mapping[str, Any]) -> int:
    """Store a new group; the mapping holds every column but the id, which comes back."""
    made = connection.execute(insert(check_group).values(**values)).inserted_primary_key
    return int(made[0]) if made else 0


def change(connection: Connection, group_id: int, values: Mapping[str, Any]) -> None:
    """Change a group."""
    connection.execute(update(check_group).where(check_group.c.id == group_id).values(**values))


def replace_tags(connection: Connection, group_id: int, tags: Sequence[str]) -> None:
    """Make these the group's tags."""
    connection.execute(_REMOVE_TAGS, {"gone": group_id})
    rows = [{"group_id": group_id, "tag": tag} for tag in dict.fromkeys(tags)]
    if rows:
        connection.execute(insert(check_group_tag), rows)


def remove(connection: Connection, group_id: int) -> None:
    """Forget a group."""
    connection.execute(_REMOVE_TAGS, {"gone": group_id})
    connection.execute(_REMOVE, {"gone": group_id})


def _build_conditions(wanted: GroupFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.tag is not None:
        has_tag = exists().where(
            check_group_tag.c.group_id == check_group.c.id, check_group_tag.c.tag == wanted.tag
        )
        found.append(has_tag)
    if wanted.name is not None:
        found.append(check_group.c.name.icontains(wanted.name, autoescape=True))
    return found


def read(row: Row[Any]) -> GroupRow:
    """A group of a row with these columns."""
    return GroupRow(
        id=row.id,
        account_id=row.account_id,
        name=row.name,
        form=Form(row.form),
        doc=row.doc,
        created_ms=row.created_ms,
        updated_ms=row.updated_ms,
        secrets=row.secrets,
    )
