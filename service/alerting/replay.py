"""Which alerts results would have led to: stored results, taken by other settings. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from service.alerting.content import LEVELS, find_decisive_run
from service.alerting.model import CLEAN, AlertPolicy, AlertState, AlertType, Level, Seen
from service.alerting.rules import step
from service.results.model import FinalRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedAlert:
    """An alert that there would have been."""

    alert_type: AlertType
    at_ms: int
    location: str
    """The slug of the location whose result caused it."""
    result_id: str | None
    reminder: int
    notifies: bool
    """Whether people would have been notified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What to replay."""

    runs: Sequence[FinalRun]
    """In the order in which they were stored."""
    policy: AlertPolicy
    locations: int
    """At how many locations scheduled runs of one due time run: 1 unless they run in parallel."""
    until_ms: int
    """Reminders follow until then."""


def replay(given: Replay) -> tuple[ReplayedAlert, ...]:
    """The alerts of a check that passes at first, oldest first."""
    return tuple(_Replaying(given, _count_locations(given.runs)).alerts())


def _count_locations(runs: Iterable[FinalRun]) -> Mapping[str, int]:
    """At how many locations each session ran."""
    found: dict[str, set[str]] = {}
    for run in runs:
        if run.session_id is not None:
            found.setdefault(run.session_id, set()).add(run.location)
    return {session_id: len(locations) for session_id, locations in found.items()}


@dataclass(slots=True)
class _Replaying:
    given: Replay
    sessions: Mapping[str, int]
    state: AlertState = CLEAN
    cause: FinalRun | None = None
    """The newest run that did not pass. None: none since the check passed."""
    counted_ms: int | None = None
    """When the newest runs that count together were due. None: none so far."""
    rounds: dict[tuple[int, str | None], list[FinalRun]] = field(default_factory=dict)

    def alerts(self) -> Iterator[ReplayedAlert]:
        for run in self.given.runs:
            yield from self._wait(run.created_ms)
            decisive = self._find_run(run)
            if decisive is not None:
                yield from self._take(decisive, run.created_ms)
        yield from self._wait(self.given.until_ms)

    def _wait(self, now_ms: int) -> Iterator[ReplayedAlert]:
        while self.state.timer_ms is not None and self.state.timer_ms <= now_ms:
            yield from self._step(None, self.cause, self.state.timer_ms)

    def _take(self, run: FinalRun, now_ms: int) -> Iterator[ReplayedAlert]:
        level = LEVELS[run.status]
        if level is Level.PASSING and self.state == CLEAN:
            return
        if level is not Level.PASSING:
            self.cause = run
        yield from self._step(Seen(level, run.started_ms), run, now_ms)

    def _step(
        self, seen: Seen | None, run: FinalRun | None, now_ms: int
    ) -> Iterator[ReplayedAlert]:
        after = step(self.state, seen, self.given.policy, now_ms=now_ms)
        self.state = after.state
        if after.alert_type is not AlertType.NO_ALERT:
            yield ReplayedAlert(
                alert_type=after.alert_type,
                at_ms=now_ms,
                location=run.location if run else "",
                result_id=run.id if run else None,
                reminder=after.reminder,
                notifies=after.notifies,
            )

    def _find_run(self, run: FinalRun) -> FinalRun | None:
        """The run that says how the check is doing now. None: nothing new is known."""
        expected = self._count_expected(run)
        if expected < 2:
            return run if run.status in LEVELS else None
        if self.counted_ms is not None and run.scheduled_ms <= self.counted_ms:
            return None
        known = self.rounds.setdefault((run.scheduled_ms, run.session_id), [])
        known.append(run)
        known.sort(key=lambda one: (one.started_ms, one.id), reverse=True)
        percentage = self.given.policy.percentage if self.given.locations > 1 else 0
        decisive = find_decisive_run(known, expected=expected, percentage=percentage)
        if decisive is not None:
            self.counted_ms = run.scheduled_ms
        return decisive

    def _count_expected(self, run: FinalRun) -> int:
        if self.given.locations > 1 or run.session_id is None:
            return self.given.locations
        return self.sessions[run.session_id]
