"""Heartbeats that would fail wait until no agent holds a ping that could save them.

Agents take pings while the service is away and relay them later. Each claim says how old the oldest
ping is that waits at its agent; what came in there before is with the service.
"""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

from contract.checks import CheckType, HeartbeatSpec
from contract.wire import decode
from service.agents.model import AgentPresence
from service.checks.secrets import is_encrypted
from service.clock import Gap
from service.jobs.model import ReadyJob

RECHECK_MS: Final = 500
_CONNECTED_MS: Final = 60_000
"""An agent that was heard of since then may hold pings; it claims every 30 s at least."""
_RETURN_MS: Final = 30_000
"""How long after a gap of the service those agents are awaited that were connected before it."""
_UNDER_WAY_MS: Final = 2_000
"""A ping may be taken after its agent has written a claim and before the service has read it."""
_LONGEST_HOLD_MS: Final = 20_000
"""The run should end before the next one is due, which may be in 30 s."""
_MOST_HELD: Final = 10_000


def _uptime_s() -> float:
    """The time since the machine's boot, in which it may have been suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class PingReports:
    """Up to when the pings that each agent took have been relayed, as its claims say; in memory."""

    def __init__(self, uptime_s: Callable[[], float] = _uptime_s, *, most: int = 100_000) -> None:
        self._uptime_s = uptime_s
        self._most = most
        self._relayed_until: dict[str, float] = {}
        """By agent, the last heard last."""
        self._held_since_ms: dict[int, int] = {}
        """When each heartbeat was held back first, by job."""

    def held_since_ms(self, job_id: int, now_ms: int) -> int:
        """When a heartbeat was held back first, which may be now."""
        since_ms = self._held_since_ms.setdefault(job_id, now_ms)
        if len(self._held_since_ms) > _MOST_HELD:
            del self._held_since_ms[next(iter(self._held_since_ms))]
        return since_ms

    def note(self, agent_id: str, oldest_ping_s: float | None) -> None:
        """A claim came in. None: no ping waits at its agent."""
        self._relayed_until.pop(agent_id, None)
        self._relayed_until[agent_id] = self._uptime_s() - (oldest_ping_s or 0.0)
        if len(self._relayed_until) > self._most:
            del self._relayed_until[next(iter(self._relayed_until))]

    def relayed_until_ms(self, now_ms: int) -> dict[str, int]:
        """The times by agent, by the clock that says `now_ms`; any thread may ask."""
        now = self._uptime_s()
        return {
            agent_id: now_ms - round((now - until) * 1000)
            for agent_id, until in self._relayed_until.copy().items()
        }


class PingGate:
    """Decides in one round of assigning which heartbeats wait."""

    def __init__(
        self,
        load_agents: Callable[[], Collection[AgentPresence]],
        reports: PingReports,
        *,
        gap: Gap,
        now_ms: int,
    ) -> None:
        """Take what decides.

        Args:
            load_agents: loads the agents of the location; called only when a heartbeat would fail.
            reports: what their claims said.
            gap: the service's last one.
            now_ms: the time of the round.
        """
        self._load_agents = load_agents
        self._reports = reports
        self._gap = gap
        self._now_ms = now_ms
        self._relayed_ms: list[int] | None = None
        """Up to when each awaited agent has relayed. None: not loaded."""
        self.needed_ms = 0
        """Up to when agents have to have relayed for the heartbeats that wait. 0: none waits."""

    def holds_back(self, job: ReadyJob) -> bool:
        """Whether the job is a heartbeat that would fail, and a ping may be on its way."""
        deadline_ms = deadline_of(job)
        if deadline_ms is None or self._now_ms <= deadline_ms:
            return False
        if self._relayed_ms is None:
            known = self._reports.relayed_until_ms(self._now_ms)
            self._relayed_ms = [known.get(one.id, 0) for one in self._awaited()]
        needed_ms = deadline_ms + _UNDER_WAY_MS
        if all(until_ms >= needed_ms for until_ms in self._relayed_ms):
            return False
        if self._now_ms >= self._reports.held_since_ms(job.id, self._now_ms) + _LONGEST_HOLD_MS:
            return False
        self.needed_ms = max(self.needed_ms, needed_ms)
        return True

    def _awaited(self) -> Iterable[AgentPresence]:
        """The agents that are connected, or were before the gap and may not be back yet."""
        since_ms = self._now_ms - _CONNECTED_MS
        if self._now_ms < self._gap.ended_ms + _RETURN_MS:
            since_ms = min(since_ms, self._gap.began_ms - _CONNECTED_MS)
        return (one for one in self._load_agents() if one.last_seen_ms >= since_ms)


def deadline_of(job: ReadyJob) -> int | None:
    """When the heartbeat fails unless a ping comes first. None: it is no heartbeat, or cannot."""
    if job.check_type != CheckType.HEARTBEAT or job.last_ping_ms is None or is_encrypted(job.spec):
        return None
    spec = decode(job.spec, HeartbeatSpec)
    return job.last_ping_ms + round((spec.period_s + spec.grace_s) * 1000)
