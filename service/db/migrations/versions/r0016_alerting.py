"""What alerting knows of checks, its alerts, and the alert settings of accounts."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add three tables and a column."""
    op.add_column("account", sa.Column("alert_settings", sa.JSON(none_as_null=True), nullable=True))
    _create_alert_state()
    _create_check_alert()
    _create_location_alert()


def _create_alert_state() -> None:
    op.create_table(
        "alert_state",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("since_ms", sa.BigInteger(), nullable=False),
        sa.Column("began_ms", sa.BigInteger(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("recorded", sa.String(), nullable=False),
        sa.Column("told", sa.String(), nullable=False),
        sa.Column("noticed_ms", sa.BigInteger(), nullable=False),
        sa.Column("reminders", sa.Integer(), nullable=False),
        sa.Column("timer_ms", sa.BigInteger(), nullable=True),
        sa.Column("result_id", sa.String(), nullable=True),
        sa.Column("alert_id", sa.String(), nullable=True),
        sa.Column("incident_id", sa.String(), nullable=True),
        sa.Column("round_ms", sa.BigInteger(), nullable=True),
        sa.Column("open_round_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["check_id"], ["check_.id"], name=op.f("fk_alert_state_check_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("check_id", name=op.f("pk_alert_state")),
    )
    waiting = sa.text("timer_ms IS NOT NULL")
    op.create_index(
        op.f("ix_alert_state_timer_ms"),
        "alert_state",
        ["timer_ms"],
        unique=False,
        sqlite_where=waiting,
        postgresql_where=waiting,
    )


def _create_check_alert() -> None:
    op.create_table(
        "check_alert",
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("check_name", sa.String(), nullable=False),
        sa.Column("check_type", sa.String(), nullable=False),
        sa.Column("check_description", sa.String(), nullable=True),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("group_id", sa.BigInteger(), nullable=True),
        sa.Column("group_name", sa.String(), nullable=True),
        sa.Column("alert_type", sa.String(), nullable=False),
        sa.Column("location", sa.String(), nullable=False),
        sa.Column("result_id", sa.String(), nullable=True),
        sa.Column("response_time_ms", sa.Float(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("mismatch", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("status_code", sa.String(), nullable=True),
        sa.Column("status_text", sa.String(), nullable=True),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("failing_locations", sa.JSON(), nullable=False),
        sa.Column("passing_locations", sa.JSON(), nullable=False),
        sa.Column("last_pass_ms", sa.BigInteger(), nullable=True),
        sa.Column("reminder", sa.Integer(), nullable=False),
        sa.Column("certificate", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("artifacts", sa.JSON(), nullable=False),
        sa.Column("notified", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_check_alert_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_check_alert")),
        sa.UniqueConstraint("id", name=op.f("uq_check_alert_id")),
    )
    op.create_index(
        op.f("ix_check_alert_account_id_created_ms"),
        "check_alert",
        ["account_id", "created_ms"],
        unique=False,
    )
    op.create_index(
        op.f("ix_check_alert_check_id_created_ms"),
        "check_alert",
        ["check_id", "created_ms"],
        unique=False,
    )


def _create_location_alert() -> None:
    op.create_table(
        "location_alert",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("location", sa.String(), nullable=False),
        sa.Column("location_name", sa.String(), nullable=False),
        sa.Column("is_recovery", sa.Boolean(), nullable=False),
        sa.Column("since_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("check_count", sa.Integer(), nullable=False),
        sa.Column("check_names", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_location_alert_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_location_alert")),
    )
    op.create_index(
        op.f("ix_location_alert_account_id_created_ms"),
        "location_alert",
        ["account_id", "created_ms"],
        unique=False,
    )
