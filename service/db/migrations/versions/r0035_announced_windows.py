"""Which maintenance windows status pages announce."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; windows that are there stay unannounced."""
    op.add_column(
        "maintenance_window",
        sa.Column("is_announced", sa.Boolean(), nullable=False, server_default="0"),
    )
