"""SQL of agents and of the errors that they report."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from service.agents.model import AgentPresence, AgentSeen
from service.db.tables.locations import agent, agent_event

_SAME: Final = (agent.c.location_id == bindparam("location")) & (agent.c.id == bindparam("agent"))
_CHANGE: Final = update(agent).where(_SAME)
_ADD: Final = insert(agent)
_SEEN: Final = (
    update(agent)
    .where(
        agent.c.location_id == bindparam("location"),
        agent.c.id.in_(bindparam("agents", expanding=True)),
    )
    .values(last_seen_ms=bindparam("seen_ms"))
)
_SEEN_TOGETHER: Final = 1_000
_FORGET: Final = delete(agent).where(
    agent.c.location_id == bindparam("location"), agent.c.last_seen_ms < bindparam("before_ms")
)
_VERSION: Final = select(agent.c.version).where(_SAME, agent.c.key_id.is_not(None))
_WITH_KEY: Final = select(agent.c.id).where(
    agent.c.location_id == bindparam("location"), agent.c.key_id == bindparam("key")
)
_LAST_SEEN_AT: Final = select(
    agent.c.location_id, func.max(agent.c.last_seen_ms).label("last_ms")
).group_by(agent.c.location_id)
_PRESENT: Final = select(agent.c.id, agent.c.last_seen_ms).where(
    agent.c.location_id == bindparam("location")
)
_ADD_EVENTS: Final = insert(agent_event)
_OLD_EVENTS: Final = (
    select(agent_event.c.received_ms)
    .where(agent_event.c.location_id == bindparam("location"))
    .order_by(agent_event.c.received_ms.desc())
    .offset(bindparam("keep"))
    .limit(1)
)
_FORGET_EVENTS: Final = delete(agent_event).where(
    agent_event.c.location_id == bindparam("location"),
    agent_event.c.received_ms <= bindparam("until_ms"),
)
_SEEN_AT: Final = (
    select(
        agent.c.location_id,
        agent.c.id,
        agent.c.version,
        agent.c.platform,
        agent.c.started_ms,
        agent.c.last_seen_ms,
        agent.c.slots,
        agent.c.check_types,
        agent.c.unavailable,
    )
    .where(agent.c.location_id.in_(bindparam("locations", expanding=True)))
    .order_by(agent.c.id)
)
_TYPES_SEEN_AT: Final = select(agent.c.location_id, agent.c.check_types).where(
    agent.c.location_id.in_(bindparam("locations", expanding=True)),
    agent.c.last_seen_ms >= bindparam("since_ms"),
)


def put_agent(connection: Connection, row: Mapping[str, Any]) -> None:
    """Store an agent as it introduced itself; its first hello stays its start."""
    same = {"location": row["location_id"], "agent": row["id"]}
    changes = {
        name: value
        for name, value in row.items()
        if name not in {"id", "location_id", "started_ms"}
    }
    if not connection.execute(_CHANGE, {**same, **changes}).rowcount:
        connection.execute(_ADD, row)


def version_of(connection: Connection, location_id: str, agent_id: str) -> str | None:
    """Version of an agent. None: it never said hello here, or not since keys are noted."""
    found: str | None = connection.execute(
        _VERSION, {"location": location_id, "agent": agent_id}
    ).scalar_one_or_none()
    return found


def mark_seen(connection: Connection, agents: Iterable[tuple[str, str]], *, now_ms: int) -> None:
    """Agents, as (location, agent), were heard of."""
    by_location: dict[str, list[str]] = defaultdict(list)
    for location_id, agent_id in agents:
        by_location[location_id].append(agent_id)
    for location_id, found in by_location.items():
        for start in range(0, len(found), _SEEN_TOGETHER):
            together = found[start : start + _SEEN_TOGETHER]
            given = {"location": location_id, "agents": together, "seen_ms": now_ms}
            connection.execute(_SEEN, given)


def forget_agents(connection: Connection, location_id: str, *, before_ms: int) -> None:
    """Forget agents of a location that were last seen long ago."""
    connection.execute(_FORGET, {"location": location_id, "before_ms": before_ms})


def add_events(
    connection: Connection, location_id: str, rows: Sequence[Mapping[str, Any]], *, keep: int
) -> None:
    """Store error events; about the newest `keep` of a location stay."""
    connection.execute(_ADD_EVENTS, list(rows))
    oldest_ms = connection.execute(
        _OLD_EVENTS, {"location": location_id, "keep": keep}
    ).scalar_one_or_none()
    if oldest_ms is not None:
        connection.execute(_FORGET_EVENTS, {"location": location_id, "until_ms": oldest_ms})


def seen_at(connection: Connection, location_ids: Sequence[str]) -> tuple[AgentSeen, ...]:
    """The agents of these locations that said hello."""
    rows = connection.execute(_SEEN_AT, {"locations": list(location_ids)})
    return tuple(AgentSeen(**row._mapping) for row in rows)  # noqa: SLF001 - SQLAlchemy's documented face of a row


def last_seen_at(connection: Connection) -> dict[str, int]:
    """When any agent was last heard of, by location; without those where none ever was."""
    return {row.location_id: row.last_ms for row in connection.execute(_LAST_SEEN_AT)}


def presence_at(connection: Connection, location_id: str) -> tuple[AgentPresence, ...]:
    """When each agent of a location was last heard of."""
    rows = connection.execute(_PRESENT, {"location": location_id})
    return tuple(AgentPresence(*row) for row in rows)


def with_key(connection: Connection, location_id: str, key_id: str) -> list[str]:
    """The agents of a location that came with this key."""
    values = {"location": location_id, "key": key_id}
    return list(connection.execute(_WITH_KEY, values).scalars())


def types_seen_at(
    connection: Connection, location_ids: Collection[str], *, since_ms: int
) -> Mapping[str, Collection[str]]:
    """The check types that agents run which were heard of since then, by location."""
    if not location_ids:
        return {}
    values = {"locations": list(location_ids), "since_ms": since_ms}
    found: dict[str, set[str]] = defaultdict(set)
    for row in connection.execute(_TYPES_SEEN_AT, values):
        found[row.location_id].update(row.check_types)
    return found
