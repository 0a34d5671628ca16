"""What an alert is, and what it says."""

from dataclasses import dataclass
from enum import StrEnum

from contract.checks import CheckType


class AlertType(StrEnum):
    """How a check's state changed, or stayed; the specification's ten types."""

    NO_ALERT = "NO_ALERT"
    FAILURE = "ALERT_FAILURE"
    FAILURE_REMAIN = "ALERT_FAILURE_REMAIN"
    FAILURE_DEGRADED = "ALERT_FAILURE_DEGRADED"
    RECOVERY = "ALERT_RECOVERY"
    DEGRADED = "ALERT_DEGRADED"
    DEGRADED_REMAIN = "ALERT_DEGRADED_REMAIN"
    DEGRADED_FAILURE = "ALERT_DEGRADED_FAILURE"
    DEGRADED_RECOVERY = "ALERT_DEGRADED_RECOVERY"
    SSL = "ALERT_SSL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The assertion that failed first."""

    source: str
    property: str
    comparison: str
    expected: str
    actual: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The certificate that an alert of type `SSL` is about."""

    domain: str
    subject: str | None
    """The certificate of the chain that expires first. None: the result does not name it."""
    days_remaining: float
    """Days until it expires; negative once it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert: a stored record, and all that a message to people says."""

    id: str
    account_id: str
    check_id: str
    check_name: str
    check_type: CheckType
    check_description: str | None
    """None: it has none."""
    tags: tuple[str, ...]
    group_id: int | None
    """None: the check is in no group."""
    group_name: str | None
    alert_type: AlertType
    location: str
    """The slug of the location whose result caused it."""
    result_id: str | None
    """None: a timer caused it, not a result, and no result is stored any more."""
    response_time_ms: float | None
    """None: nothing was measured."""
    error: str | None
    """What failed, in one sentence. None: nothing failed."""
    mismatch: Mismatch | None
    """None: no assertion failed."""
    status_code: str | None
    """The status code of the answer, of API and URL checks. None: there was no answer."""
    status_text: str | None
    started_ms: int
    """Since when the check is in the state that the alert is about; of a recovery: it was."""
    created_ms: int
    failing_locations: tuple[str, ...]
    """Slugs of the locations at which the newest result is no pass."""
    passing_locations: tuple[str, ...]
    last_pass_ms: int | None
    """When the check passed last. None: it never did, or the result is gone."""
    reminder: int = 0
    """0: the first notice of its kind; from 1 on: the number of the reminder."""
    certificate: Certificate | None = None
    """None: the alert is not about a certificate."""
    artifacts: tuple[str, ...] = ()
    """Names of the result's files, such as a screenshot or a trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationAlert:
    """A location that lost its last agent, or has one again: one alert, however many checks."""

    id: str
    account_id: str
    location: str
    """The location's slug."""
    location_name: str
    is_recovery: bool
    """True: an agent is there again."""
    since_ms: int
    """Since when no agent has been there; of a recovery: had been."""
    created_ms: int
    check_count: int
    """Number of activated checks that run at the location."""
    check_names: tuple[str, ...]
    """The first few of their names."""
