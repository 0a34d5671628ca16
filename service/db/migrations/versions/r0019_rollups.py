"""Packed hours of results, and their roll-ups."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables, and have the results that are there rolled up."""
    op.create_table(
        "hour_block",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("hour_ms", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.Column("rest", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("check_id", "hour_ms", name=op.f("pk_hour_block")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rollup",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("hours", sa.SmallInteger(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("check_id", "hours", "start_ms", name=op.f("pk_rollup")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rollup_dirty",
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("hours", sa.SmallInteger(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("check_id", "hours", "start_ms", name=op.f("pk_rollup_dirty")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_rollup_dirty_hours_due_ms"), "rollup_dirty", ["hours", "due_ms"])
    op.create_table(
        "block_horizon",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("before_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_block_horizon")),
    )
    op.execute(
        "INSERT INTO rollup_dirty (check_id, hours, start_ms, due_ms)"
        " SELECT DISTINCT check_id, 1, ts - ts % 3600000, ts - ts % 3600000 + 3600000 FROM result"
        " WHERE result_type = 'FINAL' AND status NOT IN ('MISSED', 'ERROR')"
    )
