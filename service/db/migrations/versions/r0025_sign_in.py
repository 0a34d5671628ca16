"""Browsers that are signed in, and links that sign one in."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them."""
    op.create_table(
        "browser_session",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"],
            ["api_key.id"],
            name=op.f("fk_browser_session_key_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_browser_session")),
    )
    op.create_index(op.f("ix_browser_session_expires_ms"), "browser_session", ["expires_ms"])
    op.create_index(op.f("ix_browser_session_key_id"), "browser_session", ["key_id"])
    op.create_table(
        "sign_in_link",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"],
            ["api_key.id"],
            name=op.f("fk_sign_in_link_key_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sign_in_link")),
    )
    op.create_index(op.f("ix_sign_in_link_expires_ms"), "sign_in_link", ["expires_ms"])
    op.create_index(op.f("ix_sign_in_link_key_id"), "sign_in_link", ["key_id"])
