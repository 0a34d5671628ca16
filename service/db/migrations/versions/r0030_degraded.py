"""An index by which the degraded runs of a check are found among many passes."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it."""
    op.create_index(
        "ix_result_degraded",
        "result",
        ["check_id", "status", "result_type", "ts"],
        sqlite_where=sa.text("status = 'DEGRADED'"),
        postgresql_where=sa.text("status = 'DEGRADED'"),
    )
