"""Parts that the bodies of scripted checks are made of."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from contract.playwright_config import config_problem
from contract.scripts import MAX_PATH_LETTERS, path_problem, script_problem, sha256_problem
from contract.targets import hostname_problem
from service.checks.fields import Listing, Region
from service.http.strict import Strict, Text, blank_is_none, field_error, judged_by

DEFAULT_REGION: Final[Region] = "us-east-1"
"""Where the established service runs what names no place."""


def _may_stand(config: Mapping[str, Any]) -> Mapping[str, Any]:
    if found := config_problem(config):
        raise field_error(*found)
    return config


PhaseScript = Annotated[
    Annotated[Text, judged_by(script_problem)] | None, BeforeValidator(blank_is_none)
]
"""Node.js code of a phase. Null or empty: there is no such phase."""
Script = Annotated[Text, Field(min_length=1), judged_by(script_problem)]
"""Code that a check consists of."""
ScriptPath = Annotated[
    Annotated[Text, Field(max_length=MAX_PATH_LETTERS), judged_by(path_problem)] | None,
    BeforeValidator(blank_is_none),
]
PlaywrightConfig = Annotated[dict[str, Any], AfterValidator(_may_stand)]
Domain = Annotated[
    Annotated[Text, Field(max_length=253), judged_by(hostname_problem)] | None,
    BeforeValidator(blank_is_none),
]
Sha256 = Annotated[str, Field(json_schema_extra={"pattern": "^[0-9a-f]{64}$"})]
BundlePath = Annotated[Sha256, judged_by(sha256_problem)]
Browser = Literal["chromium", "firefox", "webkit"]
Engine = Annotated[Literal["node", "bun", ""] | None, BeforeValidator(blank_is_none)]
Command = Annotated[Text, Field(max_length=2000)]
Label = Annotated[Annotated[Text, Field(max_length=200)] | None, BeforeValidator(blank_is_none)]


class DependencyWrite(Strict):
    """A further file that a script imports."""

    path: Annotated[Text, Field(min_length=1, max_length=MAX_PATH_LETTERS)]
    """From the folder that `scriptPath` counts from."""
    content: Text


class AgentRuntime(Strict):
    """What the model of an AGENTIC check has beside its prompt."""

    skills: Listing[Text] = Field(default_factory=list)


def somewhere(regions: list[Region]) -> list[Region]:
    """The regions, or the established service's one where none is named."""
    return regions or [DEFAULT_REGION]


def _none_is_default(given: AgentRuntime | None) -> AgentRuntime:
    return given or AgentRuntime()


MaybeAgentRuntime = Annotated[AgentRuntime | None, AfterValidator(_none_is_default)]
Prompt = Annotated[Text, Field(min_length=1, max_length=10_000)]
