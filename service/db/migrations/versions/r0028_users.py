"""People who sign in to the pages; whoever is signed in has to sign in again."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them, and make sessions and links anew: each is of an API key or of a user."""
    op.create_table(
        "account_user",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("email_key", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("issuer", sa.String(), nullable=True),
        sa.Column("subject", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("disabled_ms", sa.BigInteger(), nullable=True),
        sa.Column("signed_in_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_account_user_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account_user")),
        sa.UniqueConstraint("email_key", name=op.f("uq_account_user_email_key")),
    )
    op.create_index(op.f("ix_account_user_account_id"), "account_user", ["account_id"])
    op.create_index(
        op.f("ix_account_user_issuer_subject"), "account_user", ["issuer", "subject"], unique=True
    )
    op.drop_table("browser_session")
    op.drop_table("sign_in_link")
    _create("browser_session", sa.Column("created_ms", sa.BigInteger(), nullable=False))
    _create("sign_in_link", sa.Column("sets_password", sa.Boolean(), nullable=False))
    op.add_column("audit", sa.Column("user_id", sa.String(), nullable=True))
    op.add_column("api_key", sa.Column("used_ms", sa.BigInteger(), nullable=True))


def _create(table: str, own: sa.Column[object]) -> None:
    op.create_table(
        table,
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=True),
        sa.Column("user_id", sa.String(), nullable=True),
        own,
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_key.id"], name=op.f(f"fk_{table}_key_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["account_user.id"], name=op.f(f"fk_{table}_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("hash", name=op.f(f"pk_{table}")),
    )
    for column in ("expires_ms", "key_id", "user_id"):
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])
