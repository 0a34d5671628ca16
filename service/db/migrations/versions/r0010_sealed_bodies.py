"""Secrets of checks, groups and locations, encrypted.

A migration has no key: it marks the rows that may hold a secret, and the start that follows seals
what does, as it seals anew what an older key has sealed.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_CLEAR = b"\0"


def upgrade() -> None:
    """Add three columns, and mark what is still in clear."""
    op.add_column("check_", sa.Column("secrets", sa.LargeBinary(), nullable=True))
    op.add_column("check_group", sa.Column("secrets", sa.LargeBinary(), nullable=True))
    op.add_column(
        "private_location", sa.Column("sealed_proxy_url", sa.LargeBinary(), nullable=True)
    )
    for statement in (
        "UPDATE check_ SET secrets = :clear WHERE type IN ('API', 'URL')",
        "UPDATE check_group SET secrets = :clear",
        "UPDATE private_location SET sealed_proxy_url = :clear WHERE proxy_url LIKE '%@%'",
    ):
        op.execute(sa.text(statement).bindparams(sa.bindparam("clear", _CLEAR, sa.LargeBinary())))
