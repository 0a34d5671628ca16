"""Snapshots of browser checks, beside the bundles of suites."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Tell them from bundles, and name those of a test."""
    op.add_column(
        "code_bundle",
        sa.Column("is_snapshot", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("session", sa.Column("snapshots", sa.String()))
