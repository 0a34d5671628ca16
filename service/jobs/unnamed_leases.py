"""Leases that their agents do not name when they renew all that they hold.

Such an agent does not know of the job: the answer to its claim was lost for good.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

Lease = tuple[int, int]
"""(job, fence)"""

_APART_S: Final = 10.0
"""The least time between two renewals that leave a lease out: an answer, or a result, may be under
way at one of them."""
_MOST_AGENTS: Final = 10_000


class UnnamedLeases:
    """What the last complete renewal of each agent left out, in memory."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since: dict[tuple[str, str], dict[Lease, float]] = {}
        """When each lease was left out first, by (location, agent)."""

    def note(
        self, who: tuple[str, str], *, held: Collection[Lease], named: Collection[Lease]
    ) -> Sequence[Lease]:
        """Note a complete renewal; the leases that one before it left out as well."""
        now, before = self._monotonic(), self._since.pop(who, {})
        left_out = {lease: before.get(lease, now) for lease in held if lease not in named}
        if left_out:
            self._since[who] = left_out
            if len(self._since) > _MOST_AGENTS:
                del self._since[next(iter(self._since))]
        return [lease for lease, since in left_out.items() if now - since >= _APART_S]
