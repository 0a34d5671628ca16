"""Status pages, what they show, and who is notified of it."""

from typing import Final

from sqlalchemy import (
    JSON,
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
)

from service.db.tables.accounts import account
from service.db.tables.conventions import COUNTED, declared

status_service: Final = Table(
    "status_service",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    Index(None, "account_id", "id"),
)

status_page: Final = Table(
    "status_page",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("url", String, nullable=False, unique=True),  # of all accounts: it is a public address
    Column("custom_domain", String, unique=True),  # in lower case; None: none
    Column("is_private", Boolean, nullable=False),
    Column("doc", JSON, nullable=False),  # service.status_pages.model.Look
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    Index(None, "account_id", "id"),
)

status_page_card: Final = Table(
    "status_page_card",
    declared,
    Column("id", String, primary_key=True),
    Column("page_id", ForeignKey(status_page.c.id, ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),  # among those of its page
    Column("name", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    Index(None, "page_id"),
)

status_card_service: Final = Table(
    "status_card_service",
    declared,
    Column("card_id", ForeignKey(status_page_card.c.id, ondelete="CASCADE"), primary_key=True),
    Column("service_id", ForeignKey(status_service.c.id, ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, nullable=False),  # among those of its card
    Index(None, "service_id"),
)

status_page_key: Final = Table(
    "status_page_key",
    declared,
    Column("id", String, primary_key=True),
    Column("page_id", ForeignKey(status_page.c.id, ondelete="CASCADE"), nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),  # service.accounts.keys.Pepper
    Column("masked", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Index(None, "page_id"),
)

status_incident: Final = Table(
    "status_incident",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("severity", String, nullable=False),  # service.incidents.model.Severity
    Column("check_id", String),  # whose alert opened it; None: a person did
    Column("notifies", Boolean, nullable=False),  # whether its check's updates notify subscribers
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    Index(None, "account_id", "id"),
    Index(None, "check_id"),
)

status_incident_service: Final = Table(
    "status_incident_service",
    declared,
    Column("incident_id", ForeignKey(status_incident.c.id, ondelete="CASCADE"), primary_key=True),
    Column("service_id", ForeignKey(status_service.c.id, ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, nullable=False),  # among those of its incident
    Index(None, "service_id"),
)

status_incident_update: Final = Table(
    "status_incident_update",
    declared,
    Column("id", String, primary_key=True),
    Column("incident_id", ForeignKey(status_incident.c.id, ondelete="CASCADE"), nullable=False),
    Column("status", String, nullable=False),  # service.incidents.model.IncidentStatus
    Column("description", String, nullable=False),
    Column("public_ms", BigInteger, nullable=False),  # from when on it is shown
    Column("notifies", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Index(None, "incident_id", "public_ms"),
)

status_subscription: Final = Table(
    "status_subscription",
    declared,
    Column("id", String, primary_key=True),
    Column("page_id", ForeignKey(status_page.c.id, ondelete="CASCADE"), nullable=False),
    Column("address", String, nullable=False),  # as it was written
    Column("address_key", String, nullable=False),  # in lower case
    Column("status", String, nullable=False),  # service.subscriptions.model.SubscriptionStatus
    Column("token_hash", LargeBinary, unique=True),  # of the link; None: none is open
    Column("token_until_ms", BigInteger),  # None likewise
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    UniqueConstraint("page_id", "address_key"),
    Index(None, "token_until_ms"),
)

status_mail: Final = Table(
    # Mails that wait; one that was sent or given up has no row.
    "status_mail",
    declared,
    Column("id", COUNTED, primary_key=True),
    Column(
        "subscription_id", ForeignKey(status_subscription.c.id, ondelete="CASCADE"), nullable=False
    ),
    # None: the mail asks for confirmation.
    Column("update_id", ForeignKey(status_incident_update.c.id, ondelete="CASCADE")),
    Column("salt", LargeBinary, nullable=False),  # of the link to confirm; empty with an update
    Column("attempts", Integer, nullable=False),
    Column("due_ms", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Index(None, "due_ms"),
    Index(None, "subscription_id", "update_id", unique=True),
    Index(None, "update_id"),
    sqlite_autoincrement=True,
)
