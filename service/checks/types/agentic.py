"""Agentic checks in the API."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from contract.checks import CheckType
from service.checks.fields import (
    DEFAULT_REGION,
    AgentRuntime,
    Listing,
    MaybeAgentRuntime,
    MinuteFrequency,
    Prompt,
    Region,
    fill_in_region,
)
from service.checks.rules import NO_PHASES, NO_VARIABLES
from service.checks.schemas import MinuteCheckWrite
from service.checks.types.definition import TypeDefinition

_NOT_AGENTIC: Final = {
    "privateLocations": "would not be used: AGENTIC checks run in regions; name them in locations",
    "groupId": "would have no effect: AGENTIC checks are in no group; omit it",
    "retryStrategy": "would have no effect: AGENTIC checks are not retried; omit it",
    "runParallel": "would have no effect: AGENTIC checks run in one region at a time; omit it",
    "shouldFail": "would have no effect: the prompt itself decides what must fail; omit it",
    "triggerIncident": "would have no effect: AGENTIC checks open no incident; omit it",
}


class AgenticCheckWrite(MinuteCheckWrite):
    """A goal in plain words that a model tries to reach. No agent runs these yet: runs are missed.

    It runs in regions, at one after the other, in no group and without retries.
    """

    kind = CheckType.AGENTIC
    refused = NO_PHASES | NO_VARIABLES | _NOT_AGENTIC
    double_check: bool = False
    """No effect: there are no retries."""
    locations: Annotated[Listing[Region], AfterValidator(fill_in_region)] = Field(
        default=[DEFAULT_REGION]
    )
    """Regions; each needs a private location with its name. Null or empty: us-east-1."""
    prompt: Prompt
    """What to do, and what must be true in the end; `{{NAME}}` is replaced with a variable."""
    agent_runtime: MaybeAgentRuntime = AgentRuntime()
    """Null: without skills."""
    frequency: MinuteFrequency = 30
    """Minutes between runs."""

    @classmethod
    def spec_fields(cls, doc: Mapping[str, Any]) -> dict[str, Any]:
        """Skills stand by themselves."""
        return {**super().spec_fields(doc), "skills": doc["agentRuntime"]["skills"]}


AGENTIC = TypeDefinition(
    write=AgenticCheckWrite,
    purpose="Gives a model a goal in words. No agent runs these yet: runs are missed.",
    remark="No agent runs these yet: each of its runs is recorded as missed.",
    example={
        "name": "Basket",
        "prompt": (
            "Open https://shop.example, put a lamp into the basket, and see that it is there."
        ),
        "agentRuntime": {"skills": ["browser"]},
        "locations": ["us-east-1"],
        "frequency": 30,
    },
)
