"""Who asked for a deployment."""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("deployment", sa.Column("key_id", sa.String()))
    op.add_column("deployment", sa.Column("user_id", sa.String()))
