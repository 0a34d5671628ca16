"""An index by which old late results are found."""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it."""
    op.create_index(op.f("ix_late_result_received_ms"), "late_result", ["received_ms"])
