"""An index by which runs that nobody made are counted per location."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it."""
    op.create_index(
        "ix_result_cause",
        "result",
        ["location", "ts"],
        sqlite_where=sa.text("cause IS NOT NULL"),
        postgresql_where=sa.text("cause IS NOT NULL"),
    )
