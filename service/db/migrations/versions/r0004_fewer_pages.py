"""Fewer pages per run: the body of a FINAL result beside its mark, no index of claims."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column, drop an index; bodies that are stored stay where they are."""
    op.add_column("run_final", sa.Column("body", sa.LargeBinary(), nullable=True))
    op.drop_index("ix_job_claim", table_name="job")
