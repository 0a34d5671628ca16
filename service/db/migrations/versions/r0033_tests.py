"""Sessions of checks that are not stored."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what their runs need."""
    op.add_column("session", sa.Column("is_test", sa.Boolean()))
    op.add_column("session", sa.Column("spec", sa.LargeBinary()))
    op.add_column("session", sa.Column("group_id", sa.BigInteger()))
    op.add_column("session", sa.Column("bundle_sha256", sa.String()))
    op.create_index(
        "ix_session_bundle_sha256",
        "session",
        ["bundle_sha256"],
        sqlite_where=sa.text("bundle_sha256 IS NOT NULL"),
        postgresql_where=sa.text("bundle_sha256 IS NOT NULL"),
    )
