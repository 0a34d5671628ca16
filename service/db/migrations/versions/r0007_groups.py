"""Check groups, and what checks have from theirs."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add two tables, two columns and an index."""
    op.create_table(
        "check_group",
        sa.Column("id", _COUNTED, nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("form", sa.SmallInteger(), nullable=False),
        sa.Column("doc", sa.JSON(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_check_group_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_check_group")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_check_group_account_id_id"), "check_group", ["account_id", "id"], unique=False
    )
    op.create_table(
        "check_group_tag",
        sa.Column("group_id", _COUNTED, nullable=False),
        sa.Column("tag", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["check_group.id"],
            name=op.f("fk_check_group_tag_group_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("group_id", "tag", name=op.f("pk_check_group_tag")),
    )
    _add_to_checks()


def _add_to_checks() -> None:
    op.add_column("check_", sa.Column("group_id", sa.BigInteger(), nullable=True))
    op.add_column("check_", sa.Column("applied", sa.JSON(none_as_null=True), nullable=True))
    in_a_group = sa.text("group_id IS NOT NULL")
    op.create_index(
        op.f("ix_check__group_id"),
        "check_",
        ["group_id"],
        unique=False,
        sqlite_where=in_a_group,
        postgresql_where=in_a_group,
    )
