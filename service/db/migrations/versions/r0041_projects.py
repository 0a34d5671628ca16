"""Projects, and what is deployed from code."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "project",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("logical_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("repo_url", sa.String()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_project_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint(
            "account_id", "logical_id", name=op.f("uq_project_account_id_logical_id")
        ),
    )
    op.create_table(
        "project_resource",
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("logical_id", sa.String(), nullable=False),
        sa.Column("physical_id", sa.String(), nullable=False),
        sa.Column("source_file", sa.String()),
        sa.Column("digest", sa.LargeBinary()),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["project.id"],
            name=op.f("fk_project_resource_project_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "project_id", "type", "logical_id", name=op.f("pk_project_resource")
        ),
    )
    op.create_index(
        op.f("ix_project_resource_type_physical_id"), "project_resource", ["type", "physical_id"]
    )
    _create_deployment()


def _create_deployment() -> None:
    op.create_table(
        "deployment",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("logical_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("progress", sa.Integer(), nullable=False),
        sa.Column("error", sa.JSON()),
        sa.Column("result", sa.JSON()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger()),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.Column("cancel_ms", sa.BigInteger()),
        sa.Column("lease_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_deployment_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deployment")),
    )
    op.create_index(
        op.f("ix_deployment_account_id_logical_id_id"),
        "deployment",
        ["account_id", "logical_id", "id"],
    )
    op.create_index(op.f("ix_deployment_created_ms"), "deployment", ["created_ms"])
