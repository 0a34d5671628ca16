"""What checks are sent out with: variables, snippets, certificates and bundles."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
    false,
)

from service.db.tables.accounts import account
from service.db.tables.conventions import COUNTED, declared

snippet: Final = Table(
    "snippet",
    declared,
    Column("id", COUNTED, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),  # of the file that scripts import, without .js
    Column("script", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    UniqueConstraint("account_id", "name"),
    sqlite_autoincrement=True,  # checks name snippets by number
)

variable: Final = Table(
    "variable",
    declared,
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("level", String, primary_key=True),  # service.variables.model.Level
    Column("owner_id", String, primary_key=True),  # of the account, group or check
    Column("key", String, primary_key=True),
    Column("position", Integer, nullable=False),  # among those of its owner, as they were sent
    Column("value", LargeBinary, nullable=False),  # sealed by service.vault
    Column("locked", Boolean, nullable=False),
    Column("secret", Boolean, nullable=False),
)

client_certificate: Final = Table(
    "client_certificate",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("host", String, nullable=False),  # or a glob
    Column("cert", String, nullable=False),  # PEM
    Column("ca", String),  # PEM; None: the usual roots
    Column("key", LargeBinary, nullable=False),  # sealed by service.vault
    Column("passphrase", LargeBinary),  # sealed likewise; None: the key is not encrypted
    Column("expires_ms", BigInteger, nullable=False),  # of the certificate
    Column("created_ms", BigInteger, nullable=False),
    Column("serial", Integer, nullable=False),  # the highest is the newest, whatever clocks say
    Index(None, "account_id", "serial", unique=True),
)

code_bundle: Final = Table(
    # The tar.gz of a Playwright suite, or a snapshot; its bytes are a file in the data directory.
    "code_bundle",
    declared,
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), primary_key=True),
    Column("sha256", String, primary_key=True),
    Column("size_bytes", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),  # when it was sent last
    # Whether browser checks compare it with what they see; suites do not run it then.
    Column("is_snapshot", Boolean, nullable=False, server_default=false()),
)
