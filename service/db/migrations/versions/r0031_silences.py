"""Alerts say why nobody was notified."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns."""
    op.add_column("check_alert", sa.Column("silence", sa.String(), nullable=True))
    op.add_column("check_alert", sa.Column("maintenance_window", sa.String(), nullable=True))
