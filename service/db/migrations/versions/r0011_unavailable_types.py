"""Why an agent cannot run some types."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; agents fill it with their next hello."""
    op.add_column("agent", sa.Column("unavailable", sa.JSON(), nullable=True))
