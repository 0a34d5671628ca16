"""Whether a client prints the logs of a test session's runs."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("test_session", sa.Column("streams_logs", sa.Boolean()))
