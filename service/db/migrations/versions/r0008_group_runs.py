"""Sessions that are part of a run of a whole group."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns and an index."""
    op.add_column("session", sa.Column("group_run", sa.String(), nullable=True))
    op.add_column("session", sa.Column("turn", sa.Integer(), nullable=True))
    open_ones = sa.text("group_run IS NOT NULL AND stopped_ms IS NULL")
    op.create_index(
        op.f("ix_session_group_run"),
        "session",
        ["group_run", "turn"],
        unique=False,
        sqlite_where=open_ones,
        postgresql_where=open_ones,
    )
