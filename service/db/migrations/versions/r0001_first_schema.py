"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "account",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
    )
    op.create_table(
        "agent_event",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("location_id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("received_ms", sa.BigInteger(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("stack_trace", sa.String(), nullable=False),
        sa.Column("agent_version", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("runtime_version", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_event")),
    )
    op.create_index(
        op.f("ix_agent_event_location_id_received_ms"),
        "agent_event",
        ["location_id", "received_ms"],
        unique=False,
    )
    op.create_table(
        "job",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("check_type", sa.String(), nullable=False),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("location_id", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("scheduled_ms", sa.BigInteger(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("deliveries", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("first_started_ms", sa.BigInteger(), nullable=True),
        sa.Column("agent_id", sa.String(), nullable=True),
        sa.Column("claim_id", sa.String(), nullable=True),
        sa.Column("claimed_ms", sa.BigInteger(), nullable=True),
        sa.Column("lease_until_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_job_claim",
        "job",
        ["claim_id"],
        unique=False,
        sqlite_where=sa.text("state = 1"),
        postgresql_where=sa.text("state = 1"),
    )
    op.create_index(
        "ix_job_leased_until",
        "job",
        ["lease_until_ms"],
        unique=False,
        sqlite_where=sa.text("state = 1"),
        postgresql_where=sa.text("state = 1"),
    )
    op.create_index(
        "ix_job_queued_until",
        "job",
        ["expires_ms"],
        unique=False,
        sqlite_where=sa.text("state = 0"),
        postgresql_where=sa.text("state = 0"),
    )
    op.create_index(
        "ix_job_ready",
        "job",
        ["location_id", "lane", "priority", "due_ms", "id"],
        unique=False,
        sqlite_where=sa.text("state = 0"),
        postgresql_where=sa.text("state = 0"),
    )
    op.create_index(
        "uq_job_scheduled",
        "job",
        ["check_id", "location_id", "scheduled_ms"],
        unique=True,
        sqlite_where=sa.text("source = 'SCHEDULER'"),
        postgresql_where=sa.text("source = 'SCHEDULER'"),
    )
    op.create_table(
        "late_result",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("received_ms", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "fence", name=op.f("pk_late_result")),
    )
    op.create_index(
        op.f("ix_late_result_check_id_received_ms"),
        "late_result",
        ["check_id", "received_ms"],
        unique=False,
    )
    op.create_table(
        "result",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("ts", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("location", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("result_type", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("response_time_ms", sa.Float(), nullable=True),
        sa.Column("over_max_response_time", sa.Boolean(), nullable=False),
        sa.Column("scheduled_ms", sa.BigInteger(), nullable=False),
        sa.Column("stopped_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("check_id", "ts", "id", name=op.f("pk_result")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_result_session",
        "result",
        ["session_id"],
        unique=False,
        sqlite_where=sa.text("session_id IS NOT NULL"),
        postgresql_where=sa.text("session_id IS NOT NULL"),
    )
    op.create_table(
        "result_detail",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_result_detail")),
    )
    op.create_table(
        "run_final",
        sa.Column(
            "run_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("result_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_final")),
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("masked", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("revoked_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_api_key_account_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("hash", name=op.f("uq_api_key_hash")),
    )
    op.create_table(
        "check_",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("activated", sa.Boolean(), nullable=False),
        sa.Column("muted", sa.Boolean(), nullable=False),
        sa.Column("frequency", sa.Integer(), nullable=False),
        sa.Column("frequency_offset", sa.Integer(), nullable=True),
        sa.Column("run_parallel", sa.Boolean(), nullable=False),
        sa.Column("doc", sa.JSON(), nullable=False),
        sa.Column("spec", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_check__account_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_check_")),
    )
    op.create_index(
        op.f("ix_check__account_id_created_ms"),
        "check_",
        ["account_id", "created_ms"],
        unique=False,
    )
    op.create_table(
        "private_location",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("slug_name", sa.String(), nullable=False),
        sa.Column("icon", sa.String(), nullable=False),
        sa.Column("proxy_url", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_private_location_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_private_location")),
        sa.UniqueConstraint(
            "account_id", "slug_name", name=op.f("uq_private_location_account_id_slug_name")
        ),
    )
    op.create_table(
        "session",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("check_type", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("locations", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("pending", sa.Integer(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("stopped_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_session_account_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_session")),
    )
    op.create_index(op.f("ix_session_check_id"), "session", ["check_id"], unique=False)
    op.create_table(
        "agent",
        sa.Column("location_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("runtimes", sa.JSON(), nullable=False),
        sa.Column("check_types", sa.JSON(), nullable=False),
        sa.Column("slots", sa.JSON(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["location_id"],
            ["private_location.id"],
            name=op.f("fk_agent_location_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("location_id", "id", name=op.f("pk_agent")),
    )
    op.create_index(
        op.f("ix_agent_location_id_last_seen_ms"),
        "agent",
        ["location_id", "last_seen_ms"],
        unique=False,
    )
    op.create_table(
        "check_location",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("location_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["check_id"], ["check_.id"], name=op.f("fk_check_location_check_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["location_id"],
            ["private_location.id"],
            name=op.f("fk_check_location_location_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("check_id", "location_id", name=op.f("pk_check_location")),
    )
    op.create_index(
        op.f("ix_check_location_location_id"), "check_location", ["location_id"], unique=False
    )
    op.create_table(
        "check_state",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("since_ms", sa.BigInteger(), nullable=False),
        sa.Column("result_id", sa.String(), nullable=False),
        sa.Column("result_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["check_id"], ["check_.id"], name=op.f("fk_check_state_check_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("check_id", name=op.f("pk_check_state")),
    )
    op.create_table(
        "check_tag",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("tag", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["check_id"], ["check_.id"], name=op.f("fk_check_tag_check_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("check_id", "tag", name=op.f("pk_check_tag")),
    )
    op.create_index(op.f("ix_check_tag_tag"), "check_tag", ["tag"], unique=False)
    op.create_table(
        "heartbeat",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("last_ping_ms", sa.BigInteger(), nullable=True),
        sa.Column("timer_started_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["check_id"], ["check_.id"], name=op.f("fk_heartbeat_check_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("check_id", name=op.f("pk_heartbeat")),
        sa.UniqueConstraint("token", name=op.f("uq_heartbeat_token")),
    )
    op.create_table(
        "location_key",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("location_id", sa.String(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("masked", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("revoked_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["location_id"],
            ["private_location.id"],
            name=op.f("fk_location_key_location_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_location_key")),
        sa.UniqueConstraint("hash", name=op.f("uq_location_key_hash")),
    )
    op.create_index(
        op.f("ix_location_key_location_id"), "location_key", ["location_id"], unique=False
    )
    op.create_table(
        "ping",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("received_ms", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("user_agent", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["check_id"], ["check_.id"], name=op.f("fk_ping_check_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ping")),
    )
    op.create_index(
        op.f("ix_ping_check_id_received_ms"), "ping", ["check_id", "received_ms"], unique=False
    )
    op.create_table(
        "schedule",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("period_ms", sa.BigInteger(), nullable=False),
        sa.Column("phase_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_run_ms", sa.BigInteger(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["check_id"], ["check_.id"], name=op.f("fk_schedule_check_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("check_id", name=op.f("pk_schedule")),
    )
    op.create_index(op.f("ix_schedule_next_run_ms"), "schedule", ["next_run_ms"], unique=False)
