"""`/v1/checks/heartbeats/{checkId}/…`: the pings of a heartbeat, and those that did not come."""

from typing import Annotated, Final

from fastapi import Depends, Path, Query
from sqlalchemy import Connection
from starlette.responses import Response

from contract.checks import CheckType
from service.checks import actions as checks
from service.heartbeats import actions
from service.heartbeats.views import (
    AvailabilityShown,
    EventShown,
    EventsShown,
    PeriodShown,
    StatsShown,
    event_shown,
    percentage,
    period_shown,
)
from service.http.auth import CallerDep
from service.http.backend import Backend, BackendDep
from service.http.errors import NotFoundError
from service.http.operations import keyed_operations
from service.http.routes import answers, json, json_model
from service.http.strict import NO_NUL
from service.http.times import moment
from service.http.window import WindowDep
from service.results import actions as results

router = keyed_operations("Heartbeats", prefix="/v1/checks/heartbeats")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
EventId = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]
_EVENTS: Final = "/{checkId}/events"
_EVENT: Final = _EVENTS + "/{id}"
_AVAILABILITY: Final = "/{checkId}/availability"
_DAY_MS: Final = 86_400_000


class _Reading:
    """A request about one heartbeat of the caller's."""

    def __init__(self, check_id: CheckId, caller: CallerDep, backend: BackendDep) -> None:
        self.check_id = check_id
        self._account_id: str = caller.account_id
        self.backend: Backend = backend

    def now_ms(self, connection: Connection) -> int:
        """The time, once it is known that the heartbeat is the caller's."""
        found = checks.find(connection, self._account_id, self.check_id)
        if found.type != CheckType.HEARTBEAT:
            raise NotFoundError(f"The check {self.check_id} is no heartbeat.")
        return self.backend.clock.now_ms(connection)


ReadingDep = Annotated[_Reading, Depends(_Reading)]


@router.get(_EVENTS, responses=answers(200, list[EventsShown], "One item: all of it.", 404))
async def list_heartbeat_events(
    reading: ReadingDep,
    window: WindowDep,
    limit: Annotated[int, Query(ge=1, le=10, description="Events, the newest ones.")] = 10,
) -> Response:
    """List the newest pings of a heartbeat, and when none came in time."""

    def query(connection: Connection) -> EventsShown:
        now_ms = reading.now_ms(connection)
        between = window.closed(from_ms=0, now_ms=now_ms)
        found = actions.events(connection, reading.check_id, window=between, limit=limit)
        stats = StatsShown(
            last24_hours=_period(connection, reading.check_id, now_ms, _DAY_MS),
            last7_days=_period(connection, reading.check_id, now_ms, 7 * _DAY_MS),
        )
        return EventsShown(events=[event_shown(one) for one in found], stats=stats)

    found = await reading.backend.database.read(query)
    return json([found.model_dump(mode="json")])


@router.get(_EVENT, responses=answers(200, EventShown, "The event.", 404))
async def read_heartbeat_event(event_id: EventId, reading: ReadingDep) -> Response:
    """Read one ping of a heartbeat, or that none came."""

    def query(connection: Connection) -> EventShown:
        reading.now_ms(connection)
        return event_shown(actions.event(connection, reading.check_id, event_id))

    return json_model(await reading.backend.database.read(query))


@router.get(_AVAILABILITY, responses=answers(200, AvailabilityShown, "Of the time.", 404))
async def read_heartbeat_availability(reading: ReadingDep, window: WindowDep) -> Response:
    """Read how much of a time a heartbeat was well; without times, of the last 24 hours."""

    def query(connection: Connection) -> AvailabilityShown:
        now_ms = reading.now_ms(connection)
        from_ms, to_ms = window.closed(from_ms=now_ms - _DAY_MS, now_ms=now_ms)
        good, looks = results.passes(connection, reading.check_id, window=(from_ms, to_ms))
        return AvailabilityShown(
            check_id=reading.check_id,
            start_time=moment(from_ms),
            end_time=moment(to_ms),
            availability=percentage(good, looks),
        )

    return json_model(await reading.backend.database.read(query))


def _period(connection: Connection, check_id: str, now_ms: int, length_ms: int) -> PeriodShown:
    # Its end is exclusive, and an event may be of this very moment.
    end_ms = now_ms + 1
    now = actions.counts(connection, check_id, window=(end_ms - length_ms, end_ms))
    earlier = (end_ms - 2 * length_ms, end_ms - length_ms)
    return period_shown(now, actions.counts(connection, check_id, window=earlier))
