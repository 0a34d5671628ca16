"""The whole schema on one page: one text for SQLite and PostgreSQL.

Times are milliseconds since 1970 in UTC (`_ms`), by the database's clock.
Ids are text made by us (`service.db.ids`), but a job's is a number that the database counts up.
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
    MetaData,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    text,
)

metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite counts only a column that is called INTEGER, and holds 64 bits in it anyway.
_COUNTED: Final = BigInteger().with_variant(Integer(), "sqlite")

account: Final = Table(
    "account",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

api_key: Final = Table(
    "api_key",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),  # service.accounts.keys.Pepper
    Column("masked", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("revoked_ms", BigInteger),  # None: it is good
    Column("role", String, nullable=False, server_default="READ_WRITE"),  # service.accounts Role
)

key_pepper: Final = Table(
    # No row: keys are stored as their plain SHA-256, as earlier versions did.
    "key_pepper",
    metadata,
    Column("mark", LargeBinary, primary_key=True),
)

audit: Final = Table(
    # Outlasts what it tells of; no foreign keys.
    "audit",
    metadata,
    Column("id", _COUNTED, primary_key=True),
    Column("account_id", String, nullable=False),
    Column("key_id", String),  # None: somebody at the service's own machine
    Column("operation", String, nullable=False),  # of the OpenAPI document, or of a command
    Column("resource", String, nullable=False),  # as its path has it
    Column("resource_id", String),  # None: several, or none
    Column("fields", JSON, nullable=False),  # names of those that were set; no values
    Column("address", String),  # None: not known
    Column("at_ms", BigInteger, nullable=False),
    Index(None, "account_id", "id"),
    Index(None, "at_ms"),
    sqlite_autoincrement=True,
)

idempotency: Final = Table(
    "idempotency",
    metadata,
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), primary_key=True),
    Column("key_hash", LargeBinary, primary_key=True),  # of the Idempotency-Key
    Column("request_hash", LargeBinary, nullable=False),
    Column("answer", LargeBinary, nullable=False),  # sealed with the Idempotency-Key
    Column("created_ms", BigInteger, nullable=False),
    Index(None, "account_id", "created_ms"),
    Index(None, "created_ms"),
)

private_location: Final = Table(
    "private_location",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
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
    metadata,
    Column("id", String, primary_key=True),
    Column("location_id", ForeignKey("private_location.id", ondelete="CASCADE"), nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("masked", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("revoked_ms", BigInteger),  # None: it is good
    Index(None, "location_id"),
)

agent: Final = Table(
    "agent",
    metadata,
    Column(
        "location_id",
        ForeignKey("private_location.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("id", String, primary_key=True),  # made by the agent at each start
    Column("version", String, nullable=False),
    Column("platform", String, nullable=False),
    Column("runtimes", JSON, nullable=False),
    Column("check_types", JSON, nullable=False),
    Column("slots", JSON, nullable=False),  # lane to number
    Column("started_ms", BigInteger, nullable=False),  # its first hello
    Column("last_seen_ms", BigInteger, nullable=False),  # written every few seconds
    Column("key_id", String),  # of its hello; None: it came before keys were noted
    Index(None, "location_id", "last_seen_ms"),
)

location_outage: Final = Table(
    "location_outage",
    metadata,
    # A row: no agent has been there for long, and the location's runs are missed at once.
    Column(
        "location_id",
        ForeignKey("private_location.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("since_ms", BigInteger, nullable=False),
)

location_sample: Final = Table(
    "location_sample",
    metadata,
    Column(
        "location_id",
        ForeignKey("private_location.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("at_ms", BigInteger, primary_key=True),  # a full minute
    Column("queue_size", Integer, nullable=False),  # runs that could be claimed
    Column("oldest_wait_ms", BigInteger, nullable=False),  # 0: none waits
    Index(None, "at_ms"),
    sqlite_with_rowid=False,
)

check_: Final = Table(
    "check_",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
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
    metadata,
    Column("id", _COUNTED, primary_key=True),
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
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
    metadata,
    Column("group_id", ForeignKey("check_group.id", ondelete="CASCADE"), primary_key=True),
    Column("tag", String, primary_key=True),
)

check_tag: Final = Table(
    "check_tag",
    metadata,
    Column("check_id", ForeignKey("check_.id", ondelete="CASCADE"), primary_key=True),
    Column("tag", String, primary_key=True),
    Index(None, "tag"),
)

check_location: Final = Table(
    "check_location",
    metadata,
    Column("check_id", ForeignKey("check_.id", ondelete="CASCADE"), primary_key=True),
    Column(
        "location_id",
        ForeignKey("private_location.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("position", Integer, nullable=False),  # order of the round robin, from 0
    Index(None, "location_id"),
)

check_state: Final = Table(
    "check_state",
    metadata,
    Column("check_id", ForeignKey("check_.id", ondelete="CASCADE"), primary_key=True),
    Column("status", String, nullable=False),  # of the last FINAL result that judged the target
    Column("since_ms", BigInteger, nullable=False),  # when it took that status
    Column("result_id", String, nullable=False),
    Column("result_ms", BigInteger, nullable=False),
)

snippet: Final = Table(
    "snippet",
    metadata,
    Column("id", _COUNTED, primary_key=True),
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),  # of the file that scripts import, without .js
    Column("script", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    UniqueConstraint("account_id", "name"),
    sqlite_autoincrement=True,  # checks name snippets by number
)

variable: Final = Table(
    "variable",
    metadata,
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
    Column("level", String, primary_key=True),  # service.variables.model.Level
    Column("owner_id", String, primary_key=True),  # of the account, group or check
    Column("key", String, primary_key=True),
    Column("position", Integer, nullable=False),  # among those of its owner, as they were sent
    Column("value", LargeBinary, nullable=False),  # sealed by service.vault
    Column("locked", Boolean, nullable=False),
    Column("secret", Boolean, nullable=False),
)

client_certificate: Final = Table(
    "client_certificate",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
    Column("host", String, nullable=False),  # or a glob
    Column("cert", String, nullable=False),  # PEM
    Column("ca", String),  # PEM; None: the usual roots
    Column("key", LargeBinary, nullable=False),  # sealed by service.vault
    Column("passphrase", LargeBinary),  # sealed likewise; None: the key is not encrypted
    Column("expires_ms", BigInteger, nullable=False),  # of the certificate
    Column("created_ms", BigInteger, nullable=False),
    Column("serial", Integer, nullable=False),  # the highest is the newest, whatever clocks say
    Index(None, "account_id", "serial", unique=True),
)

code_bundle: Final = Table(
    # The tar.gz of a Playwright suite; its bytes are a file in the data directory.
    "code_bundle",
    metadata,
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), primary_key=True),
    Column("sha256", String, primary_key=True),
    Column("size_bytes", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),  # when it was sent last
)

schedule: Final = Table(
    "schedule",
    metadata,
    Column("check_id", ForeignKey("check_.id", ondelete="CASCADE"), primary_key=True),
    Column("period_ms", BigInteger, nullable=False),
    Column("phase_ms", BigInteger, nullable=False),
    Column("next_run_ms", BigInteger, nullable=False),
    Column("turn", Integer, nullable=False),  # runs so far: whose turn it is in the round robin
    Index(None, "next_run_ms"),
)

job: Final = Table(
    "job",
    metadata,
    Column("id", _COUNTED, primary_key=True),  # also the run's id; never used twice
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
    Column("fence", Integer, nullable=False),  # claims so far
    Column("deliveries", Integer, nullable=False),  # claims of this attempt that count
    Column("attempt", Integer, nullable=False),  # from 1; the user's retries
    Column("first_started_ms", BigInteger),  # of the first attempt; None: none came back yet
    Column("agent_id", String),  # who holds it, or held it last; None: nobody yet
    Column("claim_id", String),  # of the newest claim; None: never claimed
    Column("claimed_ms", BigInteger),  # the newest claim; None: never claimed
    Column("lease_until_ms", BigInteger),  # None: never claimed
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
    metadata,
    Column("run_id", _COUNTED, primary_key=True, autoincrement=False),
    Column("fence", Integer, nullable=False),
    Column("result_ms", BigInteger, nullable=False),
    # contract.result.Result as the agent sent it; None: no agent did, or it is in result_detail
    Column("body", LargeBinary),
)

result: Final = Table(
    "result",
    metadata,
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
    Index(
        "ix_result_session",
        "session_id",
        sqlite_where=text("session_id IS NOT NULL"),
        postgresql_where=text("session_id IS NOT NULL"),
    ),
    sqlite_with_rowid=False,  # rows of one check lie together in time: 31 bytes a row against 48
)

result_detail: Final = Table(
    # Of attempts, and of results that were stored before `run_final` had a body.
    "result_detail",
    metadata,
    Column("id", String, primary_key=True),
    Column("body", LargeBinary, nullable=False),  # contract.result.Result as the agent sent it
)

late_result: Final = Table(
    # What came after the run was settled or taken over: kept as history, counted never.
    "late_result",
    metadata,
    Column("run_id", BigInteger, primary_key=True),
    Column("fence", Integer, primary_key=True),
    Column("check_id", String, nullable=False),
    Column("agent_id", String, nullable=False),
    Column("received_ms", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "check_id", "received_ms"),
)

session: Final = Table(
    "session",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
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
    Index(None, "check_id"),
    Index(
        "ix_session_group_run",
        *("group_run", "turn"),
        sqlite_where=text("group_run IS NOT NULL AND stopped_ms IS NULL"),
        postgresql_where=text("group_run IS NOT NULL AND stopped_ms IS NULL"),
    ),
)

run_trigger: Final = Table(
    "run_trigger",
    metadata,
    Column("id", _COUNTED, primary_key=True),
    Column("account_id", ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
    Column("runs", String, nullable=False),  # service.triggers.model.Runs
    Column("owner_id", String, nullable=False),  # of what it runs
    Column("hash", LargeBinary, nullable=False),  # of the token, service.accounts.keys.Pepper
    Column("masked", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("called_ms", BigInteger),  # None: never
    UniqueConstraint("runs", "owner_id"),
    sqlite_autoincrement=True,  # people may know triggers by number
)

heartbeat: Final = Table(
    "heartbeat",
    metadata,
    Column("check_id", ForeignKey("check_.id", ondelete="CASCADE"), primary_key=True),
    Column("token", String, nullable=False, unique=True),
    Column("last_ping_ms", BigInteger),  # None: no ping since the timer was reset
    Column("timer_started_ms", BigInteger),  # first ping since then; None: as above
)

ping: Final = Table(
    "ping",
    metadata,
    Column("id", String, primary_key=True),  # made by whoever received it: it counts once
    Column("check_id", ForeignKey("check_.id", ondelete="CASCADE"), nullable=False),
    Column("received_ms", BigInteger, nullable=False),
    Column("state", String, nullable=False),  # service.heartbeats.rules.PingState
    Column("method", String, nullable=False),
    Column("source", String, nullable=False),  # Origin or Referer header
    Column("user_agent", String, nullable=False),
    Index(None, "check_id", "received_ms"),
)

agent_event: Final = Table(
    "agent_event",
    metadata,
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
