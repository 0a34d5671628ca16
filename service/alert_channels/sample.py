"""The alert that a test of a channel sends."""

from typing import Final

from contract.checks import CheckType
from service.alerting.model import SAMPLE_PREFIX, Alert, AlertType, Mismatch
from service.db.ids import new_id

_MINUTE_MS: Final = 60_000


def build_sample(account_id: str, now_ms: int) -> Alert:
    """An alert about a check that does not exist, and says that."""
    alert_id = new_id(now_ms)
    return Alert(
        id=alert_id,
        account_id=account_id,
        check_id=f"{SAMPLE_PREFIX}{alert_id}",
        check_name="Sample check of Picket",
        check_type=CheckType.API,
        check_description="This is a test of the alert channel. Nothing has failed.",
        tags=("sample",),
        group_id=None,
        group_name=None,
        alert_type=AlertType.FAILURE,
        location="sample",
        result_id=None,
        response_time_ms=123.0,
        error="This is a test: STATUS_CODE should equal 200, but it is 503.",
        mismatch=Mismatch(
            source="STATUS_CODE", property="", comparison="EQUALS", expected="200", actual="503"
        ),
        status_code="503",
        status_text="Service Unavailable",
        started_ms=now_ms - _MINUTE_MS,
        created_ms=now_ms,
        failing_locations=("sample",),
        passing_locations=(),
        last_pass_ms=now_ms - 2 * _MINUTE_MS,
    )
