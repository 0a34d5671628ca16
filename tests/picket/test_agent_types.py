"""What `picket up` makes of the agents that the service knows."""

from typing import Any, cast

from contract.checks import CheckType
from picket import agent_types
from picket.agent_types import AgentTypes
from picket.api_client import PublicApi
from picket.demo_target import DemoPorts
from picket.starter_checks import starter_checks
from runners.registry import RUNNABLE


class Locations:
    """A service with one location and these agents."""

    def __init__(self, *agents: dict[str, Any]) -> None:
        self._agents = agents

    async def locations(self, *, versions: bool = False) -> list[dict[str, Any]]:
        assert versions
        return [{"runningAgents": [{"version": "1", "agents": list(self._agents)}]}]


def an_agent(name: str, *lost: tuple[CheckType, bool], taken: set[CheckType]) -> dict[str, Any]:
    why = [
        {"type": kind, "cause": "no Node", "remedy": "set it up", "onlyWithScripts": scripts}
        for kind, scripts in lost
    ]
    return {"id": name, "checkTypes": sorted(taken), "unavailable": why}


def types_at(*agents: dict[str, Any]) -> AgentTypes:
    return AgentTypes(cast("PublicApi", Locations(*agents)), others=frozenset({"old"}))


async def test_the_agent_of_an_earlier_start_does_not_count() -> None:
    types = types_at(an_agent("old", taken=set(RUNNABLE)))
    assert not await types.look()
    assert not types.is_known


async def test_a_type_that_the_agent_cannot_run_gets_a_line_and_no_starter_check() -> None:
    lost = ((CheckType.BROWSER, False), (CheckType.API, True))
    types = types_at(an_agent("ours", *lost, taken=set(RUNNABLE) - {CheckType.BROWSER}))
    assert await types.look()
    assert types.is_known
    assert types.lines == (
        "BROWSER checks cannot run here: no Node; set it up.",
        "API checks with scripts cannot run here: no Node; set it up.",
    )
    every = starter_checks(DemoPorts(), location="default")
    left_out = [check for check in every if not types.may_run(check)]
    assert {check.kind for check in left_out} == {CheckType.BROWSER, CheckType.API}
    assert all(
        "localSetupScript" in check.body for check in left_out if check.kind is CheckType.API
    )


async def test_types_that_were_not_tried_yet_are_waited_for_within_a_limit(
    monkeypatch: Any,
) -> None:
    types = types_at(an_agent("ours", taken={CheckType.URL}))
    assert await types.look()
    assert not types.is_known
    monkeypatch.setattr(agent_types, "_MOST_TRYING_S", 0.0)
    assert types.is_known
