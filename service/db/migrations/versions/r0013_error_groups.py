"""Failures of checks, those that are alike once."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table; failures from before are in no group."""
    op.create_table(
        "error_group",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("error_hash", sa.String(), nullable=False),
        sa.Column("raw", sa.String(), nullable=False),
        sa.Column("cleaned", sa.String(), nullable=False),
        sa.Column("first_seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("archived_until_next", sa.Boolean(), nullable=False),
        sa.Column("archived_forever", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_error_group_account_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["check_id"], ["check_.id"], name=op.f("fk_error_group_check_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_error_group")),
        sa.UniqueConstraint(
            "check_id", "error_hash", name=op.f("uq_error_group_check_id_error_hash")
        ),
    )
    op.create_index(
        op.f("ix_error_group_account_id_last_seen_ms"),
        "error_group",
        ["account_id", "last_seen_ms"],
        unique=False,
    )
