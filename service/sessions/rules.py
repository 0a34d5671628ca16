"""What the runs of a session add up to; pure."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from contract.checks import SCRIPT_TYPES
from service.results.model import RunStatus
from service.sessions.model import (
    LatestStarts,
    Session,
    SessionStatus,
    TestSession,
    TestState,
    TestStatus,
)

_VERDICTS: Final = {
    RunStatus.PASSED: SessionStatus.PASSED,
    RunStatus.DEGRADED: SessionStatus.DEGRADED,
    RunStatus.FAILED: SessionStatus.FAILED,
    RunStatus.TIMED_OUT: SessionStatus.TIMED_OUT,
    # Nobody checked the target. The specification has no fifth status; the result has `hasErrors`.
    RunStatus.MISSED: SessionStatus.FAILED,
    RunStatus.ERROR: SessionStatus.FAILED,
}
_WORST_LAST: Final = (
    SessionStatus.STARTED,
    SessionStatus.PASSED,
    SessionStatus.DEGRADED,
    SessionStatus.TIMED_OUT,
    SessionStatus.FAILED,
)
_NO_PASS: Final = frozenset({SessionStatus.FAILED, SessionStatus.TIMED_OUT})
_ON_THE_WAY: Final = {
    SessionStatus.STARTED: SessionStatus.STARTED,
    SessionStatus.PASSED: SessionStatus.PROGRESS,
    SessionStatus.DEGRADED: SessionStatus.PROGRESS_DEGRADED,
    SessionStatus.FAILED: SessionStatus.PROGRESS_FAILED,
    SessionStatus.TIMED_OUT: SessionStatus.PROGRESS_FAILED,
}
_MINUTE_MS: Final = 60_000
_UPTIME_DEADLINE_MS: Final = 20 * _MINUTE_MS
"""6 minutes in the queue, 10 of retries, and some for agents that die."""
_HEAVY_DEADLINE_MS: Final = 60 * _MINUTE_MS
_WAITING_DEADLINE_MS: Final = 24 * 60 * _MINUTE_MS
"""For its turn in the run of a group: until then those before it have ended, however slow."""


def worse(known: SessionStatus, run: RunStatus) -> SessionStatus:
    """The worst run counts: FAILED, then TIMED_OUT, DEGRADED, PASSED."""
    return max(known, _VERDICTS[run], key=_WORST_LAST.index)


def after_end(test: TestSession, status: SessionStatus, *, now_ms: int) -> TestSession:
    """The test session once one of its checks has ended like this."""
    failed = test.failed + (status in _NO_PASS)
    if test.pending > 1:
        return replace(test, pending=test.pending - 1, failed=failed)
    verdict = TestStatus.FAILED if failed else TestStatus.PASSED
    if status is SessionStatus.CANCELLED:
        verdict = TestStatus.CANCELLED
    return replace(test, pending=0, failed=failed, status=verdict, stopped_ms=now_ms)


def after_all(test: TestSession, statuses: Sequence[SessionStatus], *, now_ms: int) -> TestSession:
    """The test session once all its checks have ended like this, whoever counted them."""
    fresh = replace(test, pending=len(statuses), failed=0)
    for status in statuses:
        fresh = after_end(fresh, status, now_ms=now_ms)
    return fresh


def render_status(session: Session) -> SessionStatus:
    """The stored status while runs are still out is only that of those that came back."""
    return session.status if session.stopped_ms is not None else _ON_THE_WAY[session.status]


def deadline_ms(session: Session) -> int:
    """When a session ends whether or not its runs have come back."""
    if session.turn is not None:
        return session.started_ms + _WAITING_DEADLINE_MS
    # Tests of a whole project wait for each other.
    heavy = session.is_test or session.check_type in SCRIPT_TYPES
    return session.started_ms + (_HEAVY_DEADLINE_MS if heavy else _UPTIME_DEADLINE_MS)


def left_s(seen: TestState) -> float:
    """In how many seconds the next check of a test session ends whatever happens."""
    going_on = [one for one in seen.members if one.stopped_ms is None]
    next_ms = min(map(deadline_ms, going_on), default=seen.now_ms)
    return max(0, next_ms - seen.now_ms) / 1000


def latest_starts(now_ms: int) -> LatestStarts:
    """Sessions that started later have not reached their deadline."""
    return LatestStarts(
        running_ms=now_ms - _UPTIME_DEADLINE_MS, waiting_ms=now_ms - _WAITING_DEADLINE_MS
    )


def matches_tags(tags: Collection[str], wanted: Sequence[Sequence[str]]) -> bool:
    """One group of `wanted` holds wholly; a tag that begins with `!` must not be there.

    A group without tags, and a `!` without one, hold for no check: they come of a variable that is
    empty, and would run every one.
    """
    return any(group and all(_holds(tag, tags) for tag in group) for group in wanted)


def _holds(tag: str, tags: Collection[str]) -> bool:
    if tag == "!":
        return False
    return tag[1:] not in tags if tag.startswith("!") else tag in tags
