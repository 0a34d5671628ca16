"""What the record of a heartbeat says, also after a ping that was relayed late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from service.heartbeats.model import PingState, TimerState, judge_ping


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """When a ping is due."""

    period_ms: int
    grace_ms: int

    @property
    def limit_ms(self) -> int:
        """A longer silence is a failure."""
        return self.period_ms + self.grace_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejudged:
    """What the record should say from one ping up to a later one."""

    states: tuple[PingState, ...]
    """The state of each ping but the first."""
    kept_marks: tuple[int, ...]
    """Times of the FAILING events that stay; all others are wrong."""
    new_marks: tuple[int, ...]
    """Times at which the check failed, and no FAILING event says it."""


def judge_timer(silent_ms: int | None, terms: Terms, *, is_failing: bool) -> TimerState:
    """How a heartbeat stands now. None: the timer has not started."""
    if silent_ms is None:
        return TimerState.NEVER_PINGED
    if is_failing:
        return TimerState.FAILING
    if silent_ms <= terms.period_ms:
        return TimerState.RECEIVED
    return TimerState.GRACE if silent_ms <= terms.limit_ms else TimerState.LATE


def rejudge(
    pings: Sequence[int],
    *,
    marks: Sequence[int],
    failures: Sequence[int],
    terms: Terms,
    now_ms: int,
) -> Rejudged:
    """Judge consecutive pings anew, and the silences after each of them up to now.

    `marks`: times of FAILING events; `failures`: times of results that found the check failing.
    """
    states: list[PingState] = []
    kept: list[int] = []
    added: list[int] = []
    for begin_ms, end_ms in pairwise((*pings, now_ms + 1)):
        is_marked = True
        if (mark := _first_within(marks, begin_ms + terms.limit_ms, end_ms)) is not None:
            kept.append(mark)
        elif (failed := _first_within(failures, begin_ms + terms.limit_ms, end_ms)) is not None:
            added.append(failed)
        else:
            is_marked = False
        states.append(_judge(end_ms - begin_ms, terms, is_failing=is_marked))
    return Rejudged(
        states=tuple(states[:-1]),  # the last silence has no ping at its end
        kept_marks=tuple(kept),
        new_marks=tuple(added),
    )


def disproved(failures: Mapping[str, int], *, ping_ms: int, terms: Terms) -> Mapping[str, int]:
    """The failed results at whose time the silence since this ping was not too long; id to time."""
    return {
        result_id: at_ms
        for result_id, at_ms in failures.items()
        if ping_ms <= at_ms <= ping_ms + terms.limit_ms
    }


def _first_within(times: Sequence[int], after_ms: int, before_ms: int) -> int | None:
    return min((at_ms for at_ms in times if after_ms < at_ms < before_ms), default=None)


def _judge(since_ms: int, terms: Terms, *, is_failing: bool) -> PingState:
    return judge_ping(
        since_ms / 1000,
        period_s=terms.period_ms / 1000,
        grace_s=terms.grace_ms / 1000,
        is_failing=is_failing,
    )
