"""Alert channels, who is subscribed to them, and what is on its way through them."""

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
    text,
)

from service.db.tables.accounts import account
from service.db.tables.checks import check_, check_group
from service.db.tables.conventions import COUNTED, declared

alert_channel: Final = Table(
    "alert_channel",
    declared,
    Column("id", COUNTED, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("type", String, nullable=False),  # service.alert_channels.model.ChannelType
    Column("config", JSON, nullable=False),  # as keys are shown it that only read
    Column("secrets", LargeBinary, nullable=False),  # the whole config, sealed by service.vault
    Column("send_recovery", Boolean, nullable=False),
    Column("send_failure", Boolean, nullable=False),
    Column("send_degraded", Boolean, nullable=False),
    Column("ssl_expiry", Boolean, nullable=False),
    Column("ssl_expiry_threshold", Integer, nullable=False),  # days
    Column("auto_subscribe", Boolean, nullable=False),
    Column("paused_reason", String),  # None: it is not paused
    Column("paused_ms", BigInteger),  # since when; None: as above
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    Column("failures", Integer, nullable=False, server_default="0"),  # in a row, of its receiver
    Index(None, "account_id", "id"),
    sqlite_autoincrement=True,  # subscriptions name channels by number
)

alert_subscription: Final = Table(
    # Either of a check or of a group.
    "alert_subscription",
    declared,
    Column("id", COUNTED, primary_key=True),
    Column("channel_id", ForeignKey(alert_channel.c.id, ondelete="CASCADE"), nullable=False),
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE")),
    Column("group_id", ForeignKey(check_group.c.id, ondelete="CASCADE")),
    Column("activated", Boolean, nullable=False),
    UniqueConstraint("channel_id", "check_id"),
    UniqueConstraint("channel_id", "group_id"),
    Index(None, "check_id"),
    Index(None, "group_id"),
    sqlite_autoincrement=True,
)

alert_notification: Final = Table(
    "alert_notification",
    declared,
    Column("serial", COUNTED, primary_key=True),  # a channel's are sent in this order
    Column("id", String, nullable=False, unique=True),  # receivers see it, at each try the same
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("channel_id", ForeignKey(alert_channel.c.id, ondelete="CASCADE"), nullable=False),
    Column("check_id", String),  # None: it is about a location
    Column("check_type", String),  # None: as above
    Column("result_id", String),  # None: no result caused it
    Column("alert_id", String, nullable=False),
    Column("alert", JSON, nullable=False),  # a service.alerting.model.Alert, or a LocationAlert
    Column(
        "is_logged", Boolean, nullable=False
    ),  # whether lists show it; certificates are left out
    Column("status", String, nullable=False),  # service.alert_channels.model.NotificationStatus
    Column("attempts", Integer, nullable=False),
    Column("next_try_ms", BigInteger, nullable=False),
    Column("outcome", String),  # of the last try, in one sentence; None: not tried yet
    Column("created_ms", BigInteger, nullable=False),
    Column("refusals", Integer, nullable=False, server_default="0"),  # in a row
    Index(None, "account_id", "created_ms"),
    Index(None, "check_id", "channel_id", "serial"),
    Index(
        "ix_alert_notification_open",
        "channel_id",
        "serial",
        sqlite_where=text("status = 'IN_PROGRESS'"),
        postgresql_where=text("status = 'IN_PROGRESS'"),
    ),
    sqlite_autoincrement=True,
)

certificate_notice: Final = Table(
    # A channel has been notified that a certificate expires: it is, once of each.
    "certificate_notice",
    declared,
    Column("channel_id", ForeignKey(alert_channel.c.id, ondelete="CASCADE"), primary_key=True),
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), primary_key=True),
    Column("expires_ms", BigInteger, nullable=False),  # of the certificate
    Index(None, "check_id"),
)
