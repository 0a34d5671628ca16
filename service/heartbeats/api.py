"""Where jobs ping: no key but the token in the address."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Path, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contract.checks import CheckType
from service.checks import actions as checks
from service.clock import Clock
from service.db.engine import Database
from service.heartbeats import actions, store
from service.heartbeats.actions import ReceivedPing, is_watched, take_pings
from service.heartbeats.model import Event, PingState, TimerState
from service.http.auth import CallerDep, refuse_early
from service.http.dependencies import Backend, BackendDep
from service.http.errors import NotFoundError
from service.http.rate_limits.rate_limit import RateClass, RateLimits, place_of
from service.http.routing import answers, json, json_model, keyed_operations
from service.http.schema import NO_NUL, ResponseModel
from service.http.times import Moment, WindowDep, moment
from service.results import actions as results


@dataclass(frozen=True, slots=True)
class PingApi:
    """The ping path and what it is made of."""

    database: Database
    clock: Clock
    limits: RateLimits

    def routes(self) -> list[Route]:
        """GET and POST of `/ping/{token}`, with a slash at its end or without; no body is read."""
        return [self._route(path) for path in ("/ping/{token}", "/ping/{token}/")]

    def _route(self, path: str) -> Route:
        """Starlette lets HEAD in with GET, but who only looks at a link does not ping."""
        route = Route(path, self._ping)
        route.methods = {"GET", "POST"}
        return route

    async def _ping(self, request: Request) -> Response:
        token = str(request.path_params["token"])
        await self._hold(request, token)
        ping = ReceivedPing(
            ping_id=None,
            token=token,
            age_s=0,
            method=request.method,
            source=_read_source(request.headers),
            user_agent=request.headers.get("user-agent", ""),
        )

        def change(connection: Connection) -> int:
            return take_pings(connection, [ping], now_ms=self.clock.now_ms(connection))

        await self.database.write(change)
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def _hold(self, request: Request, token: str) -> None:
        """Looks the token up first, so that guessing tokens does not take the writer's time.

        It is looked up however many others were guessed from there: a ping that was lost would
        look like a job that did not run, and guessing costs a read of one row.

        Raises:
            NotFoundError: no check waits for pings with it.
            TooManyError: it pings too often, or too many others were guessed from there.
        """
        if not await self.database.read(lambda c: is_watched(c, token)):
            refuse_early(self.limits.wait_s(RateClass.GUESSED_PINGS, place_of(request)))
            raise NotFoundError("No check expects pings with this token.")
        refuse_early(self.limits.wait_s(RateClass.PINGS, token))


def _read_source(headers: Mapping[str, str]) -> str:
    return headers.get("origin") or headers.get("referer") or ""


_BAD: Final = (PingState.LATE, PingState.FAILING)


class EventShown(ResponseModel):
    """A ping, or a missing ping."""

    id: str
    state: PingState
    """FAILING: none came in time. All others are pings, by how they stand to the time when one was
    due."""
    timestamp: Moment
    source: str | None
    """The ping's Origin or Referer. Null: it had none, or there was no ping."""
    user_agent: str | None
    """Null likewise."""


class RatioShown(ResponseModel):
    """The percentage of events that are neither LATE nor FAILING. Null: there were no events."""

    previous_period: float | None
    current_period: float | None


class PeriodShown(ResponseModel):
    """Events of a period and of the one before it."""

    success_ratio: RatioShown
    total_entities_current_period: int


class StatsShown(ResponseModel):
    """Events up to now."""

    last24_hours: PeriodShown
    last7_days: PeriodShown


class EventsShown(ResponseModel):
    """The events of a heartbeat."""

    state: TimerState
    """How the heartbeat stands now. NEVER_PINGED: it waits for a first ping, and neither passes nor
    fails."""
    events: list[EventShown]
    """The newest first."""
    stats: StatsShown


class AvailabilityShown(ResponseModel):
    """The share of a time in which a heartbeat was healthy."""

    check_id: str
    start_time: Moment
    end_time: Moment
    availability: float | None
    """Percentage of its runs that passed; a failed one that a ping disproves which was relayed
    later counts as passed. Null: there were no runs."""


def render_event(event: Event) -> EventShown:
    """An event as its answer."""
    return EventShown(
        id=event.id,
        state=event.state,
        timestamp=moment(event.at_ms),
        source=event.source or None,
        user_agent=event.user_agent or None,
    )


def render_period(now: Mapping[str, int], before: Mapping[str, int]) -> PeriodShown:
    """How many events of each state there were in a period, and in the one before it."""
    return PeriodShown(
        success_ratio=RatioShown(
            previous_period=_success_ratio(before), current_period=_success_ratio(now)
        ),
        total_entities_current_period=sum(now.values()),
    )


def compute_percentage(good: int, of: int) -> float | None:
    """With two digits behind the point. None: of nothing."""
    return round(100 * good / of, 2) if of else None


def _success_ratio(counts: Mapping[str, int]) -> float | None:
    bad = sum(counts.get(state, 0) for state in _BAD)
    total = sum(counts.values())
    return compute_percentage(total - bad, total)


events_router = keyed_operations("Heartbeats", prefix="/v1/checks/heartbeats")

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
            raise NotFoundError(f"The check {self.check_id} is not a heartbeat.")
        return self.backend.clock.now_ms(connection)


ReadingDep = Annotated[_Reading, Depends(_Reading)]


@events_router.get(
    _EVENTS,
    responses=answers(200, list[EventsShown], "One item with the events and statistics.", 404),
)
async def list_heartbeat_events(
    reading: ReadingDep,
    window: WindowDep,
    limit: Annotated[int, Query(ge=1, le=10, description="Events, the newest ones.")] = 10,
) -> Response:
    """List the newest pings of a heartbeat, and missing ones."""

    def query(connection: Connection) -> EventsShown:
        now_ms = reading.now_ms(connection)
        between = window.closed(from_ms=0, now_ms=now_ms)
        found = store.list_events(connection, reading.check_id, window=between, limit=limit)
        stats = StatsShown(
            last24_hours=_read_period(connection, reading.check_id, now_ms, _DAY_MS),
            last7_days=_read_period(connection, reading.check_id, now_ms, 7 * _DAY_MS),
        )
        return EventsShown(
            state=actions.judge_now(connection, reading.check_id, now_ms=now_ms),
            events=[render_event(one) for one in found],
            stats=stats,
        )

    found = await reading.backend.database.read(query)
    return json([found.model_dump(mode="json")])


@events_router.get(_EVENT, responses=answers(200, EventShown, "The event.", 404))
async def read_heartbeat_event(event_id: EventId, reading: ReadingDep) -> Response:
    """Read one ping of a heartbeat, or a missing one."""

    def query(connection: Connection) -> EventShown:
        reading.now_ms(connection)
        return render_event(actions.find_event(connection, reading.check_id, event_id))

    return json_model(await reading.backend.database.read(query))


@events_router.get(
    _AVAILABILITY, responses=answers(200, AvailabilityShown, "The availability in that time.", 404)
)
async def read_heartbeat_availability(reading: ReadingDep, window: WindowDep) -> Response:
    """Read in which share of a time a heartbeat was healthy; by default the last 24 hours."""

    def query(connection: Connection) -> AvailabilityShown:
        now_ms = reading.now_ms(connection)
        from_ms, to_ms = window.closed(from_ms=now_ms - _DAY_MS, now_ms=now_ms)
        window_ms = (from_ms, to_ms)
        passed, looks = results.passes(connection, reading.check_id, window=window_ms)
        good = passed + actions.count_corrected(connection, reading.check_id, window=window_ms)
        return AvailabilityShown(
            check_id=reading.check_id,
            start_time=moment(from_ms),
            end_time=moment(to_ms),
            availability=compute_percentage(good, looks),
        )

    return json_model(await reading.backend.database.read(query))


def _read_period(connection: Connection, check_id: str, now_ms: int, length_ms: int) -> PeriodShown:
    # Its end is exclusive, and an event may be of this very moment.
    end_ms = now_ms + 1
    now = store.count_events(connection, check_id, window=(end_ms - length_ms, end_ms))
    earlier = (end_ms - 2 * length_ms, end_ms - length_ms)
    return render_period(now, store.count_events(connection, check_id, window=earlier))
