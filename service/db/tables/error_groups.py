"""Failures of checks, those that are alike once."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    String,
    Table,
    UniqueConstraint,
)

from service.db.tables.accounts import account
from service.db.tables.checks import check_
from service.db.tables.conventions import declared

error_group: Final = Table(
    "error_group",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), nullable=False),
    Column("error_hash", String, nullable=False),  # of `cleaned`
    Column("raw", String, nullable=False),  # the message of the newest failure
    Column("cleaned", String, nullable=False),
    Column("first_seen_ms", BigInteger, nullable=False),
    Column("last_seen_ms", BigInteger, nullable=False),
    Column("archived_until_next", Boolean, nullable=False),  # hidden until it occurs again
    Column("archived_forever", Boolean, nullable=False),  # hidden, whatever occurs
    UniqueConstraint("check_id", "error_hash"),
    Index(None, "account_id", "last_seen_ms"),
)
