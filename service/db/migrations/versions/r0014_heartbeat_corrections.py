"""Failed results of heartbeats that turned out wrong."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table; results from before are as they were."""
    op.create_table(
        "heartbeat_correction",
        sa.Column("result_id", sa.String(), nullable=False),
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("result_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["check_id"],
            ["check_.id"],
            name=op.f("fk_heartbeat_correction_check_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("result_id", name=op.f("pk_heartbeat_correction")),
    )
    op.create_index(
        op.f("ix_heartbeat_correction_check_id_result_ms"),
        "heartbeat_correction",
        ["check_id", "result_ms"],
        unique=False,
    )
