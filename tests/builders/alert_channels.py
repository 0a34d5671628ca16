"""Alert channels as a person sets them up, and alerts that go through them."""

from dataclasses import replace
from typing import Any, Final

from contract.checks import CheckType
from service.alerting.model import Alert, AlertType, Certificate, LocationAlert, Mismatch
from tests.fakes.clock import START_MS
from tests.servers.public_api import ApiUser

CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "EMAIL": {"address": "ops@example.com"},
    "SLACK": {"url": "https://hooks.slack.test/services/s3cr3t", "channel": "#ops"},
    "WEBHOOK": {
        "name": "Hook",
        "url": "https://hook.test/?key=s3cr3t",
        "webhookType": None,
        "method": "PUT",
        "template": '{"title": {{{json ALERT_TITLE}}}}',
        "headers": [{"key": "x-token", "value": "s3cr3t", "locked": True}],
        "queryParameters": [{"key": "k", "value": "s3cr3t", "locked": False}],
        "webhookSecret": "s3cr3t",
    },
    "SMS": {"number": "+4930123456", "name": "Ann"},
    "CALL": {"number": "+4930123456", "name": "Ann"},
    "PAGERDUTY": {"serviceKey": "s3cr3t", "account": "acme", "serviceName": "Shop"},
    "OPSGENIE": {"name": "Ops", "apiKey": "s3cr3t", "region": "EU", "priority": "P1"},
}
"""One whole config of each kind."""


def channel_body(kind: str = "EMAIL", *, config: Any = None, **fields: Any) -> dict[str, Any]:
    """The body of a channel; `config` adds to that of its kind."""
    return {"type": kind, "config": {**CONFIGS[kind], **(config or {})}, **fields}


async def a_channel(user: ApiUser, kind: str = "EMAIL", **fields: Any) -> int:
    """A new channel's id."""
    answer = await user.post("/v1/alert-channels", channel_body(kind, **fields))
    assert answer.status == 201, answer.body
    return int(answer.body["id"])


_ALERT: Final = Alert(
    id="alert-1",
    account_id="account",
    check_id="check-1",
    check_name="Orders",
    check_type=CheckType.API,
    check_description="Takes orders.",
    tags=("team:shop", "eu"),
    group_id=None,
    group_name=None,
    alert_type=AlertType.FAILURE,
    location="cellar",
    result_id="result-1",
    response_time_ms=123.4,
    error="The status code was 503.",
    mismatch=Mismatch(
        source="STATUS_CODE", property="", comparison="EQUALS", expected="200", actual="503"
    ),
    status_code="503",
    status_text="Service Unavailable",
    started_ms=START_MS,
    created_ms=START_MS + 60_000,
    failing_locations=("cellar",),
    passing_locations=("attic",),
    last_pass_ms=START_MS - 60_000,
)


def an_alert(alert_type: AlertType = AlertType.FAILURE, **changes: Any) -> Alert:
    """An alert of a check at the location `cellar`."""
    return replace(_ALERT, alert_type=alert_type, **changes)


def a_certificate_alert(days: float, **changes: Any) -> Alert:
    """An alert about a certificate that expires in so many days."""
    certificate = Certificate(domain="shop.test", subject="CN=shop.test", days_remaining=days)
    return an_alert(AlertType.SSL, certificate=certificate, mismatch=None, error=None, **changes)


def a_location_alert(**changes: Any) -> LocationAlert:
    """A location that has lost its last agent."""
    fields: dict[str, Any] = {
        "id": "alert-2",
        "account_id": "account",
        "location": "cellar",
        "location_name": "Cellar",
        "is_recovery": False,
        "since_ms": START_MS,
        "created_ms": START_MS + 60_000,
        "check_count": 3,
        "check_names": ("Orders", "Basket"),
    }
    return LocationAlert(**{**fields, **changes})
