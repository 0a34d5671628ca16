"""What an alert is, and what it says."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from contract.checks import CheckType

SAMPLE_PREFIX: Final = "sample-"
"""What the id of the check of a sample begins with, which is no check's."""


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

    @property
    def is_recovery(self) -> bool:
        """Whether it says that the check passes again."""
        return self in {AlertType.RECOVERY, AlertType.DEGRADED_RECOVERY}


class Silence(StrEnum):
    """Why nobody was notified of an alert."""

    MUTED = "MUTED"
    MAINTENANCE = "MAINTENANCE"
    NO_SUBSCRIPTION = "NO_SUBSCRIPTION"
    """No channel was subscribed."""
    NOT_WANTED = "NOT_WANTED"
    """No channel that was subscribed gets alerts of the kind."""
    NOT_NOTIFIED_BEFORE = "NOT_NOTIFIED_BEFORE"
    """It is a recovery of what nobody had been notified of."""


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
    check_deleted: bool = False
    """True: the check was deleted before it passed again, which ends its alerts."""

    @property
    def is_test(self) -> bool:
        """Whether it is the sample that a test of a channel sends."""
        return self.check_id.startswith(SAMPLE_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationAlert:
    """A location that lost its last agent, or has one again: one alert, however many checks."""

    id: str
    account_id: str
    location: str
    """The location's slug."""
    location_name: str
    is_recovery: bool
    """True: an agent is there again, or no check runs there any more."""
    since_ms: int
    """When it was found out that no agent had been there for ten minutes."""
    created_ms: int
    check_count: int
    """Number of checks that run at the location."""
    check_names: tuple[str, ...]
    """The first few of their names."""


class Level(StrEnum):
    """How a check is doing, by its newest run."""

    PASSING = "PASSING"
    DEGRADED = "DEGRADED"
    FAILING = "FAILING"


class Condition(StrEnum):
    """When a change from one level to another makes an alert."""

    NEVER = "never"
    AT_THRESHOLD = "at the threshold"
    ALWAYS = "always"
    AFTER_ALERT = "after an alert"


class Transition(NamedTuple):
    """What a change from one level to another means."""

    alert_type: AlertType
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPolicy:
    """When people are alerted about one check, by its settings in force."""

    failed_runs: int = 1
    """With RUN_BASED escalation: the run in a row, that does not pass, which makes an alert."""
    failing_ms: int | None = None
    """With TIME_BASED escalation: how long it must not pass. None: the escalation is RUN_BASED."""
    reminders: int = 0
    """How many reminders follow an alert; `UNLIMITED` has no end."""
    reminder_ms: int = 300_000
    """Time between reminders."""
    percentage: int = 0
    """The share of locations that must fail, in percent. 0: one location is enough."""
    is_muted: bool = False
    """True: a person muted the check, and nobody is notified of anything, recoveries included."""
    is_silent: bool = False
    """True: the check is muted or in maintenance, and nobody is notified of new alerts."""
    window: str | None = None
    """The name of the maintenance window that is open for the check. None: none is."""
    is_activated: bool = True
    """False: nothing counts."""


UNLIMITED: Final = 100_000
"""This number of reminders means that there is no end."""


class Seen(NamedTuple):
    """What a run says about its check."""

    level: Level
    started_ms: int
    """When the run began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertState:
    """What alerting knows about a check; without a value it passes and nothing is awaited."""

    level: Level = Level.PASSING
    since_ms: int = 0
    """Since when it has been at this level; 0 while it passes."""
    began_ms: int = 0
    """Since when it has not passed; 0 while it passes."""
    runs: int = 0
    """How many runs in a row did not pass."""
    recorded: Level = Level.PASSING
    """The level of the newest alert since it passed. PASSING: there was none."""
    notified: Level = Level.PASSING
    """The level of which people were notified last since it passed. PASSING: they were not."""
    noticed_ms: int = 0
    """When people were notified last, or when a reminder was due that a silent check kept back."""
    reminders: int = 0
    """How many reminders followed the newest notice."""
    timer_ms: int | None = None
    """When the next step is due without a result. None: results alone decide."""


CLEAN: Final = AlertState()
"""The state of a check that passes and of which nothing is awaited; it is not stored."""


class Step(NamedTuple):
    """The outcome of a step."""

    state: AlertState
    alert_type: AlertType = AlertType.NO_ALERT
    notifies: bool = False
    """Whether people are notified."""
    reminder: int = 0
    """0: the first notice of its kind; from 1 on: the number of the reminder."""

    @property
    def timer_ms(self) -> int | None:
        """When the next step is due without a result. None: results alone decide."""
        return self.state.timer_ms


class Round(NamedTuple):
    """What is known of runs that were due at one time at several locations."""

    levels: tuple[Level, ...]
    """The level at each location where somebody looked, by its newest result."""
    waiting: int
    """Locations without a final result so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """A check's state as it is stored, with what it led to."""

    state: AlertState = CLEAN
    result_id: str | None = None
    """The newest result that is no pass. None: there was none."""
    alert_id: str | None = None
    """The first alert since the check passed. None: there was none."""
    incident_id: str | None = None
    """The status page incident that alert opened. None: none."""
    round_ms: int | None = None
    """When the newest parallel runs that count were due. None: none since it was clean."""
    open_round_ms: int | None = None
    """When the parallel runs were due of which results are missing. None: none."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing has to be stored."""
        return self.state == CLEAN and self.open_round_ms is None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlert:
    """An alert as it is stored."""

    alert: Alert
    notified: bool
    """False: the check was muted or in maintenance, and nobody was notified."""
    silence: Silence | None = None
    """Why no channel was notified. None: one was, or the alert is of an earlier release."""
    window: str | None = None
    """The name of the maintenance window that kept it back. None: none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFilter:
    """Which alerts a list shows."""

    account_id: str
    check_id: str | None = None
    """None: of all checks."""
    from_ms: int
    """Inclusive."""
    to_ms: int
    """Exclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """How a check is doing at each of its locations, by the newest result of each."""

    failing: tuple[str, ...] = ()
    """Slugs of those where it does not pass."""
    passing: tuple[str, ...] = ()
    """Slugs of those where it passes."""
    last_pass_ms: int | None = None
    """When its newest run that passed began. None: no such result is stored."""
