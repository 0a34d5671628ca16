"""What the variables of a webhook's template mean for an alert."""

from collections.abc import Mapping
from typing import Any, Final

from service.alert_channels.model import AnyAlert
from service.alert_channels.sending.message import build_title, result_link, spell_time
from service.alerting.model import Alert, LocationAlert

_EMPTY: Final[Mapping[str, Any]] = dict.fromkeys(
    (
        "ALERT_TITLE",
        "ALERT_TYPE",
        "CHECK_ID",
        "CHECK_NAME",
        "CHECK_DESCRIPTION",
        "CHECK_TYPE",
        "CHECK_RESULT_ID",
        "CHECK_ERROR_MESSAGE",
        "GROUP_NAME",
        "REGION",
        "RUN_LOCATION",
        "RESPONSE_TIME",
        "RESULT_LINK",
        "STARTED_AT",
        "API_CHECK_RESPONSE_STATUS_CODE",
        "API_CHECK_RESPONSE_STATUS_TEXT",
        "SSL_CHECK_DOMAIN",
        "SSL_DAYS_REMAINING",
        "AI_ANALYSIS_CLASSIFICATION",
        "AI_ANALYSIS_CODE_FIX",
        "AI_ANALYSIS_LINK",
        "AI_ANALYSIS_ROOT_CAUSE",
        "AI_ANALYSIS_USER_IMPACT",
    ),
    "",
)
LOCATION_DOWN: Final = "LOCATION_DOWN"
LOCATION_RECOVERY: Final = "LOCATION_RECOVERY"


def template_values(alert: AnyAlert, *, base_url: str | None) -> dict[str, Any]:
    """The variables of an alert by name; what the alert does not have is empty."""
    found = {**_EMPTY, "TAGS": [], "IS_REMINDER": False, "REMINDER_SEQUENCE": 0}
    if isinstance(alert, LocationAlert):
        return {**found, **_of_location(alert)}
    return {**found, **_of_check(alert, base_url)}


def _of_check(alert: Alert, base_url: str | None) -> dict[str, Any]:
    time_ms = alert.response_time_ms
    found: dict[str, Any] = {
        "ALERT_TITLE": build_title(alert),
        "ALERT_TYPE": alert.alert_type.value,
        "CHECK_ID": alert.check_id,
        "CHECK_NAME": alert.check_name,
        "CHECK_DESCRIPTION": alert.check_description or "",
        "CHECK_TYPE": alert.check_type.value,
        "CHECK_RESULT_ID": alert.result_id or "",
        "CHECK_ERROR_MESSAGE": alert.error or "",
        "GROUP_NAME": alert.group_name or "",
        "REGION": alert.location,
        "RUN_LOCATION": alert.location,
        "RESPONSE_TIME": "" if time_ms is None else round(time_ms),
        "RESULT_LINK": result_link(alert, base_url) if base_url and not alert.check_deleted else "",
        "STARTED_AT": spell_time(alert.started_ms),
        "TAGS": list(alert.tags),
        "API_CHECK_RESPONSE_STATUS_CODE": alert.status_code or "",
        "API_CHECK_RESPONSE_STATUS_TEXT": alert.status_text or "",
        "IS_REMINDER": alert.reminder > 0,
        "REMINDER_SEQUENCE": alert.reminder,
    }
    if alert.certificate is not None:
        found["SSL_CHECK_DOMAIN"] = alert.certificate.domain
        found["SSL_DAYS_REMAINING"] = int(alert.certificate.days_remaining)
    return found


def _of_location(alert: LocationAlert) -> dict[str, Any]:
    return {
        "ALERT_TITLE": build_title(alert),
        "ALERT_TYPE": LOCATION_RECOVERY if alert.is_recovery else LOCATION_DOWN,
        "REGION": alert.location,
        "RUN_LOCATION": alert.location_name,
        "STARTED_AT": spell_time(alert.since_ms),
    }
