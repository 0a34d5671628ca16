"""How often a channel's receiver took nothing, and how often a notification was refused."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns."""
    for table, column in (("alert_channel", "failures"), ("alert_notification", "refusals")):
        op.add_column(table, sa.Column(column, sa.Integer(), nullable=False, server_default="0"))
