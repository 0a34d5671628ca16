"""Setting the starter checks right at a running service: made once, kept in step afterwards."""

from typing import Any

from picket.api_client import PublicApi
from picket.starter_checks import TAG, StarterCheck


async def set_up_checks(api: PublicApi, wanted: tuple[StarterCheck, ...]) -> None:
    """Create what is missing and give new fields to what differs, as after a change of ports."""
    existing = {(each.kind, each.name): each for each in await api.checks(tag=TAG)}
    for check in wanted:
        found = existing.get((check.kind, check.name))
        if found is None:
            await api.create(check.kind, check.body)
        elif not says(found.fields, check.body):
            await api.replace(check.kind, found.id, check.body)


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
