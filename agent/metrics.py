"""What the agent counts and measures, as Prometheus reads it."""

from typing import Final

from prometheus_client import CollectorRegistry, generate_latest

from agent.tallies import UNLABELLED, Counts, Levels, Spreads, Tallies, Tally
from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.result import Status
from runners.kit.leak_scan.leak import MemberKind

NAMESPACE: Final = "picket_agent_"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_DURATION_BOUNDS_S: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 240, 1800,
)  # fmt: skip
_LAG_BOUNDS_S: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 360)
_TYPES: Final = {kind: (kind.value,) for kind in CheckType}
_VERDICTS: Final = {
    (kind, status): (kind.value, status.value) for kind in CheckType for status in Status
}
_REASONS: Final = {reason: (reason.value,) for reason in ReleaseReason}
_MEMBERS: Final = {kind: (kind.value,) for kind in MemberKind}
_LANES: Final = {lane: (lane.value,) for lane in Lane}


class Metrics:
    """All counters and gauges of one agent, on a registry of its own.

    A series of a closed set stands at 0 before its first event. Written by the event loop's thread,
    read by any.
    """

    def __init__(self, *, version: str, runtime: str) -> None:
        self._make_job_tallies()
        self._make_state_tallies()
        self._make_delivery_tallies()
        known = _levels("info", "Always 1; the labels say what runs.", "version", "runtime")
        known.levels[version, runtime] = 1
        self._registry = CollectorRegistry()
        self._registry.register(Tallies([*self._of_jobs(), *self._of_delivery(), known]))

    def _of_jobs(self) -> tuple[Tally, ...]:
        return (self._jobs, self._duration, self._lag, self._released, self._free, self._oldest)

    def _of_delivery(self) -> tuple[Tally, ...]:
        counted = (self._renew_failures, self._dropped, self._replacements, self._refusals)
        files = (self._leaks, self._files_dropped, self._files_spooled)
        return (*counted, self._requests, self._spooled, *files, self._loop_lag, self._tasks)

    def text(self) -> bytes:
        """The Prometheus text format, of `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def job_started(self, *, lag_s: float) -> None:
        """A run began this long after it was due."""
        self._lag.observe(lag_s)

    def job_finished(self, check_type: CheckType, status: Status, *, took_s: float) -> None:
        """A run came to a verdict."""
        self._jobs.counts[_VERDICTS[check_type, status]] += 1
        self._duration.observe(took_s, _TYPES[check_type])

    def job_released(self, reason: ReleaseReason) -> None:
        """A job was given back without a result."""
        self._released.counts[_REASONS[reason]] += 1

    def slots_free(self, lane: Lane, count: int) -> None:
        """This many more jobs may start in the lane."""
        self._free.levels[_LANES[lane]] = count

    def oldest_wait(self, lane: Lane, *, wait_s: float) -> None:
        """The claimed job that waits longest for its start has waited this long; 0: none waits."""
        self._oldest.levels[_LANES[lane]] = wait_s

    def renew_failed(self) -> None:
        """A renewal of the leases did not reach the service."""
        self._renew_failures.counts[UNLABELLED] += 1

    def results_spooled(self, count: int) -> None:
        """This many results wait for delivery."""
        self._spooled.levels[UNLABELLED] = count

    def results_dropped(self, count: int) -> None:
        """This many results were given up: too old, no room, or refused for good."""
        self._dropped.counts[UNLABELLED] += count

    def artifacts_spooled(self, count: int) -> None:
        """This many files wait for delivery."""
        self._files_spooled.levels[UNLABELLED] = count

    def artifacts_dropped(self, count: int) -> None:
        """This many files were given up: too old, no room, not clean, or refused for good."""
        self._files_dropped.counts[UNLABELLED] += count

    def scrubbed(self, replacements: int) -> None:
        """The scrubber took out this many secrets."""
        self._replacements.counts[UNLABELLED] += replacements

    def scrub_refused(self) -> None:
        """The scrubber could not make a result clean, so it was not sent."""
        self._refusals.counts[UNLABELLED] += 1

    def leak_withheld(self, member: MemberKind) -> None:
        """The scanner found a secret in what had been scrubbed; it was not sent."""
        self._leaks.counts[_MEMBERS[member]] += 1

    def service_request(self, call: str, status: str) -> None:
        """The service was asked; `status` is the HTTP code, or a word when there was no answer."""
        self._requests.counts[call, status] += 1

    def loop_lag(self, lag_s: float) -> None:
        """The event loop came this much too late to a task that was due."""
        self._loop_lag.levels[UNLABELLED] = lag_s

    def tasks(self, count: int) -> None:
        """This many tasks are alive; one that grows without end is a leak."""
        self._tasks.levels[UNLABELLED] = count

    def _make_job_tallies(self) -> None:
        self._jobs = Counts(
            f"{NAMESPACE}jobs",
            "Runs that came to a verdict.",
            labels=("type", "status"),
            known=_VERDICTS.values(),
        )
        self._duration = Spreads(
            f"{NAMESPACE}job_duration_seconds",
            "How long runs took.",
            _DURATION_BOUNDS_S,
            labels=("type",),
            known=_TYPES.values(),
        )
        self._lag = Spreads(
            f"{NAMESPACE}job_lag_seconds", "From when a run was due to its start.", _LAG_BOUNDS_S
        )
        self._released = Counts(
            f"{NAMESPACE}released",
            "Jobs given back without a result.",
            labels=("reason",),
            known=_REASONS.values(),
        )

    def _make_state_tallies(self) -> None:
        lanes = tuple(_LANES.values())
        self._free = _levels("slots_free", "How many more jobs may start.", "lane", known=lanes)
        self._oldest = _levels(
            "oldest_wait_seconds",
            "Age of the claimed job that waits longest.",
            "lane",
            known=lanes,
        )
        self._spooled = _levels("results_spooled", "Results that wait for delivery.")
        self._files_spooled = _levels("artifacts_spooled", "Files that wait for delivery.")
        self._loop_lag = _levels(
            "event_loop_lag_seconds", "How late the event loop came to a task that was due."
        )

        self._tasks = _levels("tasks", "Tasks of the event loop that are alive.")

    def _make_delivery_tallies(self) -> None:
        self._renew_failures = _counts(
            "lease_renew_failures", "Renewals of leases that did not reach the service."
        )
        self._dropped = _counts("results_dropped", "Results that were given up.")
        self._files_dropped = _counts("artifacts_dropped", "Files of runs that were given up.")
        self._replacements = _counts("scrub_replacements", "Secrets taken out of results.")
        self._refusals = _counts(
            "scrub_refusals", "Results that could not be made clean and were not sent."
        )
        self._leaks = Counts(
            f"{NAMESPACE}leaks_withheld",
            "What was not sent because the scanner found a secret in it, scrubbed as it was.",
            labels=("member",),
            known=_MEMBERS.values(),
        )
        self._requests = _counts("service_requests", "Requests to the service.", "call", "status")


def _counts(name: str, text: str, *labels: str) -> Counts:
    return Counts(f"{NAMESPACE}{name}", text, labels=labels)


def _levels(name: str, text: str, *labels: str, known: tuple[tuple[str], ...] = ()) -> Levels:
    return Levels(f"{NAMESPACE}{name}", text, labels=labels, known=known)
