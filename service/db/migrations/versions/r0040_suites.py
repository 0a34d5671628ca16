"""Test sessions by the suite that their client named."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add an index, by which those that a client follows are found."""
    op.create_index(
        "ix_test_session_suite_id",
        "test_session",
        ["suite_id"],
        sqlite_where=sa.text("suite_id IS NOT NULL"),
        postgresql_where=sa.text("suite_id IS NOT NULL"),
    )
