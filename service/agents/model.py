"""Agents as other features see them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSeen:
    """An agent that said hello, as it was last seen."""

    location_id: str
    id: str
    version: str
    last_seen_ms: int


@dataclass(frozen=True, slots=True)
class Opened:
    """Where a good key lets its agent in."""

    location_id: str
    key_id: str
