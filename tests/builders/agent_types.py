"""What the service knows of agents, as `picket up` reads it."""

from typing import Any, cast

from contract.checks import CheckType
from picket.api_client import PublicApi
from picket.up.agent_types import AgentTypes


class Locations:
    """A service with one location and one agent, which every look finds as the next of these."""

    def __init__(self, *agents: dict[str, Any]) -> None:
        self._agents = list(agents)

    async def locations(self, *, versions: bool = False) -> list[dict[str, Any]]:
        assert versions
        agent = self._agents.pop(0) if len(self._agents) > 1 else self._agents[0]
        return [{"runningAgents": [{"version": "1", "agents": [agent]}]}]


def an_agent(
    name: str, *lost: tuple[CheckType, bool], taken: set[CheckType], cause: str = "no Node"
) -> dict[str, Any]:
    """`lost`: types that it cannot run, and whether that is so of their scripts alone."""
    why = [
        {"type": kind, "cause": cause, "remedy": "set it up", "onlyWithScripts": scripts}
        for kind, scripts in lost
    ]
    return {"id": name, "checkTypes": sorted(taken), "unavailable": why}


def types_at(*agents: dict[str, Any]) -> AgentTypes:
    """Of the agent as it is found look by look; one called `old` does not count."""
    return AgentTypes(cast("PublicApi", Locations(*agents)), others=frozenset({"old"}))
