"""Roles and the pepper of keys, the audit log, and answers that are given again."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column and three tables; the next start stores the keys anew."""
    role = sa.Column("role", sa.String(), nullable=False, server_default="READ_WRITE")
    op.add_column("api_key", role)
    op.create_table(
        "key_pepper",
        sa.Column("mark", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("mark", name=op.f("pk_key_pepper")),
    )
    _create_audit()
    _create_idempotency()


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=True),
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("resource", sa.String(), nullable=False),
        sa.Column("resource_id", sa.String(), nullable=True),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("address", sa.String(), nullable=True),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_audit_account_id_id"), "audit", ["account_id", "id"], unique=False)
    op.create_index(op.f("ix_audit_at_ms"), "audit", ["at_ms"], unique=False)


def _create_idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("request_hash", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_idempotency_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("account_id", "key_hash", name=op.f("pk_idempotency")),
    )
    op.create_index(
        op.f("ix_idempotency_account_id_created_ms"),
        "idempotency",
        ["account_id", "created_ms"],
        unique=False,
    )
    op.create_index(op.f("ix_idempotency_created_ms"), "idempotency", ["created_ms"], unique=False)
