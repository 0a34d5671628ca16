"""A version of each mark of what is to be rolled up."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column."""
    version = sa.Column("version", sa.BigInteger(), nullable=False, server_default="0")
    op.add_column("rollup_dirty", version)
