"""Results that stand for several due times, and the agents that gave a job back."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column each to results and jobs; rows from before need neither."""
    op.add_column("result", sa.Column("due_times", sa.Integer(), nullable=True))
    op.add_column("job", sa.Column("returned_by", sa.String(), nullable=True))
