"""Alerts say whether their check was deleted before it passed again."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column."""
    op.add_column(
        "check_alert",
        sa.Column("check_deleted", sa.Boolean(), nullable=False, server_default="0"),
    )
