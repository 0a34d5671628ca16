"""Alerts as the public API shows them, and the body of a preview."""

from typing import Annotated, Literal

from pydantic import Field

from contract.checks import CheckType
from service.alerting.model import LocationAlert, Silence, StoredAlert
from service.alerting.replay import ReplayedAlert
from service.checks.fields import AlertSettings
from service.checks.model import CheckName
from service.http.schema import RequestModel, ResponseModel, Text, Whole
from service.http.times import Moment, moment, optional_moment

AlertTypeShown = Literal[
    "NO_ALERT",
    "ALERT_FAILURE",
    "ALERT_FAILURE_REMAIN",
    "ALERT_FAILURE_DEGRADED",
    "ALERT_RECOVERY",
    "ALERT_DEGRADED",
    "ALERT_DEGRADED_REMAIN",
    "ALERT_DEGRADED_FAILURE",
    "ALERT_DEGRADED_RECOVERY",
    "ALERT_SSL",
]


class MismatchShown(ResponseModel):
    """The assertion that failed first."""

    source: str
    property: str
    comparison: str
    expected: str
    actual: str


class CertificateShown(ResponseModel):
    """The certificate that an alert is about."""

    domain: str
    subject: str | None
    """The certificate of the chain that expires first. Null: the result does not name it."""
    days_remaining: float
    """Days until it expires; negative once it has."""


class CheckAlertShown(ResponseModel):
    """An alert about a check."""

    id: str
    name: str
    """The name of the check, when the alert was made."""
    check_id: str
    alert_type: AlertTypeShown
    check_type: CheckType
    run_location: str
    """The location whose result caused the alert. Empty: the result is not stored any more."""
    response_time: float
    """Milliseconds. 0: nothing was measured."""
    error: str | None
    """What failed, in one sentence. Null: nothing failed."""
    status_code: str | None
    """The status code of the answer, of API and URL checks. Null: there was no answer."""
    created_at: Moment = Field(alias="created_at")
    started_at: Moment
    """Since when the check has been in the state; of a recovery: since when it had not passed."""
    check_result_id: str | None
    """The result that caused it. Null: it is not stored any more."""
    reminder: int
    """0: the first notice of its kind; from 1 on: the number of the reminder."""
    notified: bool
    """False: the check was muted or in maintenance, and nobody was notified."""
    silence: Silence | None
    """Why no channel was notified. Null: one was, or the alert was made by an earlier release."""
    maintenance_window: str | None
    """The name of the maintenance window that kept it back. Null: none did."""
    mismatch: MismatchShown | None
    """Null: no assertion failed."""
    failing_locations: list[str]
    """Where the newest result is no pass."""
    passing_locations: list[str]
    """Where the newest result is a pass."""
    last_pass_at: Moment | None
    """When the check passed last. Null: it never did, or the result is gone."""
    certificate: CertificateShown | None
    """Null: the alert is not about a certificate."""
    artifacts: list[str]
    """Names of the result's files, such as a screenshot or a trace."""
    check_deleted: bool
    """True: the check was deleted before it passed again, which ended its alerts."""


def render(stored: StoredAlert) -> CheckAlertShown:
    """A stored alert as its answer."""
    alert = stored.alert
    mismatch, certificate = alert.mismatch, alert.certificate
    return CheckAlertShown(
        id=alert.id,
        name=alert.check_name,
        check_id=alert.check_id,
        alert_type=alert.alert_type.value,
        check_type=alert.check_type,
        run_location=alert.location,
        response_time=alert.response_time_ms or 0,
        error=alert.error,
        status_code=alert.status_code,
        created_at=moment(alert.created_ms),
        started_at=moment(alert.started_ms),
        check_result_id=alert.result_id,
        reminder=alert.reminder,
        notified=stored.notified,
        silence=stored.silence,
        maintenance_window=stored.window,
        mismatch=MismatchShown(
            source=mismatch.source,
            property=mismatch.property,
            comparison=mismatch.comparison,
            expected=mismatch.expected,
            actual=mismatch.actual,
        )
        if mismatch
        else None,
        failing_locations=list(alert.failing_locations),
        passing_locations=list(alert.passing_locations),
        last_pass_at=optional_moment(alert.last_pass_ms),
        certificate=CertificateShown(
            domain=certificate.domain,
            subject=certificate.subject,
            days_remaining=certificate.days_remaining,
        )
        if certificate
        else None,
        artifacts=list(alert.artifacts),
        check_deleted=alert.check_deleted,
    )


class LocationAlertShown(ResponseModel):
    """An alert about a private location."""

    id: str
    location: str
    """The location's slug, when the alert was made."""
    location_name: str
    is_recovery: bool
    """True: an agent is there again, or no check runs there any more."""
    since: Moment
    """When it was found out that no agent had been there for ten minutes."""
    created_at: Moment = Field(alias="created_at")
    check_count: int
    """Number of checks that run at the location."""
    check_names: list[str]
    """The first few of their names."""


def render_location(alert: LocationAlert) -> LocationAlertShown:
    """A stored alert about a location as its answer."""
    return LocationAlertShown(
        id=alert.id,
        location=alert.location,
        location_name=alert.location_name,
        is_recovery=alert.is_recovery,
        since=moment(alert.since_ms),
        created_at=moment(alert.created_ms),
        check_count=alert.check_count,
        check_names=list(alert.check_names),
    )


class PreviewWanted(RequestModel):
    """Which results to replay, and through which settings."""

    check_id: Text | None = None
    """The check. Null: `groupId` says which."""
    group_id: Whole | None = None
    """The group all of whose checks are replayed. Null: `checkId` says which."""
    alert_settings: AlertSettings
    """The settings to try; those that are stored stay as they are."""
    since: Annotated[Text | Whole | None, Field(alias="from")] = None
    """Seconds since 1970, or ISO 8601; inclusive. Null: 30 days before `to`."""
    until: Annotated[Text | Whole | None, Field(alias="to")] = None
    """Seconds since 1970, or ISO 8601; exclusive. Null: now."""


class PreviewedAlertShown(ResponseModel):
    """An alert that there would have been."""

    check_id: str
    name: str
    """The name of the check."""
    alert_type: AlertTypeShown
    at: Moment
    location: str
    """The location whose result would have caused it."""
    check_result_id: str | None
    """The result that would have caused it. Null: none."""
    reminder: int
    """0: the first notice of its kind; from 1 on: the number of the reminder."""
    would_have_notified: bool
    """False: the check is muted now."""


class PreviewShown(ResponseModel):
    """Which alerts there would have been."""

    since: Moment = Field(alias="from")
    until: Moment = Field(alias="to")
    results: int
    """How many results were replayed."""
    alerts: list[PreviewedAlertShown]
    """Oldest first."""
    alerts_left_out: int
    """How many more there would have been than are listed."""


def render_previewed(check: CheckName, alert: ReplayedAlert) -> PreviewedAlertShown:
    """A replayed alert as its answer."""
    return PreviewedAlertShown(
        check_id=check.id,
        name=check.name,
        alert_type=alert.alert_type.value,
        at=moment(alert.at_ms),
        location=alert.location,
        check_result_id=alert.result_id,
        reminder=alert.reminder,
        would_have_notified=alert.notifies,
    )
