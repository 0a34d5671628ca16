"""Results of a day have a partition of their own on PostgreSQL; SQLite stays as it is."""

from alembic import op

from service.db.partitions import days

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None
# No statement has named the key of `run_final` that goes, the number of the run by itself.
unused_since = "0.0.0"


def upgrade() -> None:
    """Make partitioned tables; rows are not copied, they stay in a partition for all before."""
    days.partition(op.get_bind())
