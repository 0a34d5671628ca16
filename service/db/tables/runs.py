"""Runs, from what asks for them to what came of them.

Rows of the hot path (job, result and what hangs on them) carry no foreign keys: their parents are
looked up anyway when they are made. Deleting a check clears its jobs; its results, their bodies and
their marks stay, and nothing reads them any more.
"""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    text,
)

from service.db.tables.accounts import account
from service.db.tables.conventions import COUNTED, declared

run_trigger: Final = Table(
    "run_trigger",
    declared,
    Column("id", COUNTED, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("runs", String, nullable=False),  # service.triggers.model.Runs
    Column("owner_id", String, nullable=False),  # of what it runs
    Column("hash", LargeBinary, nullable=False),  # of the token, service.accounts.keys.Pepper
    Column("masked", String, nullable=False),
    Column("token", LargeBinary),  # sealed by service.vault; None: made by an older release
    Column("created_ms", BigInteger, nullable=False),
    Column("called_ms", BigInteger),  # None: never
    UniqueConstraint("runs", "owner_id"),
    sqlite_autoincrement=True,  # people may know triggers by number
)

test_session: Final = Table(
    # Runs of checks that are not stored; each check has a row of `session`.
    "test_session",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("status", String, nullable=False),  # service.sessions.model.TestStatus
    Column("checks", Integer, nullable=False),
    Column("pending", Integer, nullable=False),  # checks that have not ended
    Column("failed", Integer, nullable=False),  # checks that have ended without passing
    Column("started_ms", BigInteger, nullable=False),
    Column("stopped_ms", BigInteger),  # None: it goes on
    Column("is_recorded", Boolean, nullable=False),  # whether lists show it
    Column("suite_id", String),  # of the client's; None: nobody waits for single runs
    Column("metadata", JSON, nullable=False),  # what the client says of project and repository
    Column("streams_logs", Boolean),  # whether its client prints them; None: it does not
    Index(
        "ix_test_session_recorded",
        *("account_id", "id"),
        sqlite_where=text("is_recorded"),
        postgresql_where=text("is_recorded"),
    ),
    Index(
        "ix_test_session_suite_id",
        "suite_id",
        sqlite_where=text("suite_id IS NOT NULL"),
        postgresql_where=text("suite_id IS NOT NULL"),
    ),
)

session: Final = Table(
    "session",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("check_id", String, nullable=False),
    Column("check_type", String, nullable=False),
    Column("name", String, nullable=False),  # the check's, when it was triggered
    Column("locations", JSON, nullable=False),  # slugs
    Column("status", String, nullable=False),  # worst so far; final once `stopped_ms` is set
    Column("pending", Integer, nullable=False),  # runs without a FINAL result
    Column("started_ms", BigInteger, nullable=False),
    Column("stopped_ms", BigInteger),  # None: it goes on
    Column("refresh_cache", Boolean),  # suites install their dependencies anew; None: as false
    Column("group_run", String),  # the run of a group that it is part of; None: of none
    Column("turn", Integer),  # its place in that run, as long as it waits; None: it does not
    Column("is_test", Boolean),  # whether its check is not stored; None: as false
    # Only of tests, until they end: what else a claim would read of the check.
    Column("spec", LargeBinary),  # as that of checks
    Column("group_id", BigInteger),  # None: it is in no group
    Column("bundle_sha256", String),  # None: it is no suite
    Column("snapshots", String),  # their SHA-256, joined by spaces; None: it compares with none
    Column("test_session_id", String),  # the test session that it is part of; None: of none
    Column("logical_id", String),  # of the client's; None: it is part of no test session
    Column("test_run_id", String),  # likewise
    Column("tested_check_id", String),  # the stored check of which a copy runs; None: none
    Column("retry_strategy", JSON(none_as_null=True)),  # of a test; None: a failed run is final
    Index(None, "check_id"),
    Index(
        "ix_session_test_session_id",
        *("test_session_id", "id"),
        sqlite_where=text("test_session_id IS NOT NULL"),
        postgresql_where=text("test_session_id IS NOT NULL"),
    ),
    Index(
        "ix_session_group_run",
        *("group_run", "turn"),
        sqlite_where=text("group_run IS NOT NULL AND stopped_ms IS NULL"),
        postgresql_where=text("group_run IS NOT NULL AND stopped_ms IS NULL"),
    ),
    Index(
        "ix_session_bundle_sha256",
        "bundle_sha256",
        sqlite_where=text("bundle_sha256 IS NOT NULL"),
        postgresql_where=text("bundle_sha256 IS NOT NULL"),
    ),
)

job: Final = Table(
    "job",
    declared,
    Column("id", COUNTED, primary_key=True),  # also the run's id; never used twice
    Column("check_id", String, nullable=False),
    Column("check_type", String, nullable=False),
    Column("lane", String, nullable=False),
    Column("location_id", String, nullable=False),
    Column("source", String, nullable=False),  # contract.job.RunSource
    Column("session_id", String),  # None: the run belongs to no session
    Column("scheduled_ms", BigInteger, nullable=False),  # when the run was due
    Column("due_ms", BigInteger, nullable=False),  # when it may be claimed: later for a retry
    Column("expires_ms", BigInteger, nullable=False),  # unclaimed until then, it is MISSED
    Column("priority", SmallInteger, nullable=False),  # 0: retries and on demand; 1: scheduled
    Column("state", SmallInteger, nullable=False),  # 0: QUEUED, 1: LEASED; done: no row
    Column("fence", Integer, nullable=False),  # grows with each claim, from a random start
    Column("deliveries", Integer, nullable=False),  # claims of this attempt that count
    Column("attempt", Integer, nullable=False),  # from 1; the user's retries
    Column("first_started_ms", BigInteger),  # of the first attempt; None: none came back yet
    Column("agent_id", String),  # who holds it, or held it last; None: nobody yet
    Column("claim_id", String),  # of the newest claim; None: never claimed
    Column("claimed_ms", BigInteger),  # the newest claim; None: never claimed
    Column("lease_until_ms", BigInteger),  # None: never claimed
    Column("returned_by", String),  # agents that gave this attempt back, as JSON; None: none did
    Index(
        # Two ticks, or one repeated after a crash, queue a scheduled run once.
        "uq_job_scheduled",
        *("check_id", "location_id", "scheduled_ms"),
        unique=True,
        sqlite_where=text("source = 'SCHEDULER'"),
        postgresql_where=text("source = 'SCHEDULER'"),
    ),
    Index(
        "ix_job_ready",
        *("location_id", "lane", "priority", "due_ms", "id"),
        sqlite_where=text("state = 0"),
        postgresql_where=text("state = 0"),
    ),
    Index(
        "ix_job_queued_until",
        "expires_ms",
        sqlite_where=text("state = 0"),
        postgresql_where=text("state = 0"),
    ),
    Index(
        "ix_job_leased_until",
        "lease_until_ms",
        sqlite_where=text("state = 1"),
        postgresql_where=text("state = 1"),
    ),
    sqlite_autoincrement=True,  # a job's id must not come again after its row is gone
)

run_final: Final = Table(
    # A run has one FINAL result, whatever races; also how a result that comes twice is known.
    "run_final",
    declared,
    Column("run_id", COUNTED, primary_key=True, autoincrement=False),
    Column("fence", Integer, nullable=False),
    Column("result_ms", BigInteger, nullable=False),
    # contract.result.Result as the agent sent it; None: no agent did, or it is in result_detail
    Column("body", LargeBinary),
)

result: Final = Table(
    "result",
    declared,
    Column("check_id", String, primary_key=True),
    Column("ts", BigInteger, primary_key=True),  # start of the run; also inside the id
    Column("id", String, primary_key=True),
    Column("run_id", BigInteger, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("session_id", String),  # None: the run belonged to no session
    Column("location", String, nullable=False),  # slug: a location may go, its results stay
    Column("source", String, nullable=False),  # contract.job.RunSource
    Column("result_type", String, nullable=False),  # FINAL or ATTEMPT
    Column("status", String, nullable=False),  # service.results.model.RunStatus
    Column("cause", String),  # of MISSED and ERROR; None for all others
    Column("attempt", Integer, nullable=False),
    Column("response_time_ms", Float),  # None: nothing was measured
    Column("over_max_response_time", Boolean, nullable=False),
    Column("scheduled_ms", BigInteger, nullable=False),
    Column("stopped_ms", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),  # when it was stored
    Column("due_times", Integer),  # how many it stands for, all missed; None: one
    Index(
        "ix_result_session",
        "session_id",
        sqlite_where=text("session_id IS NOT NULL"),
        postgresql_where=text("session_id IS NOT NULL"),
    ),
    Index(
        # Runs that nobody made are few, and asked for by place.
        "ix_result_cause",
        *("location", "ts"),
        sqlite_where=text("cause IS NOT NULL"),
        postgresql_where=text("cause IS NOT NULL"),
    ),
    Index(
        # Rows that stand for a time without the service, by when it ended.
        "ix_result_outage",
        *("check_id", "stopped_ms"),
        sqlite_where=text("due_times IS NOT NULL"),
        postgresql_where=text("due_times IS NOT NULL"),
    ),
    Index(
        # Which runs were degraded, among many passes; SQLite prefers the key to a shorter one.
        "ix_result_degraded",
        *("check_id", "status", "result_type", "ts"),
        sqlite_where=text("status = 'DEGRADED'"),
        postgresql_where=text("status = 'DEGRADED'"),
    ),
    sqlite_with_rowid=False,  # rows of one check lie together in time: 31 bytes a row against 48
)

result_detail: Final = Table(
    # Of attempts, and of results that were stored before `run_final` had a body.
    "result_detail",
    declared,
    Column("id", String, primary_key=True),
    Column("body", LargeBinary, nullable=False),  # contract.result.Result as the agent sent it
)

late_result: Final = Table(
    # What came after the run was settled or taken over: kept as history, counted never.
    "late_result",
    declared,
    Column("run_id", BigInteger, primary_key=True),
    Column("fence", Integer, primary_key=True),
    Column("check_id", String, nullable=False),
    Column("agent_id", String, nullable=False),
    Column("received_ms", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "check_id", "received_ms"),
    Index(None, "received_ms"),
)
