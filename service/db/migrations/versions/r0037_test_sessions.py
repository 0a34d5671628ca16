"""Sessions of many checks that are not stored."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them, and what each of their checks is in them."""
    op.create_table(
        "test_session",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("checks", sa.Integer(), nullable=False),
        sa.Column("pending", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("stopped_ms", sa.BigInteger()),
        sa.Column("is_recorded", sa.Boolean(), nullable=False),
        sa.Column("suite_id", sa.String()),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_test_session_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_test_session")),
    )
    op.create_index(
        "ix_test_session_recorded",
        "test_session",
        ["account_id", "id"],
        sqlite_where=sa.text("is_recorded"),
        postgresql_where=sa.text("is_recorded"),
    )
    for name in ("test_session_id", "logical_id", "test_run_id", "tested_check_id"):
        op.add_column("session", sa.Column(name, sa.String()))
    op.add_column("session", sa.Column("retry_strategy", sa.JSON(none_as_null=True)))
    op.create_index(
        "ix_session_test_session_id",
        "session",
        ["test_session_id", "id"],
        sqlite_where=sa.text("test_session_id IS NOT NULL"),
        postgresql_where=sa.text("test_session_id IS NOT NULL"),
    )
