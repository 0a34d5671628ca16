"""Browsers that are signed in, links that sign one in, and how often it was tried."""

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, LargeBinary, Table

from service.db.tables.accounts import api_key
from service.db.tables.conventions import declared
from service.db.tables.users import account_user

browser_session: Final = Table(
    "browser_session",
    declared,
    Column("hash", LargeBinary, primary_key=True),  # service.accounts.keys.Pepper
    Column("key_id", ForeignKey(api_key.c.id, ondelete="CASCADE")),  # None: a user's
    Column("user_id", ForeignKey(account_user.c.id, ondelete="CASCADE")),  # None: an API key's
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),  # moves while it is used
    Index(None, "expires_ms"),
    Index(None, "key_id"),
    Index(None, "user_id"),
)

sign_in_link: Final = Table(
    "sign_in_link",
    declared,
    Column("hash", LargeBinary, primary_key=True),  # service.accounts.keys.Pepper
    Column("key_id", ForeignKey(api_key.c.id, ondelete="CASCADE")),  # None: a user's
    Column("user_id", ForeignKey(account_user.c.id, ondelete="CASCADE")),  # None: an API key's
    Column("sets_password", Boolean, nullable=False),  # whether a password is chosen with it
    Column("expires_ms", BigInteger, nullable=False),
    Index(None, "expires_ms"),
    Index(None, "key_id"),
    Index(None, "user_id"),
)

sign_in_limit: Final = Table(
    "sign_in_limit",
    declared,
    Column("hash", LargeBinary, primary_key=True),  # of a limit and of whom it counts
    Column("until_ms", BigInteger, nullable=False),  # as long as nothing came it is free from then
    Index(None, "until_ms"),
)
