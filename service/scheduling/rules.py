"""When a check is due: pure slot arithmetic over the three frequency and offset rules.

A check's runs are the times `phase + n * period`, counted from 1970, so a restart shifts nothing
and every process counts alike. Where no offset is given the phase comes from a hash of the check's
id: 100,000 checks of one frequency do not start together.
"""

from hashlib import blake2b
from typing import Final

from service.scheduling.model import DueTimes, Rhythm

_SECOND_MS: Final = 1_000
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS
_SHORT_SLOT_MS: Final = 6 * _SECOND_MS
_DEFAULT_SECONDS: Final = 30
"""Period of a sub-minute check without an offset: the gentlest of the three."""


def rhythm(check_id: str, *, frequency_min: int, offset: int | None) -> Rhythm:
    """The rhythm by the specification's rules.

    Frequency 0: the offset is the period in seconds. Up to an hour: the offset chooses one of
    `10 * frequency` slots of 6 s. Above: one of `ceil(frequency / 60)` slots of an hour.
    No offset: slot, and place within the slot, come from the check's id.
    """
    number = _number(check_id)
    if frequency_min == 0:
        period_ms = (offset or _DEFAULT_SECONDS) * _SECOND_MS
        return Rhythm(period_ms, number % period_ms)
    period_ms = frequency_min * _MINUTE_MS
    slot_ms = _SHORT_SLOT_MS if frequency_min <= 60 else _HOUR_MS
    slots = -(-period_ms // slot_ms)
    if offset is not None:
        return Rhythm(period_ms, min(offset - 1, slots - 1) * slot_ms)
    slot, rest = number % slots, number // slots
    return Rhythm(period_ms, (slot * slot_ms + rest % slot_ms) % period_ms)


def next_due_ms(when: Rhythm, *, after_ms: int) -> int:
    """The first time of the rhythm later than a moment."""
    return after_ms - (after_ms - when.phase_ms) % when.period_ms + when.period_ms


def next_after_run_ms(when: Rhythm, *, planned_ms: int, now_ms: int) -> int:
    """When a check runs next, now that a run of it starts.

    Half a period passes at least, which matters after a run off the rhythm, as its first one is: a
    run of the rhythm a moment later would tell nothing new, and end the first one's time in the
    queue.
    """
    return next_due_ms(when, after_ms=max(now_ms, planned_ms + when.period_ms // 2))


def run_due_ms(when: Rhythm, *, planned_ms: int, now_ms: int) -> int:
    """Which run to start now: the newest one due, so that at most one is caught up on.

    A planned time off the rhythm, which a check's first run has, counts as well.
    """
    return max(planned_ms, next_due_ms(when, after_ms=now_ms) - when.period_ms)


MOST_SKIPPED: Final = 30
"""How many due times without a run are recorded one by one, the newest ones of a check."""


def skipped_due_times(when: Rhythm, *, planned_ms: int, newest_ms: int) -> list[DueTimes]:
    """The due times from the planned one up to the newest, which has its run; oldest first.

    Those before the newest `MOST_SKIPPED` share one item.
    """
    second_ms = next_after_run_ms(when, planned_ms=planned_ms, now_ms=planned_ms)
    if second_ms > newest_ms:
        return []
    later = range(second_ms, newest_ms, when.period_ms)
    single = later[-MOST_SKIPPED:]
    count = 1 + len(later) - len(single)
    older = DueTimes(planned_ms, second_ms + (count - 2) * when.period_ms, count)
    if count == 1:
        older = DueTimes(planned_ms, planned_ms, 1)
    return [older, *(DueTimes(due_ms, due_ms, 1) for due_ms in single)]


def places(locations: list[str], *, run_parallel: bool, turn: int) -> list[str]:
    """Where this run takes place: everywhere, or at the next location of the round robin."""
    if run_parallel or not locations:
        return locations
    return [locations[turn % len(locations)]]


def _number(check_id: str) -> int:
    """A stable hash of the check's id, equal in every process, unlike Python's own `hash`."""
    return int.from_bytes(blake2b(check_id.encode(), digest_size=8).digest(), "big")
