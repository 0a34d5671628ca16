"""Which check types the agent can run, and the starter checks that match them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from contract.agent_api import UnavailableType
from contract.checks import CheckType
from picket.api_client import ApiUnreachableError, KnownCheck, PublicApi
from picket.up.starter_checks import TAG, StarterCheck
from runners.registry import RUNNABLE

_LOOK_EVERY_S: Final = 1.0
_LOOK_AGAIN_EVERY_S: Final = 5.0
"""The interval once all types are tested; the agent repeats failed tests every minute at most."""
_MOST_TRYING_S: Final = 120.0
"""How long the agent may test: a browser gets three attempts of half a minute each."""


async def list_agents(api: PublicApi) -> tuple[dict[str, Any], ...]:
    """Return the first location's agents that called in the last minute."""
    location = (await api.locations(versions=True))[0]
    versions = location["runningAgents"] or ()
    return tuple(agent for version in versions for agent in version["agents"])


class AgentTypes:
    """The check types of the agent that said hello since the other agents were listed."""

    def __init__(self, api: PublicApi, *, others: frozenset[str]) -> None:
        """`others`: ids of agents that are not ours, such as that of the last start."""
        self._api = api
        self._others = others
        self._began_s = time.monotonic()
        self._taken: frozenset[CheckType] = frozenset()
        self.unavailable: tuple[UnavailableType, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """One sentence for each type that cannot run here."""
        return tuple(one.sentence for one in self.unavailable)

    @property
    def is_known(self) -> bool:
        """Whether all types have been tested, or it has waited long enough."""
        decided = self._taken | {one.type for one in self.unavailable}
        return decided >= RUNNABLE or time.monotonic() - self._began_s > _MOST_TRYING_S

    async def look(self) -> bool:
        """Ask the service; False: our agent has not said hello yet."""
        agents = (one for one in await list_agents(self._api) if one["id"] not in self._others)
        if (ours := next(agents, None)) is None:
            return False
        self._taken = frozenset(map(CheckType, ours["checkTypes"]))
        self.unavailable = msgspec.convert(ours["unavailable"], tuple[UnavailableType, ...])
        return True

    def runs(self, check: StarterCheck) -> bool:
        """Whether the agent has tested such checks and can run them.

        It tests checks with scripts last.
        """
        if check.kind not in self._taken or self.lacks(check):
            return False
        return self.is_known or not check.has_scripts

    def lacks(self, check: StarterCheck) -> bool:
        """Whether it is known that the agent cannot run such checks."""
        return any(
            one.type is check.kind and (check.has_scripts or not one.only_with_scripts)
            for one in self.unavailable
        )

    async def follow(
        self,
        tell: Callable[[str], object],
        set_up: Callable[[], Awaitable[object]],
        on_known: Callable[[], object],
    ) -> None:
        """Report each type that becomes unavailable, until cancelled.

        `set_up`: called when the available types change; `on_known`: when all are tested.
        """
        told: frozenset[tuple[str, str, str]] = frozenset()
        set_up_for: object = None
        while True:
            lost = frozenset(one.key for one in self.unavailable)
            found = (self._taken, lost, self.is_known)
            if found != set_up_for:
                with suppress(ApiUnreachableError):
                    await set_up()
                    set_up_for = found
            for one in self.unavailable:
                if one.key not in told:
                    tell(one.sentence)
            told = lost
            if self.is_known:
                on_known()
            await asyncio.sleep(_LOOK_AGAIN_EVERY_S if self.is_known else _LOOK_EVERY_S)
            with suppress(ApiUnreachableError):  # its end is noticed elsewhere
                await self.look()


async def set_up_checks(
    api: PublicApi, wanted: tuple[StarterCheck, ...], types: AgentTypes
) -> None:
    """Create missing checks, and update those that differ.

    New checks that the agent has not tested yet are deactivated, and so are all that it cannot run.
    """
    existing = await _list_existing(api)
    for check in wanted:
        found = existing.get((check.kind, check.name))
        if found is not None:
            lasting = found.fields["activated"] and not types.lacks(check)
            await _update(api, check, found, activated=lasting or types.runs(check))
        elif not types.lacks(check):
            await api.create(check.kind, {**check.body, "activated": types.runs(check)})


async def update_checks(api: PublicApi, wanted: tuple[StarterCheck, ...]) -> None:
    """Update existing checks that differ, as after a change of ports, before any of them runs."""
    existing = await _list_existing(api)
    for check in wanted:
        if (found := existing.get((check.kind, check.name))) is not None:
            await _update(api, check, found, activated=found.fields["activated"])


async def _list_existing(api: PublicApi) -> dict[tuple[CheckType, str], KnownCheck]:
    return {(each.kind, each.name): each for each in await api.checks(tag=TAG)}


async def _update(
    api: PublicApi, check: StarterCheck, found: KnownCheck, *, activated: bool
) -> None:
    body = {**check.body, "activated": activated}
    if not contains(found.fields, body):
        await api.replace(check.kind, found.id, body)


def contains(answer: Any, wanted: Any) -> bool:
    """Whether the answer has all wanted values; it may have more (defaults, ids)."""
    if isinstance(wanted, dict):
        return isinstance(answer, dict) and all(
            key in answer and contains(answer[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(answer, list)
            and len(answer) == len(wanted)
            and all(contains(*pair) for pair in zip(answer, wanted, strict=True))
        )
    return bool(answer == wanted)
