"""Browsers that are signed in, and links that sign one in."""

from typing import Final

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table

from service.db.tables.accounts import api_key
from service.db.tables.conventions import declared

browser_session: Final = Table(
    "browser_session",
    declared,
    Column("hash", LargeBinary, primary_key=True),  # service.accounts.keys.Pepper
    Column("key_id", ForeignKey(api_key.c.id, ondelete="CASCADE"), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),  # moves while it is used
    Index(None, "expires_ms"),
    Index(None, "key_id"),
)

sign_in_link: Final = Table(
    "sign_in_link",
    declared,
    Column("hash", LargeBinary, primary_key=True),  # service.accounts.keys.Pepper
    Column("key_id", ForeignKey(api_key.c.id, ondelete="CASCADE"), nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Index(None, "expires_ms"),
    Index(None, "key_id"),
)
