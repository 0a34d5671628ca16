"""An index by which outages are found that began before the time that is asked about."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it."""
    op.create_index(
        "ix_result_outage",
        "result",
        ["check_id", "stopped_ms"],
        sqlite_where=sa.text("due_times IS NOT NULL"),
        postgresql_where=sa.text("due_times IS NOT NULL"),
    )
