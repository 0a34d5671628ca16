"""Request and response bodies of checks: the fields that all types share.

Defaults and limits are the specification's and, where it is silent, the established service's.
A later feature's field is kept when that is harmless, and refused with a sentence when it would
silently not work (`service.checks.rules`).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from pydantic import Field, model_validator

from contract.checks import SPEC_TYPES, CheckSpec, CheckType, Dependency
from contract.runtimes import runtime_problem
from contract.scripts import dependencies_problem
from service.checks.fields import (
    AlertSettings,
    AlertSubscription,
    DependencyWrite,
    Frequency,
    Id,
    Joined,
    Listing,
    MinuteFrequency,
    Name,
    PlaywrightConfig,
    Region,
    RetryStrategy,
    RuntimeId,
    Script,
    ScriptPath,
    TagText,
    TriggerIncident,
)
from service.checks.rules import (
    NO_PHASES,
    NO_VARIABLES,
    SCRIPT_DECIDES,
    offset_problem,
    thresholds_problem,
    unsupported_problem,
)
from service.http.schema import JsonNumber, RequestModel, ResponseModel, Text, field_error
from service.variables.schemas import EnvironmentVariables


class CheckWrite(RequestModel):
    """Fields that all types share."""

    name: Name
    """The display name."""
    activated: bool = True
    """Whether the check runs."""
    muted: bool = False
    """Whether alerts are off; the check still runs."""
    double_check: bool = True
    """Deprecated; `retryStrategy` replaces it. True without a `retryStrategy`: a failed run is
    tried once more at once, at another of the check's locations where it has any. False: a failed
    run is final."""
    should_fail: bool = False
    """Whether the check passes on an error status or a refused connection, and fails otherwise."""
    locations: Listing[Region] = Field(default_factory=list)
    """Regions; this installation serves only those that are the slug of a private location."""
    private_locations: Listing[Text] = Field(default_factory=list)
    """Slugs of private locations."""
    tags: Listing[TagText] = Field(default_factory=list)
    """Words for finding and selecting checks."""
    alert_settings: AlertSettings | None = AlertSettings()
    """When people are alerted. Null: the account's settings."""
    use_global_alert_settings: bool | None = True
    """Whether the account's alert settings apply instead of `alertSettings`."""
    group_id: Id = None
    """The check group. Null: none."""
    group_order: Annotated[float, Field(ge=0), JsonNumber] | None = None
    """The position of the check in its group; lower ones come first."""
    runtime_id: RuntimeId = None
    """The runtime of scripts, in quotes. Null: the newest runtime of the agent."""
    alert_channel_subscriptions: Listing[AlertSubscription] = Field(default_factory=list)
    """The channels that get alerts of the check, besides those of its group. Omitted by a PUT:
    they stay."""
    retry_strategy: RetryStrategy | None = None
    """Null: `doubleCheck` applies, which is one immediate retry unless it is false."""
    trigger_incident: TriggerIncident | None = None
    """The incident that an alert opens on a status page. Null: none."""
    run_parallel: bool = False
    """Run at all locations each time, instead of at one after the other."""
    description: Annotated[Text, Field(max_length=500)] | None = None
    """A note for users."""
    frequency: Frequency = 10
    """Minutes between runs; 0: every `frequencyOffset` seconds."""
    frequency_offset: Annotated[int, Field(ge=1), JsonNumber] | None = None
    """Frequency 0: 10, 20 or 30 seconds. 1 to 60: 1 to ten times the frequency. Above 60: 1 to
    the frequency's hours, rounded up. Null: spread by the check's id."""

    kind: ClassVar[CheckType]
    refused: ClassVar[Mapping[str, str]] = NO_PHASES | NO_VARIABLES
    """Fields of other types that would silently not work here, and why."""

    @model_validator(mode="after")
    def _offset_fits(self) -> "CheckWrite":
        if problem := offset_problem(self.frequency, self.frequency_offset):
            raise field_error("frequencyOffset", problem)
        return self

    @model_validator(mode="after")
    def _thresholds_fit(self) -> "CheckWrite":
        fields = type(self).model_fields
        sent = {fields[one].alias or one: getattr(self, one) for one in self.model_fields_set}
        defaults = {info.alias or one: info.default for one, info in fields.items()}
        if found := thresholds_problem(sent, defaults):
            raise field_error(*found)
        return self

    def hold_runtime(self) -> None:
        """Refuse names that no agent has: where there is a script, it could not run."""
        if self.runtime_id and (problem := runtime_problem(self.runtime_id)):
            raise field_error("runtimeId", problem)

    @classmethod
    def to_spec(cls, doc: Mapping[str, Any]) -> CheckSpec:
        """What a run needs of a check of this type as it is stored."""
        return msgspec.convert(cls.spec_fields(doc), SPEC_TYPES[cls.kind])

    @classmethod
    def spec_fields(cls, doc: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of its spec, most of which are called the same; others are passed over."""
        fields = {**doc, "type": cls.kind.value}
        return fields | ({"assertions": doc["request"]["assertions"]} if "request" in doc else {})

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_dropped_in_silence(cls, body: Any) -> Any:
        if isinstance(body, dict) and (found := unsupported_problem(body, cls.refused)):
            raise field_error(*found)
        return body


class MinuteCheckWrite(CheckWrite):
    """Fields of the types that run at most once a minute."""

    frequency: MinuteFrequency = 10
    """Minutes between runs."""


class VariablesWrite(RequestModel):
    """A field of the types that use variables."""

    environment_variables: EnvironmentVariables = Field(default_factory=list)
    """They override those of the group and the account, for this check."""


class AlertChannels(ResponseModel):
    """The channels that get alerts of the check, by kind; `*********` stands for secrets."""

    email: list[dict[str, str]] = Field(default_factory=list)
    webhook: list[dict[str, Any]] = Field(default_factory=list)
    slack: list[dict[str, str]] = Field(default_factory=list)
    sms: list[dict[str, str]] = Field(default_factory=list)


class CheckShown(CheckWrite):
    """What every check has besides the fields that were sent."""

    tags: Joined[TagText] = Field(default_factory=list)
    id: str
    """The id of the check."""
    created_at: datetime = Field(alias="created_at")
    """When it was created."""
    updated_at: datetime | None = Field(alias="updated_at")
    """When it was last replaced. Null: never."""
    alert_channels: AlertChannels
    """The channels that get its alerts."""


class ScriptCheckWrite(VariablesWrite, MinuteCheckWrite):
    """Fields of the types that are one script, with the files that it imports."""

    refused = NO_PHASES | SCRIPT_DECIDES
    script: Script
    """Node.js or TypeScript code: a Playwright Test file, or a plain script."""
    script_path: ScriptPath = None
    """The script's path among its files, as in checks/shop.spec.ts. Null: script.js."""
    dependencies: Listing[DependencyWrite] = Field(default_factory=list)
    """Files that the script imports."""
    playwright_config: PlaywrightConfig | None = None
    """The parts `timeout`, `use` and `expect` of a Playwright configuration. Null: defaults."""

    @model_validator(mode="after")
    def _files_fit(self) -> "ScriptCheckWrite":
        files = [Dependency(path=one.path, content=one.content) for one in self.dependencies or ()]
        if found := dependencies_problem(files, script_path=self.script_path):
            raise field_error(f"dependencies{found[0]}", found[1])
        self.hold_runtime()
        return self
