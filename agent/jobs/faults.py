"""Types whose runs break on this machine's disk, browser or memory, one after the other."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Final

from agent.self_test import Trial
from contract.checks import CheckSpec, CheckType, Lane, check_type, lane
from runners.scripting.playwright.verdict import BrowserDidNotStartError

IN_A_ROW: Final = 2
"""How many runs of a type may break with none between them that ends; then the type is withdrawn. A
single one may have met a passing fault."""
_WAITING: Final = 64


@dataclass(frozen=True, slots=True)
class MachineFault:
    """What broke the runs of a type."""

    trial: Trial
    problem: Exception


class MachineFaults:
    """Counts by type what breaks on this machine, and tells whoever withdraws types."""

    def __init__(self) -> None:
        self._in_a_row: Counter[Trial] = Counter()
        self._found: asyncio.Queue[MachineFault] = asyncio.Queue(_WAITING)

    def note(self, spec: CheckSpec, problem: Exception) -> None:
        """A run broke; what is no fault of the machine does not count."""
        if not isinstance(problem, OSError | BrowserDidNotStartError):
            return
        trial = _find_trial(spec)
        self._in_a_row[trial] += 1
        if self._in_a_row[trial] >= IN_A_ROW and not self._found.full():
            self._found.put_nowait(MachineFault(trial, problem))

    def note_end(self, spec: CheckSpec) -> None:
        """A run came to its end."""
        self._in_a_row.pop(_find_trial(spec), None)

    async def next(self, wait_s: float | None) -> MachineFault | None:
        """The next type to withdraw, as soon as there is one. None: there was none in time.

        `wait_s`: None: without limit.
        """
        try:
            async with asyncio.timeout(wait_s):
                return await self._found.get()
        except TimeoutError:
            return None


def _find_trial(spec: CheckSpec) -> Trial:
    kind = check_type(spec)
    return Trial(check_type=kind, with_scripts=kind is CheckType.API and lane(spec) is Lane.MAIN)
