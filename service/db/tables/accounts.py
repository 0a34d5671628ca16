"""Accounts, their keys, and what is kept of their calls."""

from typing import Final

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, LargeBinary, String, Table

from service.db.tables.conventions import COUNTED, declared

account: Final = Table(
    "account",
    declared,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    # service.checks.fields.AlertSettings; None: the defaults
    Column("alert_settings", JSON(none_as_null=True)),
)

api_key: Final = Table(
    "api_key",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),  # service.accounts.keys.Pepper
    Column("masked", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("revoked_ms", BigInteger),  # None: it is good
    Column("role", String, nullable=False, server_default="READ_WRITE"),  # service.accounts Role
    Column("used_ms", BigInteger),  # to a minute; None: not since this is noted
)

key_pepper: Final = Table(
    # No row: keys are stored as their plain SHA-256, as earlier versions did.
    "key_pepper",
    declared,
    Column("mark", LargeBinary, primary_key=True),
)

audit: Final = Table(
    # Outlasts what it tells of; no foreign keys.
    "audit",
    declared,
    Column("id", COUNTED, primary_key=True),
    Column("account_id", String, nullable=False),
    Column("key_id", String),  # None: a user, a link, or somebody at the service's own machine
    Column("operation", String, nullable=False),  # of the OpenAPI document, or of a command
    Column("resource", String, nullable=False),  # as its path has it
    Column("resource_id", String),  # None: several, or none
    Column("fields", JSON, nullable=False),  # names of those that were set; no values
    Column("address", String),  # None: not known
    Column("at_ms", BigInteger, nullable=False),
    Column("user_id", String),  # None: an API key, a link, or somebody at the service's machine
    Index(None, "account_id", "id"),
    Index(None, "at_ms"),
    sqlite_autoincrement=True,
)

idempotency: Final = Table(
    "idempotency",
    declared,
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), primary_key=True),
    Column("key_hash", LargeBinary, primary_key=True),  # of the Idempotency-Key
    Column("request_hash", LargeBinary, nullable=False),
    Column("answer", LargeBinary, nullable=False),  # sealed with the Idempotency-Key
    Column("created_ms", BigInteger, nullable=False),
    Index(None, "account_id", "created_ms"),
    Index(None, "created_ms"),
)
