"""People who sign in to the pages."""

from typing import Final

from sqlalchemy import BigInteger, Column, ForeignKey, Index, String, Table

from service.db.tables.accounts import account
from service.db.tables.conventions import declared

account_user: Final = Table(
    "account_user",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("email", String, nullable=False),  # as it was written
    Column("email_key", String, nullable=False, unique=True),  # service.users.rules.fold_email
    Column("name", String, nullable=False),
    Column("role", String, nullable=False),  # service.accounts Role
    Column("password_hash", String),  # argon2id; None: no password was chosen
    Column("issuer", String),  # of OpenID Connect; None: never signed in by it
    Column("subject", String),  # the issuer's own name of the user; None: as above
    Column("created_ms", BigInteger, nullable=False),
    Column("disabled_ms", BigInteger),  # None: may sign in
    Column("signed_in_ms", BigInteger),  # None: never
    Index(None, "account_id"),
    Index(None, "issuer", "subject", unique=True),
)
