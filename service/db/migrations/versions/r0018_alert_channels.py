"""Alert channels, subscriptions, and notifications that wait to be sent."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_OPEN = sa.text("status = 'IN_PROGRESS'")


def upgrade() -> None:
    """Add tables."""
    _add_channels()
    _add_subscriptions()
    _add_notifications()
    _add_certificate_notices()


def _refers(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE"
    )


def _add_channels() -> None:
    op.create_table(
        "alert_channel",
        sa.Column("id", _COUNTED, nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("secrets", sa.LargeBinary(), nullable=False),
        sa.Column("send_recovery", sa.Boolean(), nullable=False),
        sa.Column("send_failure", sa.Boolean(), nullable=False),
        sa.Column("send_degraded", sa.Boolean(), nullable=False),
        sa.Column("ssl_expiry", sa.Boolean(), nullable=False),
        sa.Column("ssl_expiry_threshold", sa.Integer(), nullable=False),
        sa.Column("auto_subscribe", sa.Boolean(), nullable=False),
        sa.Column("paused_reason", sa.String(), nullable=True),
        sa.Column("paused_ms", sa.BigInteger(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        _refers("alert_channel", "account_id", "account"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_channel")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_alert_channel_account_id_id"), "alert_channel", ["account_id", "id"])


def _add_subscriptions() -> None:
    name = "alert_subscription"
    op.create_table(
        name,
        sa.Column("id", _COUNTED, nullable=False),
        sa.Column("channel_id", _COUNTED, nullable=False),
        sa.Column("check_id", sa.String(), nullable=True),
        sa.Column("group_id", _COUNTED, nullable=True),
        sa.Column("activated", sa.Boolean(), nullable=False),
        _refers(name, "channel_id", "alert_channel"),
        _refers(name, "check_id", "check_"),
        _refers(name, "group_id", "check_group"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_subscription")),
        sa.UniqueConstraint(
            "channel_id", "check_id", name=op.f("uq_alert_subscription_channel_id_check_id")
        ),
        sa.UniqueConstraint(
            "channel_id", "group_id", name=op.f("uq_alert_subscription_channel_id_group_id")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_alert_subscription_check_id"), name, ["check_id"])
    op.create_index(op.f("ix_alert_subscription_group_id"), name, ["group_id"])


def _add_notifications() -> None:
    name = "alert_notification"
    op.create_table(
        name,
        sa.Column("serial", _COUNTED, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("channel_id", _COUNTED, nullable=False),
        sa.Column("check_id", sa.String(), nullable=True),
        sa.Column("check_type", sa.String(), nullable=True),
        sa.Column("result_id", sa.String(), nullable=True),
        sa.Column("alert_id", sa.String(), nullable=False),
        sa.Column("alert", sa.JSON(), nullable=False),
        sa.Column("is_logged", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_try_ms", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        _refers(name, "account_id", "account"),
        _refers(name, "channel_id", "alert_channel"),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_alert_notification")),
        sa.UniqueConstraint("id", name=op.f("uq_alert_notification_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_alert_notification_account_id_created_ms"), name, ["account_id", "created_ms"]
    )
    op.create_index(
        "ix_alert_notification_open",
        name,
        ["channel_id", "serial"],
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )


def _add_certificate_notices() -> None:
    name = "certificate_notice"
    op.create_table(
        name,
        sa.Column("channel_id", _COUNTED, nullable=False),
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        _refers(name, "channel_id", "alert_channel"),
        _refers(name, "check_id", "check_"),
        sa.PrimaryKeyConstraint("channel_id", "check_id", name=op.f("pk_certificate_notice")),
    )
    op.create_index(op.f("ix_certificate_notice_check_id"), name, ["check_id"])
