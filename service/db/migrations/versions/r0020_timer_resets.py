"""When the timer of a heartbeat was reset."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; of resets from before, the time is not known."""
    op.add_column("heartbeat", sa.Column("timer_reset_ms", sa.BigInteger(), nullable=True))
