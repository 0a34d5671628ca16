"""How many jobs may run at once, per lane."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol

from contract.checks import Lane

_WORTH_ASKING: Final = 4
"""A busy lane asks for jobs once this part of its slots is free, or after a short while."""


class SlotGauge(Protocol):
    """Where free slots are shown."""

    def slots_free(self, lane: Lane, count: int) -> None:
        """So many more jobs may start in the lane."""


class Slots:
    """Counts free slots; a lane without any slots is not served."""

    def __init__(self, slots: Mapping[Lane, int], *, linger_s: float, gauge: SlotGauge) -> None:
        self._all = {on: count for on, count in slots.items() if count > 0}
        self._free = dict(self._all)
        self._linger_s = linger_s
        self._gauge = gauge
        self._freed = {on: asyncio.Event() for on in self._all}
        self._many_freed = {on: asyncio.Event() for on in self._all}
        for on, count in self._all.items():
            gauge.slots_free(on, count)

    def open(self, on: Lane, count: int) -> None:
        """Serve a lane that was not served before."""
        self._all[on] = self._free[on] = count
        self._freed[on], self._many_freed[on] = asyncio.Event(), asyncio.Event()
        self._gauge.slots_free(on, count)

    def __repr__(self) -> str:
        free = ", ".join(f"{on.value} {self._free[on]}/{self._all[on]}" for on in self._all)
        return f"Slots({free})"

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The lanes that are served."""
        return tuple(self._all)

    def free(self, on: Lane) -> int:
        """How many more jobs may start in the lane."""
        return self._free.get(on, 0)

    def take(self, on: Lane) -> bool:
        """Take a slot; False: none is free."""
        if self._free[on] == 0:
            return False
        self._free[on] -= 1
        self._gauge.slots_free(on, self._free[on])
        return True

    def give_back(self, on: Lane) -> None:
        """A job has left its slot."""
        self._free[on] += 1
        self._gauge.slots_free(on, self._free[on])
        if self._free[on] == 1:
            self._freed[on].set()
        if self._is_worth_asking(on):
            self._many_freed[on].set()

    async def some_free(self, on: Lane) -> int:
        """Wait for free slots; how many there are.

        While few are free it waits a moment for more: one claim for many jobs costs the service
        and the agent as much as a claim for one.
        """
        while self._free[on] == 0:
            self._freed[on].clear()
            await self._freed[on].wait()
        if not self._is_worth_asking(on):
            self._many_freed[on].clear()
            # wait_for of Python 3.11 forgets that it was cancelled when the event comes with it.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._linger_s):
                    await self._many_freed[on].wait()
        return self._free[on]

    def _is_worth_asking(self, on: Lane) -> bool:
        return self._free[on] * _WORTH_ASKING >= self._all[on]
