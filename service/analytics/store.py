"""SQL of packed hours and roll-ups."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    Connection,
    Select,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)

from service.analytics.windows import HOUR_MS
from service.db.tables.analytics import block_horizon, hour_block, rollup, rollup_dirty

COPY: Final = 0
"""An hour that is to be copied to ClickHouse."""
HOUR: Final = 1
DAY: Final = 24
_OF_RESULTS: Final = (COPY, HOUR)
"""What is read from results, so that these must stay."""
_CHECKS: Final[BindParameter[Any]] = bindparam("check_ids", expanding=True)
_HEADS: Final[Select[Any]] = (
    select(hour_block.c.check_id, hour_block.c.hour_ms, hour_block.c.head, literal(None))
    .where(
        hour_block.c.check_id.in_(_CHECKS),
        hour_block.c.hour_ms >= bindparam("from_ms"),
        hour_block.c.hour_ms < bindparam("to_ms"),
    )
    .order_by(hour_block.c.check_id, hour_block.c.hour_ms)
)
_BLOCKS: Final = _HEADS.with_only_columns(
    hour_block.c.check_id, hour_block.c.hour_ms, hour_block.c.head, hour_block.c.rest
)
_BYTES_OF_HEADS: Final = select(func.sum(func.length(hour_block.c.head))).where(
    hour_block.c.check_id.in_(_CHECKS),
    hour_block.c.hour_ms >= bindparam("from_ms"),
    hour_block.c.hour_ms < bindparam("to_ms"),
)
_ROLLUPS: Final[Select[Any]] = (
    select(rollup.c.check_id, rollup.c.start_ms, rollup.c.body)
    .where(
        rollup.c.check_id.in_(_CHECKS),
        rollup.c.hours == bindparam("length"),
        rollup.c.start_ms >= bindparam("from_ms"),
        rollup.c.start_ms < bindparam("to_ms"),
    )
    .order_by(rollup.c.check_id, rollup.c.start_ms)
)
_DIRTY: Final[Select[Any]] = (
    select(rollup_dirty.c.check_id, rollup_dirty.c.start_ms)
    .where(
        rollup_dirty.c.check_id.in_(_CHECKS),
        rollup_dirty.c.hours == bindparam("length"),
        rollup_dirty.c.start_ms >= bindparam("from_ms"),
        rollup_dirty.c.start_ms < bindparam("to_ms"),
    )
    .order_by(rollup_dirty.c.check_id, rollup_dirty.c.start_ms)
)
_DUE: Final[Select[Any]] = (
    select(rollup_dirty.c.check_id, rollup_dirty.c.start_ms, rollup_dirty.c.version)
    .where(rollup_dirty.c.hours == bindparam("length"), rollup_dirty.c.due_ms <= bindparam("by_ms"))
    .order_by(rollup_dirty.c.due_ms)
    .limit(bindparam("most"))
)
_IS_BLOCK: Final = (
    (hour_block.c.check_id == bindparam("of_check")),
    (hour_block.c.hour_ms == bindparam("at_ms")),
)
_IS_ROLLUP: Final = (
    rollup.c.check_id == bindparam("of_check"),
    rollup.c.hours == bindparam("length"),
    rollup.c.start_ms == bindparam("at_ms"),
)
_IS_DIRTY: Final = (
    rollup_dirty.c.check_id == bindparam("of_check"),
    rollup_dirty.c.hours == bindparam("length"),
    rollup_dirty.c.start_ms == bindparam("at_ms"),
)
_HAS_BLOCK: Final = select(hour_block.c.hour_ms).where(*_IS_BLOCK)
_HAS_ROLLUP: Final = select(rollup.c.start_ms).where(*_IS_ROLLUP)
_MARK_AGAIN: Final = (
    update(rollup_dirty).where(*_IS_DIRTY).values(version=rollup_dirty.c.version + 1)
)
_FIRST_DIRTY: Final = select(func.min(rollup_dirty.c.start_ms)).where(
    rollup_dirty.c.check_id == bindparam("of_check"), rollup_dirty.c.hours.in_(_OF_RESULTS)
)
_DIRTY_BEFORE: Final = (
    select(rollup_dirty.c.start_ms)
    .where(rollup_dirty.c.hours.in_(_OF_RESULTS), rollup_dirty.c.start_ms < bindparam("before_ms"))
    .limit(1)
)
_REMOVE_BLOCK: Final = delete(hour_block).where(*_IS_BLOCK)
_REMOVE_ROLLUP: Final = delete(rollup).where(*_IS_ROLLUP)
_REMOVE_DIRTY: Final = delete(rollup_dirty).where(
    *_IS_DIRTY, rollup_dirty.c.version == bindparam("of_version")
)
_REMOVE_BLOCKS: Final = delete(hour_block).where(
    hour_block.c.check_id == bindparam("of_check"), hour_block.c.hour_ms < bindparam("before_ms")
)
_REMOVE_ROLLUPS: Final = delete(rollup).where(
    rollup.c.check_id == bindparam("of_check"),
    rollup.c.hours == bindparam("length"),
    rollup.c.start_ms < bindparam("before_ms"),
)
_REMOVE_MARKS: Final = delete(rollup_dirty).where(rollup_dirty.c.check_id == bindparam("of_check"))
_MARK_BLOCKS: Final = insert(rollup_dirty).from_select(
    ["check_id", "hours", "start_ms", "due_ms"],
    select(
        hour_block.c.check_id, literal(COPY), hour_block.c.hour_ms, hour_block.c.hour_ms + HOUR_MS
    ).where(
        hour_block.c.check_id.in_(_CHECKS),
        ~exists().where(
            rollup_dirty.c.check_id == hour_block.c.check_id,
            rollup_dirty.c.hours == COPY,
            rollup_dirty.c.start_ms == hour_block.c.hour_ms,
        ),
    ),
)
_LEASE: Final = update(rollup_dirty).where(*_IS_DIRTY)
_COUNT_MARKS: Final = (
    select(func.count())
    .select_from(rollup_dirty)
    .where(rollup_dirty.c.hours == bindparam("length"))
)
_REMOVE_MARKS_OF_LENGTH: Final = delete(rollup_dirty).where(
    rollup_dirty.c.hours == bindparam("length")
)
_COPIED_FROM: Final = select(block_horizon.c.copied_from_ms)
_HORIZON: Final = select(block_horizon.c.before_ms)
_MOVE_HORIZON: Final = update(block_horizon).where(
    block_horizon.c.before_ms < bindparam("new_before_ms")
)
_FIRST_ROLLUP: Final = select(func.min(rollup.c.start_ms)).where(
    rollup.c.check_id == bindparam("of_check"), rollup.c.hours == bindparam("length")
)
_NEXT_ROLLED: Final = select(func.min(rollup.c.check_id)).where(
    rollup.c.check_id > bindparam("after_id")
)
_NEXT_WITH_BLOCKS: Final = select(func.min(hour_block.c.check_id)).where(
    hour_block.c.check_id > bindparam("after_id")
)


class Mark(NamedTuple):
    """An hour or a day that is to be rolled up."""

    check_id: str
    start_ms: int


class Due(NamedTuple):
    """A mark as it was read."""

    mark: Mark
    version: int
    """Each marking raises it."""


def list_blocks(
    connection: Connection, check_ids: Sequence[str], *, window: tuple[int, int], are_whole: bool
) -> Iterator[tuple[str, int, bytes, bytes | None]]:
    """Check, hour, head and rest of the blocks of a window, by check and time.

    The rest is None where `are_whole` is not asked for.
    """
    asked = {"check_ids": check_ids, "from_ms": window[0], "to_ms": window[1]}
    yield from connection.execute(_BLOCKS if are_whole else _HEADS, asked)


def bytes_of_heads(
    connection: Connection, check_ids: Sequence[str], *, window: tuple[int, int]
) -> int:
    """How long the heads of checks' blocks are that begin in a window, together."""
    asked = {"check_ids": check_ids, "from_ms": window[0], "to_ms": window[1]}
    return connection.execute(_BYTES_OF_HEADS, asked).scalar_one() or 0


def list_rollups(
    connection: Connection, check_ids: Sequence[str], *, hours: int, window: tuple[int, int]
) -> Iterator[tuple[str, int, bytes]]:
    """Check, start and body of the roll-ups that begin in a window, by check and time."""
    asked = {
        "check_ids": check_ids,
        "length": hours,
        "from_ms": window[0],
        "to_ms": window[1],
    }
    yield from connection.execute(_ROLLUPS, asked)


def list_dirty(
    connection: Connection, check_ids: Sequence[str], *, hours: int, window: tuple[int, int]
) -> tuple[Mark, ...]:
    """What of a window has changed since it was rolled up, by check and time."""
    asked = {
        "check_ids": check_ids,
        "length": hours,
        "from_ms": window[0],
        "to_ms": window[1],
    }
    return tuple(Mark._make(row) for row in connection.execute(_DIRTY, asked))


def list_due(connection: Connection, *, hours: int, by_ms: int, most: int) -> tuple[Due, ...]:
    """What was over by then and is to be rolled up, the oldest first."""
    asked = {"length": hours, "by_ms": by_ms, "most": most}
    return tuple(
        Due(Mark(check_id, start_ms), version)
        for check_id, start_ms, version in connection.execute(_DUE, asked)
    )


def is_bare(connection: Connection, mark: Mark) -> bool:
    """Whether an hour was rolled up and its results were removed since."""
    named = {"of_check": mark.check_id, "at_ms": mark.start_ms}
    if connection.execute(_HAS_BLOCK, named).first() is not None:
        return False
    return connection.execute(_HAS_ROLLUP, {**named, "length": HOUR}).first() is not None


def put_block(connection: Connection, mark: Mark, block: tuple[bytes, bytes]) -> None:
    """Store the block of an hour in the place of an earlier one."""
    connection.execute(_REMOVE_BLOCK, {"of_check": mark.check_id, "at_ms": mark.start_ms})
    row = {"check_id": mark.check_id, "hour_ms": mark.start_ms}
    connection.execute(insert(hour_block), {**row, "head": block[0], "rest": block[1]})


def put_rollup(connection: Connection, mark: Mark, body: bytes, *, hours: int) -> None:
    """Store a roll-up in the place of an earlier one."""
    connection.execute(_REMOVE_ROLLUP, _named(mark, hours))
    row = {"check_id": mark.check_id, "hours": hours, "start_ms": mark.start_ms, "body": body}
    connection.execute(insert(rollup), row)


def add_mark(connection: Connection, mark: Mark, *, hours: int, due_ms: int) -> None:
    """Have something rolled up; what is marked is marked again."""
    if not connection.execute(_MARK_AGAIN, _named(mark, hours)).rowcount:
        row = {"check_id": mark.check_id, "hours": hours, "start_ms": mark.start_ms}
        connection.execute(insert(rollup_dirty), {**row, "due_ms": due_ms})


def remove_mark(connection: Connection, due: Due, *, hours: int) -> bool:
    """Remove a mark that was computed; False: it was marked again since it was read, and stays."""
    named = {**_named(due.mark, hours), "of_version": due.version}
    return connection.execute(_REMOVE_DIRTY, named).rowcount > 0


def first_dirty(connection: Connection, check_id: str) -> int | None:
    """The oldest hour of a check that is to be rolled up or copied. None: there is none."""
    found: int | None = connection.execute(_FIRST_DIRTY, {"of_check": check_id}).scalar_one()
    return found


def has_dirty_before(connection: Connection, *, before_ms: int) -> bool:
    """Whether an hour that began before is to be rolled up or copied, of any check."""
    return connection.execute(_DIRTY_BEFORE, {"before_ms": before_ms}).first() is not None


def list_checks_with_blocks(connection: Connection) -> Iterator[str]:
    """The checks with blocks, in the order of ids."""
    check_id: str | None = ""
    while check_id := connection.execute(_NEXT_WITH_BLOCKS, {"after_id": check_id}).scalar_one():
        yield check_id


def remove_blocks(connection: Connection, check_id: str, *, before_ms: int) -> None:
    """Remove the blocks of a check's hours that began before."""
    connection.execute(_REMOVE_BLOCKS, {"of_check": check_id, "before_ms": before_ms})


def remove_rollups(connection: Connection, check_id: str, *, hours: int, before_ms: int) -> int:
    """Remove the roll-ups of a check that began before; how many went."""
    asked = {"of_check": check_id, "length": hours, "before_ms": before_ms}
    return connection.execute(_REMOVE_ROLLUPS, asked).rowcount


def remove_marks(connection: Connection, check_id: str) -> None:
    """Nothing of the check is to be rolled up any more."""
    connection.execute(_REMOVE_MARKS, {"of_check": check_id})


def list_checks(connection: Connection, *, after_id: str) -> Iterator[str]:
    """The checks with roll-ups, in the order of ids, from the one after `after_id` on."""
    check_id: str | None = after_id
    while check_id := connection.execute(_NEXT_ROLLED, {"after_id": check_id}).scalar_one():
        yield check_id


def first_rollup(connection: Connection, check_id: str, *, hours: int) -> int | None:
    """When the oldest roll-up of a check begins. None: it has none."""
    asked = {"of_check": check_id, "length": hours}
    found: int | None = connection.execute(_FIRST_ROLLUP, asked).scalar_one()
    return found


def find_horizon(connection: Connection) -> int:
    """Results from before this time have been removed. 0: none have."""
    found: int | None = connection.execute(_HORIZON).scalar_one_or_none()
    return found or 0


def move_horizon(connection: Connection, *, before_ms: int) -> None:
    """Note that results from before this time are removed; it only moves forward."""
    if connection.execute(_HORIZON).first() is None:
        connection.execute(insert(block_horizon), {"id": 1, "before_ms": before_ms})
        return
    values = {"before_ms": before_ms}
    connection.execute(_MOVE_HORIZON.values(**values), {"new_before_ms": before_ms})


def mark_blocks(connection: Connection, check_ids: Sequence[str]) -> None:
    """Have the packed hours of checks copied; what is marked stays marked."""
    connection.execute(_MARK_BLOCKS, {"check_ids": check_ids})


def postpone(connection: Connection, due: Sequence[Due], *, hours: int, due_ms: int) -> None:
    """Have marks be due at another time."""
    for one in due:
        connection.execute(_LEASE.values(due_ms=due_ms), _named(one.mark, hours))


def count_marks(connection: Connection, *, hours: int) -> int:
    """How many marks of a length there are."""
    return connection.execute(_COUNT_MARKS, {"length": hours}).scalar_one()


def remove_marks_of_length(connection: Connection, *, hours: int) -> None:
    """Remove all marks of a length."""
    connection.execute(_REMOVE_MARKS_OF_LENGTH, {"length": hours})


def find_copied_from(connection: Connection) -> int | None:
    """ClickHouse has the results that were removed from this time on. None: nothing is copied."""
    found: int | None = connection.execute(_COPIED_FROM).scalar_one_or_none()
    return found


def set_copied_from(connection: Connection, copied_from_ms: int | None) -> None:
    """Note from which time on ClickHouse has removed results."""
    values = {"copied_from_ms": copied_from_ms}
    if not connection.execute(update(block_horizon).values(**values)).rowcount:
        connection.execute(insert(block_horizon), {"id": 1, "before_ms": 0, **values})


def _named(mark: Mark, hours: int) -> dict[str, Any]:
    return {"of_check": mark.check_id, "length": hours, "at_ms": mark.start_ms}
