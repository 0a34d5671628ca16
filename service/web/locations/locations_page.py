"""`/locations`: where checks run, who runs them there, and what nobody ran."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from contract.checks import Lane
from contract.release import RELEASE
from service.agents import actions as agents
from service.agents.model import AgentSeen
from service.checks import actions as checks
from service.jobs import actions as jobs
from service.jobs.model import QueueDepth
from service.locations import actions as locations
from service.locations.model import MAX_ACTIVE_KEYS, KeyRow, LocationRow
from service.locations.secrets import decrypt_for_people
from service.locations.views import CONNECTED_MS, version_order
from service.results import actions as results
from service.results.model import Cause
from service.web.api_calls import ApiAnswer
from service.web.form_data import FormData, read_form
from service.web.locations.start_commands import is_loopback, list_commands
from service.web.page_routing import Pages
from service.web.states import State, draw_sparkline
from service.web.visit import Visit

_DAY_MS: Final = 86_400_000
_SHOWN_GONE_MS: Final = 3_600_000
"""How long an agent is shown after it was heard of last."""
_POINTS: Final = 96
_UNPROCESSABLE: Final = 422
_LANES: Final = {Lane.UPTIME: "network", Lane.MAIN: "scripts"}
"""What runs in a lane, in words."""
_CAUSES: Final = {
    Cause.NO_AGENT: "no agent was connected that runs the type",
    Cause.QUEUE_EXPIRED: "all slots were taken for too long",
    Cause.SERVICE_DOWN: "the service was not running",
    Cause.AGENT_LOST: "the agent disappeared while it ran",
    Cause.PAUSED: "the check was paused before it ran",
    Cause.OVERLOADED: "the agents had no room",
    Cause.AGENT_ERROR: "the agents failed; their logs say why",
    Cause.UNREADABLE: "a stored secret could not be decrypted",
}
_FIELDS: Final = {"name": "name", "slugName": "slug", "proxyUrl": "proxy"}
"""The API's fields, and the form's."""


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list, one location, and what can be done to it."""
    return (
        pages.show("/locations", _list),
        pages.show("/locations/new", _ask),
        pages.change("/locations/new", _create),
        pages.show("/locations/{id}", _show),
        pages.change("/locations/{id}", _change),
        pages.change("/locations/{id}/keys", _create_key),
        pages.change("/locations/{id}/keys/{key}/revoke", _revoke_key),
        pages.change("/locations/{id}/delete", _delete),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agent:
    """An agent as a row."""

    seen: AgentSeen
    is_connected: bool
    is_outdated: bool
    held: int
    """How many runs it holds now."""

    @property
    def slots(self) -> Sequence[str]:
        """How many runs it takes at a time, in words."""
        return [f"{count} {_LANES[Lane(lane)]}" for lane, count in self.seen.slots.items() if count]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A location with whoever is there."""

    row: LocationRow
    agents: Sequence[_Agent]
    depth: QueueDepth
    is_used: bool
    unavailable_since_ms: int | None
    """None: it is available."""

    @property
    def connected(self) -> Sequence[_Agent]:
        """The agents that are there now."""
        return [one for one in self.agents if one.is_connected]

    @property
    def last_seen_ms(self) -> int | None:
        """When any agent was heard of last. None: none ever was."""
        return max((one.seen.last_seen_ms for one in self.agents), default=None)

    @property
    def unable(self) -> Sequence[tuple[str, str]]:
        """What the connected agents cannot run, and why: one line for each cause."""
        lists = (list_unable(one.seen) for one in self.connected)
        return list(dict.fromkeys((types, cause) for of in lists for types, cause, _ in of))

    @property
    def state(self) -> State:
        """How it stands."""
        if not self.connected:
            return State.FAILING if self.is_used else State.UNKNOWN
        unable = any(one.seen.unavailable or one.is_outdated for one in self.connected)
        return State.DEGRADED if unable else State.PASSING


def list_unable(seen: AgentSeen) -> Sequence[tuple[str, str, str]]:
    """What an agent cannot run: the types, why, and the remedy; one entry for each cause."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in seen.unavailable or ():
        what = f"{one['type']} with scripts" if one["only_with_scripts"] else str(one["type"])
        found.setdefault((str(one["cause"]), str(one["remedy"])), []).append(what)
    return [(_join(types), cause, remedy) for (cause, remedy), types in found.items()]


def _join(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


async def _list(visit: Visit) -> Response:
    def read(connection: Connection) -> tuple[Sequence[_Place], int]:
        now_ms = visit.now_ms(connection)
        rows = locations.list_all(connection, visit.account_id)
        return _places(connection, rows, now_ms=now_ms), now_ms

    places, now_ms = await visit.read(read)
    return visit.page("locations.html", places=places, now_ms=now_ms)


def _places(
    connection: Connection, rows: Sequence[LocationRow], *, now_ms: int
) -> Sequence[_Place]:
    ids = [row.id for row in rows]
    seen = agents.seen_at(connection, ids)
    held = jobs.count_held(connection, ids)
    depths = jobs.load_queue_depths(connection, now_ms=now_ms)
    used = checks.list_locations_in_use(connection, ids)
    outages = locations.list_outages(connection)
    return [
        _Place(
            row=row,
            agents=_agents(row, seen, held, now_ms=now_ms),
            depth=depths.get(row.id, QueueDepth(0, 0)),
            is_used=row.id in used,
            unavailable_since_ms=outages.get(row.id),
        )
        for row in rows
    ]


def _agents(
    row: LocationRow,
    seen: Sequence[AgentSeen],
    held: Mapping[tuple[str, str], int],
    *,
    now_ms: int,
) -> Sequence[_Agent]:
    """The connected ones first, then those that left within the hour."""
    shown = [
        _Agent(
            seen=one,
            is_connected=now_ms - one.last_seen_ms <= CONNECTED_MS,
            is_outdated=version_order(one.version) < version_order(RELEASE),
            held=held.get((row.id, one.id), 0),
        )
        for one in seen
        if one.location_id == row.id
    ]
    newest_first = sorted(shown, key=lambda one: -one.seen.last_seen_ms)
    return [
        one
        for index, one in enumerate(newest_first)
        if index == 0 or now_ms - one.seen.last_seen_ms <= _SHOWN_GONE_MS
    ]


async def _show(visit: Visit) -> Response:
    return await _page(visit)


async def _page(
    visit: Visit,
    *,
    problem: ApiAnswer | None = None,
    form: FormData | None = None,
) -> Response:
    location_id = visit.request.path_params["id"]

    def read(connection: Connection) -> dict[str, object]:
        now_ms = visit.now_ms(connection)
        row = locations.find(connection, visit.account_id, location_id)
        (place,) = _places(connection, [row], now_ms=now_ms)
        samples = locations.list_samples(
            connection, visit.account_id, location_id, from_ms=now_ms - _DAY_MS, until_ms=now_ms
        )
        users, names = checks.find_location_users(connection, location_id)
        return {
            "place": place,
            "row": visit.viewer.reveal(row, decrypt_for_people),
            "now_ms": now_ms,
            "queue": draw_sparkline(_peaks([one.queue_size for one in samples])),
            "queue_peak": max((one.queue_size for one in samples), default=0),
            "causes": _causes(connection, visit, row, now_ms=now_ms),
            "users": users,
            "user_names": names,
            "keys": _keys(connection, place),
        }

    found = await visit.read(read)
    return visit.page_with_key(
        "location.html",
        of=location_id,
        status=_UNPROCESSABLE if problem else 200,
        **found,
        list_commands=list_commands,
        is_local=is_loopback(visit.base_url),
        list_unable=list_unable,
        release=RELEASE,
        most_keys=MAX_ACTIVE_KEYS,
        service_url=visit.base_url,
        once=token_hex(16),
        problem=problem.message if problem else "",
        wrong=_wrong(problem),
        typed=form,
    )


def _peaks(values: Sequence[int]) -> Sequence[float | None]:
    """The highest of each stretch, so that no peak is lost."""
    width = max(1, -(-len(values) // _POINTS))
    return [max(values[at : at + width]) for at in range(0, len(values), width)]


def _causes(
    connection: Connection, visit: Visit, row: LocationRow, *, now_ms: int
) -> Sequence[tuple[str, int]]:
    counted = results.count_causes(
        connection, visit.account_id, row.slug_name, from_ms=now_ms - _DAY_MS
    )
    most_first = sorted(counted.items(), key=lambda one: -one[1])
    return [(_CAUSES[cause], count) for cause, count in most_first]


def _keys(connection: Connection, place: _Place) -> Sequence[tuple[KeyRow, int]]:
    """Each key, and how many of the connected agents use it."""
    connected = {one.seen.id for one in place.connected}
    return [
        (key, len(connected.intersection(agents.with_key(connection, place.row.id, key.id))))
        for key in locations.list_keys(connection, [place.row.id])
    ]


def _wrong(problem: ApiAnswer | None) -> frozenset[str]:
    """The fields of the form that are wrong."""
    keys = problem.wrong_fields if problem else ()
    return frozenset(_FIELDS[key] for key in keys if key in _FIELDS)


async def _ask(visit: Visit) -> Response:
    return _new_page(visit)


def _new_page(
    visit: Visit, *, problem: ApiAnswer | None = None, form: FormData | None = None
) -> Response:
    return visit.page(
        "location_new.html",
        status=_UNPROCESSABLE if problem else 200,
        once=token_hex(16),
        problem=problem.message if problem else "",
        wrong=_wrong(problem),
        typed=form,
    )


async def _create(visit: Visit) -> Response:
    form = await read_form(visit.request)
    body = {"slugName": form.text("slug"), **_body(form)}
    answer = await visit.call("POST /v1/private-locations", body, once=form.text("once"))
    if answer.is_error:
        return _new_page(visit, problem=answer, form=form)
    made = answer.body
    return visit.go_with_key(f"/locations/{made['id']}", made["keys"][0]["rawKey"], of=made["id"])


async def _change(visit: Visit) -> Response:
    form, location_id = await read_form(visit.request), visit.request.path_params["id"]
    answer = await visit.call(f"PUT /v1/private-locations/{location_id}", _body(form))
    if answer.is_error:
        return await _page(visit, problem=answer, form=form)
    return visit.go(f"/locations/{location_id}")


def _body(form: FormData) -> dict[str, object]:
    return {
        "name": form.text("name"),
        "icon": form.text("icon") or "location",
        "proxyUrl": form.text("proxy") or None,
    }


async def _create_key(visit: Visit) -> Response:
    form, location_id = await read_form(visit.request), visit.request.path_params["id"]
    answer = await visit.call(
        f"POST /v1/private-locations/{location_id}/keys", once=form.text("once")
    )
    if answer.is_error:
        return await _page(visit, problem=answer)
    return visit.go_with_key(f"/locations/{location_id}", answer.body["rawKey"], of=location_id)


async def _revoke_key(visit: Visit) -> Response:
    location_id, key_id = visit.request.path_params["id"], visit.request.path_params["key"]
    answer = await visit.call(f"DELETE /v1/private-locations/{location_id}/keys/{key_id}")
    if answer.is_error:
        return await _page(visit, problem=answer)
    return visit.go(f"/locations/{location_id}")


async def _delete(visit: Visit) -> Response:
    location_id = visit.request.path_params["id"]
    answer = await visit.call(f"DELETE /v1/private-locations/{location_id}")
    if answer.is_error:
        return await _page(visit, problem=answer)
    return visit.go("/locations")
