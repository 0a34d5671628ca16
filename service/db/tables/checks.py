"""Checks and their groups, when they are due, and how they stand."""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    text,
)

from service.db.tables.accounts import account
from service.db.tables.conventions import COUNTED, declared
from service.db.tables.locations import private_location

check_: Final = Table(
    "check_",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("type", String, nullable=False),  # contract.checks.CheckType
    Column("lane", String, nullable=False),  # contract.checks.lane(spec)
    Column("name", String, nullable=False),
    Column("activated", Boolean, nullable=False),
    Column("muted", Boolean, nullable=False),
    Column("frequency", Integer, nullable=False),  # minutes; 0: every frequency_offset seconds
    Column("frequency_offset", Integer),  # None: the phase comes from the id
    Column("run_parallel", Boolean, nullable=False),
    Column("doc", JSON, nullable=False),  # the check as keys are shown it that only read
    # contract.wire.encode(spec), sealed if it holds a secret; a claim splices it
    Column("spec", LargeBinary, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    Column("group_id", BigInteger),  # None: it is in no group; a group with checks is not deleted
    Column("applied", JSON(none_as_null=True)),  # doc with its group's settings; None: as doc
    # service.vault.bodies: what is missing in doc and applied, sealed; None: nothing is
    Column("secrets", LargeBinary),
    Index(None, "account_id", "created_ms"),
    Index(
        None,
        "group_id",
        sqlite_where=text("group_id IS NOT NULL"),
        postgresql_where=text("group_id IS NOT NULL"),
    ),
)

check_group: Final = Table(
    # What lane, activated, muted, run_parallel, spec and places of its checks hold has the
    # group's settings in it: they are worked out when either is written.
    "check_group",
    declared,
    Column("id", COUNTED, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("form", SmallInteger, nullable=False),  # of the body that wrote it: 1 or 2
    Column("doc", JSON, nullable=False),  # the group as keys are shown it that only read
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    Column("secrets", LargeBinary),  # as those of checks
    Index(None, "account_id", "id"),
    sqlite_autoincrement=True,  # checks name groups by number
)

check_group_tag: Final = Table(
    "check_group_tag",
    declared,
    Column("group_id", ForeignKey(check_group.c.id, ondelete="CASCADE"), primary_key=True),
    Column("tag", String, primary_key=True),
)

check_tag: Final = Table(
    "check_tag",
    declared,
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), primary_key=True),
    Column("tag", String, primary_key=True),
    Index(None, "tag"),
)

check_location: Final = Table(
    "check_location",
    declared,
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), primary_key=True),
    Column(
        "location_id",
        ForeignKey(private_location.c.id, ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("position", Integer, nullable=False),  # order of the round robin, from 0
    Index(None, "location_id"),
)

check_state: Final = Table(
    "check_state",
    declared,
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), primary_key=True),
    Column("status", String, nullable=False),  # of the last FINAL result that judged the target
    Column("since_ms", BigInteger, nullable=False),  # when it took that status
    Column("result_id", String, nullable=False),
    Column("result_ms", BigInteger, nullable=False),
)

schedule: Final = Table(
    "schedule",
    declared,
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), primary_key=True),
    Column("period_ms", BigInteger, nullable=False),
    Column("phase_ms", BigInteger, nullable=False),
    Column("next_run_ms", BigInteger, nullable=False),
    Column("turn", Integer, nullable=False),  # runs so far: whose turn it is in the round robin
    Index(None, "next_run_ms"),
)

heartbeat: Final = Table(
    "heartbeat",
    declared,
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), primary_key=True),
    Column("token", String, nullable=False, unique=True),
    Column("last_ping_ms", BigInteger),  # None: no ping since the timer was reset
    Column("timer_started_ms", BigInteger),  # first ping since then; None: as above
    Column("timer_reset_ms", BigInteger),  # pings from before it count no more; None: never reset
)

ping: Final = Table(
    "ping",
    declared,
    Column("id", String, primary_key=True),  # made by whoever received it: it counts once
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), nullable=False),
    Column("received_ms", BigInteger, nullable=False),
    Column("state", String, nullable=False),  # service.heartbeats.model.PingState
    Column("method", String, nullable=False),
    Column("source", String, nullable=False),  # Origin or Referer header
    Column("user_agent", String, nullable=False),
    Index(None, "check_id", "received_ms"),
)

heartbeat_correction: Final = Table(
    # A failed result that a ping disproves which was relayed after it.
    "heartbeat_correction",
    declared,
    Column("result_id", String, primary_key=True),
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), nullable=False),
    Column("result_ms", BigInteger, nullable=False),  # start of its run
    Index(None, "check_id", "result_ms"),
)
