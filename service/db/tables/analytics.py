"""What analytics keep of results: packed hours, and roll-ups for when results are gone.

Rows carry no foreign keys, as results do not: what is left of a deleted check goes in time.
"""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, LargeBinary, SmallInteger, String, Table

from service.db.tables.conventions import declared

hour_block: Final = Table(
    "hour_block",
    declared,
    Column("check_id", String, primary_key=True),
    Column("hour_ms", BigInteger, primary_key=True),
    Column("head", LargeBinary, nullable=False),  # service.analytics.hours.Block
    Column("rest", LargeBinary, nullable=False),  # what summaries do not read of it
    sqlite_with_rowid=False,  # blocks of one check lie together in time
)

rollup: Final = Table(
    "rollup",
    declared,
    Column("check_id", String, primary_key=True),
    Column("hours", SmallInteger, primary_key=True),  # how long it is: 1 or 24
    Column("start_ms", BigInteger, primary_key=True),
    Column("body", LargeBinary, nullable=False),  # groups of service.analytics.tallies
    sqlite_with_rowid=False,
)

rollup_dirty: Final = Table(
    # What has to be rolled up, because results came in or were corrected; and what has to be
    # copied to ClickHouse, because it was rolled up.
    "rollup_dirty",
    declared,
    Column("check_id", String, primary_key=True),
    Column("hours", SmallInteger, primary_key=True),
    Column("start_ms", BigInteger, primary_key=True),
    Column("due_ms", BigInteger, nullable=False),  # when it is over
    # How often it was marked again: who computed it on an earlier marking leaves the mark.
    Column("version", BigInteger, nullable=False, server_default="0"),
    Index(None, "hours", "due_ms"),
    sqlite_with_rowid=False,
)

block_horizon: Final = Table(
    # One row, or none: results before this time have been removed.
    "block_horizon",
    declared,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("before_ms", BigInteger, nullable=False),
    # ClickHouse has what was removed from this time on. Null: nothing is copied.
    Column("copied_from_ms", BigInteger),
)
