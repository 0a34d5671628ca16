"""Agents as other features see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSeen:
    """An agent that said hello, as it was last seen."""

    location_id: str
    id: str
    version: str
    platform: str
    started_ms: int
    """Its first hello."""
    last_seen_ms: int
    slots: Mapping[str, int]
    """How many runs it takes at a time, by lane."""
    check_types: Sequence[str]
    """What it runs."""
    unavailable: Sequence[Mapping[str, Any]] | None
    """What it cannot run, and why. None: it did not say."""


class AgentPresence(NamedTuple):
    """When an agent was last heard of."""

    id: str
    last_seen_ms: int


@dataclass(frozen=True, slots=True)
class Opened:
    """Where a good key lets its agent in."""

    location_id: str
    key_id: str
