"""How often a key may ask: a leaky bucket per key, told by two numbers (GCRA)."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

GENERAL_PER_MINUTE: Final = 600
_MAX_KEYS: Final = 10_000


class RateLimit:
    """At most so many requests a minute for each name, all of them at once if need be."""

    def __init__(
        self, *, monotonic: Callable[[], float], per_minute: int = GENERAL_PER_MINUTE
    ) -> None:
        self._monotonic = monotonic
        self._step_s = 60 / per_minute
        self._free_at_s: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, name: str) -> float:
        """Count one request; 0 when it may go on, else how long to wait before the next try."""
        now_s = self._monotonic()
        free_at_s = max(self._free_at_s.get(name, now_s), now_s) + self._step_s
        if free_at_s - now_s > 60:
            return free_at_s - now_s - 60
        self._free_at_s[name] = free_at_s
        self._free_at_s.move_to_end(name)
        while len(self._free_at_s) > _MAX_KEYS:
            self._free_at_s.popitem(last=False)
        return 0
