"""Setting the starter checks right at a running service: made once, kept in step afterwards."""

from typing import Any

from picket.agent_types import AgentTypes
from picket.api_client import PublicApi
from picket.starter_checks import TAG, StarterCheck


async def set_up_checks(
    api: PublicApi, wanted: tuple[StarterCheck, ...], types: AgentTypes
) -> None:
    """Create what is missing and give new fields to what differs, as after a change of ports.

    Deactivated is what the agent has not tried yet, or cannot run: nobody would run it.
    """
    existing = {(each.kind, each.name): each for each in await api.checks(tag=TAG)}
    for check in wanted:
        found = existing.get((check.kind, check.name))
        body = {**check.body, "activated": types.runs(check)}
        if found is None:
            if not types.lacks(check):
                await api.create(check.kind, body)
        elif not says(found.fields, body):
            await api.replace(check.kind, found.id, body)


def says(answer: Any, wanted: Any) -> bool:
    """Whether the answer holds everything that is wanted; it may hold more (defaults, ids)."""
    if isinstance(wanted, dict):
        return isinstance(answer, dict) and all(
            key in answer and says(answer[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(answer, list)
            and len(answer) == len(wanted)
            and all(says(*pair) for pair in zip(answer, wanted, strict=True))
        )
    return bool(answer == wanted)
