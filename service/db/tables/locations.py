"""Private locations, the agents there, and how they have fared."""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
)

from service.db.tables.accounts import account
from service.db.tables.conventions import declared

private_location: Final = Table(
    "private_location",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("slug_name", String, nullable=False),
    Column("icon", String, nullable=False),
    Column("proxy_url", String),  # its credentials hidden; None: direct
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    # The whole address, sealed by service.vault; None: it holds no credentials
    Column("sealed_proxy_url", LargeBinary),
    UniqueConstraint("account_id", "slug_name"),
)

location_key: Final = Table(
    "location_key",
    declared,
    Column("id", String, primary_key=True),
    Column("location_id", ForeignKey(private_location.c.id, ondelete="CASCADE"), nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("masked", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("revoked_ms", BigInteger),  # None: it is good
    Index(None, "location_id"),
)

location_outage: Final = Table(
    "location_outage",
    declared,
    # A row: no agent has been there for long, and the location's runs are missed at once.
    Column(
        "location_id",
        ForeignKey(private_location.c.id, ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("since_ms", BigInteger, nullable=False),
)

location_sample: Final = Table(
    "location_sample",
    declared,
    Column(
        "location_id",
        ForeignKey(private_location.c.id, ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("at_ms", BigInteger, primary_key=True),  # a full minute
    Column("queue_size", Integer, nullable=False),  # runs that could be claimed
    Column("oldest_wait_ms", BigInteger, nullable=False),  # 0: none waits
    Index(None, "at_ms"),
    sqlite_with_rowid=False,
)

agent: Final = Table(
    "agent",
    declared,
    Column(
        "location_id",
        ForeignKey(private_location.c.id, ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("id", String, primary_key=True),  # made by the agent at each start
    Column("version", String, nullable=False),
    Column("platform", String, nullable=False),
    Column("runtimes", JSON, nullable=False),
    Column("check_types", JSON, nullable=False),
    Column("unavailable", JSON),  # types that it cannot run, and why; None: it did not say
    Column("slots", JSON, nullable=False),  # lane to number
    Column("started_ms", BigInteger, nullable=False),  # its first hello
    Column("last_seen_ms", BigInteger, nullable=False),  # written every few seconds
    Column("key_id", String),  # of its hello; None: it came before keys were noted
    Index(None, "location_id", "last_seen_ms"),
)

agent_event: Final = Table(
    "agent_event",
    declared,
    Column("id", String, primary_key=True),
    Column("location_id", String, nullable=False),
    Column("agent_id", String, nullable=False),
    Column("received_ms", BigInteger, nullable=False),
    Column("message", String, nullable=False),
    Column("stack_trace", String, nullable=False),
    Column("agent_version", String, nullable=False),
    Column("platform", String, nullable=False),
    Column("runtime_version", String, nullable=False),
    Index(None, "location_id", "received_ms"),
)
