"""Maintenance windows."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "maintenance_window",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("starts_ms", sa.BigInteger(), nullable=False),
        sa.Column("ends_ms", sa.BigInteger(), nullable=False),
        sa.Column("rule", sa.String(), nullable=True),
        sa.Column("time_zone", sa.String(), nullable=False),
        sa.Column("over_ms", sa.BigInteger(), nullable=False),
        sa.Column("repeat_interval", sa.Integer(), nullable=True),
        sa.Column("repeat_unit", sa.String(), nullable=True),
        sa.Column("repeat_ends_ms", sa.BigInteger(), nullable=True),
        sa.Column("rrule", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_maintenance_window_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_maintenance_window")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_maintenance_window_account_id_over_ms"),
        "maintenance_window",
        ["account_id", "over_ms"],
        unique=False,
    )
