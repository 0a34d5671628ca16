"""Times in which nobody is alerted."""

from typing import Final

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table

from service.db.tables.accounts import account
from service.db.tables.conventions import COUNTED, declared

maintenance_window: Final = Table(
    "maintenance_window",
    declared,
    Column("id", COUNTED, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("tags", JSON, nullable=False),  # of the checks that it applies to; []: all
    Column("starts_ms", BigInteger, nullable=False),
    Column("ends_ms", BigInteger, nullable=False),  # of its first occurrence, exclusive
    Column("rule", String),  # by which it repeats, of RFC 5545; None: it does not
    Column("time_zone", String, nullable=False),
    Column("over_ms", BigInteger, nullable=False),  # when its last occurrence ends
    Column("repeat_interval", Integer),  # this and what follows: as it was sent
    Column("repeat_unit", String),  # service.maintenance.model.RepeatUnit
    Column("repeat_ends_ms", BigInteger),
    Column("rrule", String),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    Column("is_announced", Boolean, nullable=False, server_default="0"),  # on status pages
    Index(None, "account_id", "over_ms"),
    sqlite_autoincrement=True,
)
