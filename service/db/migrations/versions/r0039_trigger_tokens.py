"""Tokens of triggers, which their clients read back."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them; those of older triggers are not known."""
    op.add_column("run_trigger", sa.Column("token", sa.LargeBinary()))
