"""What checks and groups say about the alerts of their results."""

from typing import Annotated, Literal

from service.http.strict import JsonNumber, Strict, Text, Whole


class AlertSubscription(Strict):
    """A channel that hears of the check's alerts."""

    alert_channel_id: Whole
    """The id of the channel."""
    activated: bool = True
    """Whether the channel gets alerts."""


class TriggerIncident(Strict):
    """A status page incident that follows the check's alerts."""

    service_id: Text
    """The service of the status page."""
    severity: Literal["CRITICAL", "MAJOR", "MEDIUM", "MINOR"]
    """How severe the incident is."""
    name: Text
    """The title of the incident."""
    description: Text
    """The text of the incident."""
    notify_subscribers: bool
    """Whether subscribers of the status page are notified."""


class RunBased(Strict):
    """Alert after this many failed runs in a row."""

    failed_run_threshold: Annotated[Literal[1, 2, 3, 4, 5], JsonNumber] = 1
    """Failed runs in a row."""


class TimeBased(Strict):
    """Alert once it has failed for this many minutes."""

    minutes_failing_threshold: Annotated[Literal[5, 10, 15, 30], JsonNumber] = 5
    """Minutes."""


class Reminders(Strict):
    """How often an alert that lasts is repeated."""

    amount: Annotated[Literal[0, 1, 2, 3, 4, 5, 100_000], JsonNumber] = 0
    """How many reminders; 100000: no limit."""
    interval: Annotated[Literal[1, 2, 3, 4, 5, 10, 15, 30], JsonNumber] = 5
    """Minutes between reminders."""


class ParallelRuns(Strict):
    """With parallel runs: alert only when this share of locations fails."""

    enabled: bool = False
    """Whether the share counts."""
    percentage: Annotated[Literal[10, 20, 30, 40, 50, 60, 70, 80, 90, 100], JsonNumber] = 10
    """The share of locations, in percent."""


class AlertSettings(Strict):
    """When people are alerted."""

    escalation_type: Literal["RUN_BASED", "TIME_BASED"] = "RUN_BASED"
    """Whether failed runs or failing minutes count."""
    run_based_escalation: RunBased = RunBased()
    """With `RUN_BASED`: how many runs."""
    time_based_escalation: TimeBased = TimeBased()
    """With `TIME_BASED`: how many minutes."""
    reminders: Reminders = Reminders()
    """How often an alert is repeated."""
    parallel_run_failure_threshold: ParallelRuns = ParallelRuns()
    """How many locations must fail."""
