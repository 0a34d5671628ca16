"""How locations fare: outages, samples of their queues, and the key that each agent came with."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two tables and a column."""
    op.add_column("agent", sa.Column("key_id", sa.String(), nullable=True))
    op.create_table(
        "location_outage",
        sa.Column("location_id", sa.String(), nullable=False),
        sa.Column("since_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["location_id"],
            ["private_location.id"],
            name=op.f("fk_location_outage_location_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("location_id", name=op.f("pk_location_outage")),
    )
    op.create_table(
        "location_sample",
        sa.Column("location_id", sa.String(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("queue_size", sa.Integer(), nullable=False),
        sa.Column("oldest_wait_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["location_id"],
            ["private_location.id"],
            name=op.f("fk_location_sample_location_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("location_id", "at_ms", name=op.f("pk_location_sample")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_location_sample_at_ms"), "location_sample", ["at_ms"], unique=False)
