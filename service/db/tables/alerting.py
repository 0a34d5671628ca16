"""What alerting knows about checks, the alerts that it has made, and when nobody is alerted."""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    text,
)

from service.db.tables.accounts import account
from service.db.tables.checks import check_
from service.db.tables.conventions import COUNTED, declared

alert_state: Final = Table(
    # No row: the check passes, and nothing is awaited. Results of most checks write nothing here.
    "alert_state",
    declared,
    Column("check_id", ForeignKey(check_.c.id, ondelete="CASCADE"), primary_key=True),
    Column("level", String, nullable=False),  # service.alerting.model.Level
    Column("since_ms", BigInteger, nullable=False),
    Column("began_ms", BigInteger, nullable=False),
    Column("runs", Integer, nullable=False),
    Column("recorded", String, nullable=False),  # Level
    Column("told", String, key="notified", nullable=False),  # Level
    Column("noticed_ms", BigInteger, nullable=False),
    Column("reminders", Integer, nullable=False),
    Column("timer_ms", BigInteger),  # None: results alone decide
    Column("result_id", String),  # the newest result that is no pass; None: there was none
    Column("alert_id", String),  # the first alert since the check passed; None: there was none
    Column("incident_id", String),  # what that alert opened; None: nothing
    Column("round_ms", BigInteger),  # due time of the newest parallel runs that count; None: none
    Column("open_round_ms", BigInteger),  # of those that are not complete; None: none
    Index(
        None,
        "timer_ms",
        sqlite_where=text("timer_ms IS NOT NULL"),
        postgresql_where=text("timer_ms IS NOT NULL"),
    ),
)

check_alert: Final = Table(
    # Outlasts its check; no foreign key to it.
    "check_alert",
    declared,
    Column("serial", COUNTED, primary_key=True),  # the order in which alerts were made
    Column("id", String, nullable=False, unique=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("check_id", String, nullable=False),
    Column("check_name", String, nullable=False),
    Column("check_type", String, nullable=False),  # contract.checks.CheckType
    Column("check_description", String),  # None: it has none
    Column("tags", JSON, nullable=False),
    Column("group_id", BigInteger),  # None: the check is in no group
    Column("group_name", String),  # None: as above
    Column("alert_type", String, nullable=False),  # service.alerting.model.AlertType
    Column("location", String, nullable=False),  # slug; empty: not known any more
    Column("result_id", String),  # None: no result is stored any more
    Column("response_time_ms", Float),  # None: nothing was measured
    Column("error", String),  # None: nothing failed
    Column("mismatch", JSON(none_as_null=True)),  # None: no assertion failed
    Column("status_code", String),  # None: there was no answer
    Column("status_text", String),  # None: as above
    Column("started_ms", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("failing_locations", JSON, nullable=False),
    Column("passing_locations", JSON, nullable=False),
    Column("last_pass_ms", BigInteger),  # None: it never passed, or the result is gone
    Column("reminder", Integer, nullable=False),  # 0: none
    Column("certificate", JSON(none_as_null=True)),  # None: it is not about one
    Column("artifacts", JSON, nullable=False),
    Column("notified", Boolean, nullable=False),  # False: the check was muted or in maintenance
    Column("check_deleted", Boolean, nullable=False, server_default="0"),  # before it passed again
    Column("silence", String),  # service.alerting.model.Silence; None: a channel was notified
    Column("maintenance_window", String, key="window"),  # its name; None: none kept the alert back
    Index(None, "account_id", "created_ms"),
    Index(None, "check_id", "created_ms"),
)

location_alert: Final = Table(
    # Outlasts its location; no foreign key to it.
    "location_alert",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("location", String, nullable=False),  # slug
    Column("location_name", String, nullable=False),
    Column("is_recovery", Boolean, nullable=False),
    Column("since_ms", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("check_count", Integer, nullable=False),
    Column("check_names", JSON, nullable=False),  # the first few
    Index(None, "account_id", "created_ms"),
)

maintenance_window: Final = Table(
    "maintenance_window",
    declared,
    Column("id", COUNTED, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("tags", JSON, nullable=False),  # of the checks that it applies to; []: all
    Column("starts_ms", BigInteger, nullable=False),
    Column("ends_ms", BigInteger, nullable=False),  # of its first occurrence, exclusive
    Column("rule", String),  # by which it repeats, of RFC 5545; None: it does not
    Column("time_zone", String, nullable=False),
    Column("over_ms", BigInteger, nullable=False),  # when its last occurrence ends
    Column("repeat_interval", Integer),  # this and what follows: as it was sent
    Column("repeat_unit", String),  # service.maintenance.model.RepeatUnit
    Column("repeat_ends_ms", BigInteger),
    Column("rrule", String),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    Column("is_announced", Boolean, nullable=False, server_default="0"),  # on status pages
    Index(None, "account_id", "over_ms"),
    sqlite_autoincrement=True,
)
