"""What agents do that the database remembers: one transaction per function."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from contract.agent_api import ErrorEvent, Hello, LocationInfo, UnavailableType
from contract.checks import CheckType
from service.agents import store
from service.agents.model import AgentPresence, AgentSeen, Opened
from service.db.ids import new_id
from service.http.errors import LocationKeyError
from service.locations import actions as locations

_KEPT_AGENTS_MS: Final = 7 * 86_400_000
_KEPT_EVENTS: Final = 1_000
_MOST_LETTERS: Final = {"message": 10_000, "stack_trace": 50_000}
_MOST_OTHER_LETTERS: Final = 200
_MOST_UNAVAILABLE: Final = 2 * len(CheckType)
"""Each type, and its checks with scripts."""
_MOST_LETTERS_OF_WHY: Final = 1_000


def say_hello(connection: Connection, opened: Opened, hello: Hello, *, now_ms: int) -> LocationInfo:
    """An agent introduces itself; those that were not seen for a week are forgotten.

    Raises:
        LocationKeyError: the key has ended, or was deleted with its location.
    """
    location_id = opened.location_id
    location = locations.find_in_any_account(connection, location_id)
    good = (key.id for key in locations.list_keys(connection, [location_id]))
    if location is None or opened.key_id not in good:
        raise LocationKeyError
    times = {"started_ms": now_ms, "last_seen_ms": now_ms}
    row = {"location_id": location_id, "key_id": opened.key_id, **_columns(hello), **times}
    store.put_agent(connection, row)
    store.forget_agents(connection, location_id, before_ms=now_ms - _KEPT_AGENTS_MS)
    return LocationInfo(id=location_id, slug_name=location.slug_name, proxy_url=location.proxy_url)


def _columns(hello: Hello) -> dict[str, object]:
    return {
        "id": hello.agent_id,
        "version": hello.version,
        "platform": hello.platform,
        "runtimes": hello.runtimes,
        "check_types": [check_type.value for check_type in hello.check_types],
        "unavailable": [_unavailable(one) for one in hello.unavailable[:_MOST_UNAVAILABLE]],
        "slots": {lane.value: slots for lane, slots in hello.slots.items()},
    }


def _unavailable(one: UnavailableType) -> dict[str, object]:
    return {
        "type": one.type.value,
        "cause": one.cause[:_MOST_LETTERS_OF_WHY],
        "remedy": one.remedy[:_MOST_LETTERS_OF_WHY],
        "only_with_scripts": one.only_with_scripts,
    }


def take_events(
    connection: Connection,
    events: Iterable[ErrorEvent],
    *,
    location_id: str,
    agent_id: str,
    now_ms: int,
) -> None:
    """Store error events of an agent, each text cut to a sensible length."""
    rows = [
        {
            "id": new_id(now_ms),
            "location_id": location_id,
            "agent_id": agent_id,
            "received_ms": now_ms,
            "message": _cut(event, "message"),
            "stack_trace": _cut(event, "stack_trace"),
            "agent_version": _cut(event, "agent_version"),
            "platform": _cut(event, "platform"),
            "runtime_version": _cut(event, "runtime_version"),
        }
        for event in events
    ]
    if rows:
        store.add_events(connection, location_id, rows, keep=_KEPT_EVENTS)


def seen_at(connection: Connection, location_ids: Sequence[str]) -> tuple[AgentSeen, ...]:
    """The agents of these locations that said hello."""
    return store.seen_at(connection, location_ids)


def last_seen_at(connection: Connection) -> dict[str, int]:
    """When any agent was last heard of, by location; without those where none ever was."""
    return store.last_seen_at(connection)


def presence_at(connection: Connection, location_id: str) -> tuple[AgentPresence, ...]:
    """When each agent of a location was last heard of."""
    return store.presence_at(connection, location_id)


def with_key(connection: Connection, location_id: str, key_id: str) -> list[str]:
    """The agents of a location that came with this key."""
    return store.with_key(connection, location_id, key_id)


def types_seen_at(
    connection: Connection, location_ids: Collection[str], *, since_ms: int
) -> Mapping[str, Collection[str]]:
    """The check types that agents run which were heard of since then, by location."""
    return store.types_seen_at(connection, location_ids, since_ms=since_ms)


def _cut(event: ErrorEvent, field: str) -> str:
    text: str = getattr(event, field)
    return text[: _MOST_LETTERS.get(field, _MOST_OTHER_LETTERS)]
