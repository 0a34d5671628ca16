"""SQL that removes results, their bodies and their marks, the oldest ones first."""

from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, select

from service.db.ids import least_id
from service.db.tables.runs import late_result, result, result_detail, run_final
from service.results.model import Removed, ResultType

_NEXT_CHECK: Final = select(func.min(result.c.check_id)).where(
    result.c.check_id > bindparam("after_id")
)
_NEXT_OLD: Final = _NEXT_CHECK.where(result.c.ts < bindparam("before_ms"))
# From one check to the next by the index, in one statement: each trial has a check of its own.
_CHECKS: Final = _NEXT_CHECK.with_only_columns(func.min(result.c.check_id).label("id")).cte(
    "checks", recursive=True
)
_EACH_CHECK: Final = _CHECKS.union_all(
    select(
        select(func.min(result.c.check_id))
        .where(result.c.check_id > _CHECKS.c.id)
        .scalar_subquery()
    ).where(_CHECKS.c.id.is_not(None))
)
_NEXT_OF_CHECKS: Final = (
    select(_EACH_CHECK.c.id)
    .where(
        select(func.min(result.c.ts)).where(result.c.check_id == _EACH_CHECK.c.id).scalar_subquery()
        < bindparam("before_ms")
    )
    .limit(1)
)
_OLD: Final = (
    select(result.c.ts, result.c.id, result.c.run_id, result.c.result_type)
    .where(result.c.check_id == bindparam("check_id"), result.c.ts < bindparam("before_ms"))
    .order_by(result.c.ts)
    .limit(bindparam("most"))
)
_REMOVE: Final = delete(result).where(
    result.c.check_id == bindparam("of_check"),
    result.c.ts == bindparam("at_ms"),
    result.c.id == bindparam("result_id"),
)
_REMOVE_DETAIL: Final = delete(result_detail).where(result_detail.c.id == bindparam("result_id"))
_REMOVE_FINAL: Final = delete(run_final).where(
    run_final.c.run_id == bindparam("of_run"), run_final.c.result_ms == bindparam("at_ms")
)
_HAS_OLD: Final = select(result.c.id).where(result.c.ts < bindparam("before_ms")).limit(1)
_OLD_DETAILS: Final = (
    select(result_detail.c.id)
    .where(result_detail.c.id < bindparam("before_id"))
    .order_by(result_detail.c.id)
    .limit(bindparam("most"))
)
_REMOVE_OLD_DETAILS: Final = delete(result_detail).where(result_detail.c.id.in_(_OLD_DETAILS))
_OLD_LATE: Final = (
    select(late_result.c.run_id, late_result.c.fence)
    .where(late_result.c.received_ms < bindparam("before_ms"))
    .limit(bindparam("most"))
)
_REMOVE_LATE: Final = delete(late_result).where(
    late_result.c.run_id == bindparam("of_run"), late_result.c.fence == bindparam("of_fence")
)


def next_check_before(connection: Connection, *, after_id: str, before_ms: int) -> str | None:
    """The next check, in the order of ids, with results from before. None: there is none.

    Deleted checks have results, too.
    """
    if connection.dialect.name == "postgresql":
        return _next_of_partitions(connection, after_id, before_ms)
    asked = {"after_id": after_id, "before_ms": before_ms}
    check_id: str | None = connection.execute(_NEXT_OF_CHECKS, asked).scalar()
    return check_id


def _next_of_partitions(connection: Connection, after_id: str, before_ms: int) -> str | None:
    """By the time, which tells the partitions; SQLite would read all results of each check."""
    asked = {"after_id": after_id, "before_ms": before_ms}
    if not after_id and connection.execute(_HAS_OLD, asked).first() is None:
        return None
    found: str | None = connection.execute(_NEXT_OLD, asked).scalar_one()
    return found


def remove_before(connection: Connection, check_id: str, *, before_ms: int, most: int) -> Removed:
    """Remove the oldest results of a check with what belongs to them."""
    old = connection.execute(
        _OLD, {"check_id": check_id, "before_ms": before_ms, "most": most}
    ).all()
    if not old:
        return Removed((), before_ms)
    named = [{"of_check": check_id, "at_ms": row.ts, "result_id": row.id} for row in old]
    connection.execute(_REMOVE_DETAIL, [{"result_id": row.id} for row in old])
    finals = [
        {"of_run": row.run_id, "at_ms": row.ts}
        for row in old
        if row.result_type == ResultType.FINAL.value
    ]
    if finals:
        connection.execute(_REMOVE_FINAL, finals)
    connection.execute(_REMOVE, named)
    return Removed([row.id for row in old], old[-1].ts)


def remove_details_before(connection: Connection, *, before_ms: int, most: int) -> int:
    """Remove the bodies of attempts from before; how many went."""
    asked = {"before_id": least_id(before_ms), "most": most}
    return connection.execute(_REMOVE_OLD_DETAILS, asked).rowcount


def has_late_before(connection: Connection, *, before_ms: int) -> bool:
    """Whether there are late results that came before."""
    asked = {"before_ms": before_ms, "most": 1}
    return connection.execute(_OLD_LATE, asked).first() is not None


def remove_late(connection: Connection, *, before_ms: int, most: int) -> int:
    """Remove late results that came before; how many went."""
    old = connection.execute(_OLD_LATE, {"before_ms": before_ms, "most": most}).all()
    if old:
        gone = [{"of_run": row.run_id, "of_fence": row.fence} for row in old]
        connection.execute(_REMOVE_LATE, gone)
    return len(old)
