"""Variables and client certificates, whose secrets are encrypted."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two tables."""
    op.create_table(
        "variable",
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("locked", sa.Boolean(), nullable=False),
        sa.Column("secret", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_variable_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("level", "owner_id", "key", name=op.f("pk_variable")),
    )
    op.create_table(
        "client_certificate",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("cert", sa.String(), nullable=False),
        sa.Column("ca", sa.String(), nullable=True),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("passphrase", sa.LargeBinary(), nullable=True),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("serial", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_client_certificate_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_client_certificate")),
    )
    op.create_index(
        op.f("ix_client_certificate_account_id_serial"),
        "client_certificate",
        ["account_id", "serial"],
        unique=True,
    )
