"""What checks and groups say about the alerts of their results."""

from typing import Annotated, Literal

from service.http.strict import JsonNumber, Strict, Text, Whole


class AlertSubscription(Strict):
    """A channel that hears of the check's alerts."""

    alert_channel_id: Whole
    activated: bool = True


class TriggerIncident(Strict):
    """A status page incident that follows the check's alerts."""

    service_id: Text
    severity: Literal["CRITICAL", "MAJOR", "MEDIUM", "MINOR"]
    name: Text
    description: Text
    notify_subscribers: bool


class RunBased(Strict):
    """Alert after this many failed runs in a row."""

    failed_run_threshold: Annotated[Literal[1, 2, 3, 4, 5], JsonNumber] = 1


class TimeBased(Strict):
    """Alert once it has failed for this many minutes."""

    minutes_failing_threshold: Annotated[Literal[5, 10, 15, 30], JsonNumber] = 5


class Reminders(Strict):
    """How often an alert that lasts is repeated."""

    amount: Annotated[Literal[0, 1, 2, 3, 4, 5, 100_000], JsonNumber] = 0
    """100000: without end."""
    interval: Annotated[Literal[1, 2, 3, 4, 5, 10, 15, 30], JsonNumber] = 5
    """Minutes."""


class ParallelRuns(Strict):
    """With parallel runs: alert only when this share of locations fails."""

    enabled: bool = False
    percentage: Annotated[Literal[10, 20, 30, 40, 50, 60, 70, 80, 90, 100], JsonNumber] = 10


class AlertSettings(Strict):
    """When people are told; every part has its default."""

    escalation_type: Literal["RUN_BASED", "TIME_BASED"] = "RUN_BASED"
    run_based_escalation: RunBased = RunBased()
    time_based_escalation: TimeBased = TimeBased()
    reminders: Reminders = Reminders()
    parallel_run_failure_threshold: ParallelRuns = ParallelRuns()
