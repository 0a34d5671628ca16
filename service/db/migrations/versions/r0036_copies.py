"""From when on ClickHouse has results that were removed."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add where that is noted."""
    op.add_column("block_horizon", sa.Column("copied_from_ms", sa.BigInteger()))
