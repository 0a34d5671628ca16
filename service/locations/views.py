"""Private locations as the API shows them, with who is connected; pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from service.agents.model import AgentSeen
from service.http.times import moment, optional_moment
from service.locations.model import (
    KeyRow,
    KeyShown,
    LocationRow,
    LocationShown,
    LocationWithVersions,
    NewKeyShown,
    NewLocation,
    NewLocationShown,
    QueueMetrics,
    QueueSample,
    RunningAgent,
    RunningVersion,
    UnavailableTypeShown,
)

CONNECTED_MS: Final = 60_000
"""An agent that was not heard of for longer is gone: it asks for work at least each 30 s."""


def render_location(
    row: LocationRow,
    *,
    keys: Iterable[KeyRow],
    agents: Sequence[AgentSeen],
    outages: Mapping[str, int],
    now_ms: int,
) -> LocationShown:
    """A location without its agents' versions."""
    return LocationShown(
        **_fields(row, agents, outages, now_ms=now_ms),
        keys=[render_key(key) for key in keys if key.location_id == row.id],
    )


def render_location_with_versions(
    row: LocationRow,
    *,
    keys: Iterable[KeyRow],
    agents: Sequence[AgentSeen],
    outages: Mapping[str, int],
    now_ms: int,
) -> LocationWithVersions:
    """A location and the versions of the agents that are connected."""
    running = _render_versions(_list_connected(row, agents, now_ms))
    return LocationWithVersions(
        **_fields(row, agents, outages, now_ms=now_ms),
        keys=[render_key(key) for key in keys if key.location_id == row.id],
        min_agent_version=running[0].version if running else None,
        running_agents=running,
    )


def render_new_location(row: LocationRow, *, made: NewLocation) -> NewLocationShown:
    """A location at the only moment at which its key is known."""
    key = NewKeyShown(
        id=made.key_id,
        raw_key=made.raw_key,
        masked_key=made.masked_key,
        created_at=moment(row.created_ms),
    )
    return NewLocationShown(**_fields(row, (), {}, now_ms=row.created_ms), keys=[key])


def render_key(key: KeyRow) -> KeyShown:
    """A key without its secret."""
    return KeyShown(id=key.id, masked_key=key.masked, created_at=moment(key.created_ms))


def version_order(version: str) -> tuple[tuple[int, ...], str]:
    """Numbers count as numbers: 0.10.0 is newer than 0.9.1."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version)), version


def render_queue_metrics(samples: Sequence[QueueSample]) -> QueueMetrics:
    """A location's samples as parallel arrays."""
    return QueueMetrics(
        timestamps=[moment(one.at_ms) for one in samples],
        queue_size=[one.queue_size for one in samples],
        oldest_scheduled_check_run=[one.oldest_wait_ms / 1000 for one in samples],
    )


def _fields(
    row: LocationRow, agents: Sequence[AgentSeen], outages: Mapping[str, int], *, now_ms: int
) -> dict[str, Any]:
    seen = [agent.last_seen_ms for agent in agents if agent.location_id == row.id]
    return {
        "id": row.id,
        "name": row.name,
        "slug_name": row.slug_name,
        "icon": row.icon,
        "proxy_url": row.proxy_url,
        "created_at": moment(row.created_ms),
        "updated_at": optional_moment(row.updated_ms),
        "last_seen": optional_moment(max(seen, default=None)),
        "agent_count": len(_list_connected(row, agents, now_ms)),
        "available": row.id not in outages,
        "unavailable_since": optional_moment(outages.get(row.id)),
    }


def _list_connected(row: LocationRow, agents: Sequence[AgentSeen], now_ms: int) -> list[AgentSeen]:
    return [
        agent
        for agent in agents
        if agent.location_id == row.id and now_ms - agent.last_seen_ms <= CONNECTED_MS
    ]


def _render_versions(agents: list[AgentSeen]) -> list[RunningVersion]:
    """By version, lowest first."""
    ordered = sorted(agents, key=lambda agent: version_order(agent.version))
    return [
        _render_version(version, list(members))
        for version, members in groupby(ordered, key=lambda agent: agent.version)
    ]


def _render_version(version: str, members: list[AgentSeen]) -> RunningVersion:
    return RunningVersion(
        version=version,
        count=len(members),
        agents=[
            RunningAgent(
                id=agent.id,
                last_seen_at=moment(agent.last_seen_ms),
                check_types=list(agent.check_types),
                unavailable=[UnavailableTypeShown(**one) for one in agent.unavailable or ()],
            )
            for agent in members
        ],
    )
