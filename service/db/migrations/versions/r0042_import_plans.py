"""Plans to take over into projects what accounts have."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "import_plan",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("applied_ms", sa.BigInteger()),
        sa.Column("committed_ms", sa.BigInteger()),
        sa.Column("resources", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_import_plan_account_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["project.id"],
            name=op.f("fk_import_plan_project_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_import_plan")),
    )
    op.create_index(op.f("ix_import_plan_account_id_id"), "import_plan", ["account_id", "id"])
    op.create_index(op.f("ix_import_plan_project_id"), "import_plan", ["project_id"])
