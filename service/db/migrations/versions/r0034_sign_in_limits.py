"""Limits of attempts to sign in, which all replicas of the service share."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add their table."""
    op.create_table(
        "sign_in_limit",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sign_in_limit")),
    )
    op.create_index(op.f("ix_sign_in_limit_until_ms"), "sign_in_limit", ["until_ms"])
