"""An index by which it is found who was notified about a check."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it."""
    op.create_index(
        op.f("ix_alert_notification_check_id_channel_id_serial"),
        "alert_notification",
        ["check_id", "channel_id", "serial"],
    )
