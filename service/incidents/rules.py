"""How an incident stands, and how long it lasted."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.incidents.model import IncidentStatus, IncidentUpdate


@dataclass(frozen=True, slots=True)
class Course:
    """When an incident began and ended, by the updates that are public."""

    began_ms: int
    ended_ms: int | None
    """When it was closed for the last time. None: it is open."""

    def duration_s(self, now_ms: int) -> int:
        """Whole seconds from its beginning to its end, or to now."""
        end_ms = now_ms if self.ended_ms is None else self.ended_ms
        return max(0, end_ms - self.began_ms) // 1000


def find_course(updates: Sequence[IncidentUpdate], *, now_ms: int) -> Course | None:
    """The course of an incident. None: none of its updates is public yet.

    The first update begins it and RESOLVED closes it. Another status after that opens it again; a
    further RESOLVED changes nothing.
    """
    shown = list_public(updates, now_ms=now_ms)
    if not shown:
        return None
    ended_ms: int | None = None
    for update in shown:
        if update.status is not IncidentStatus.RESOLVED:
            ended_ms = None
        elif ended_ms is None:
            ended_ms = update.public_ms
    return Course(shown[0].public_ms, ended_ms)


def is_open(updates: Sequence[IncidentUpdate], *, now_ms: int) -> bool:
    """Whether it has begun and is not closed."""
    course = find_course(updates, now_ms=now_ms)
    return course is not None and course.ended_ms is None


def find_status(updates: Sequence[IncidentUpdate], *, now_ms: int) -> IncidentStatus:
    """The status of the newest public update; of the first one while none is public."""
    shown = list_public(updates, now_ms=now_ms)
    return shown[-1].status if shown else in_order(updates)[0].status


def list_public(updates: Sequence[IncidentUpdate], *, now_ms: int) -> list[IncidentUpdate]:
    """Those that are shown by now, the earliest first."""
    return [one for one in in_order(updates) if one.public_ms <= now_ms]


def in_order(updates: Sequence[IncidentUpdate]) -> list[IncidentUpdate]:
    """By the time at which they are shown; those of one time as they were made."""
    return sorted(updates, key=lambda one: (one.public_ms, one.created_ms, one.id))
