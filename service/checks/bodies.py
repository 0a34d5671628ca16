"""What people send to set up a check: one body per type, read strictly.

Defaults and limits are the specification's and, where it is silent, the established service's.
A later feature's field is kept when that is harmless, and refused with a sentence when it would
silently not work (`service.checks.rules`).
"""

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from contract.checks import CheckType
from contract.runtimes import runtime_problem
from service.checks.alert_fields import AlertSettings, AlertSubscription, TriggerIncident
from service.checks.fields import (
    Frequency,
    HttpThreshold,
    Id,
    Listing,
    MinuteFrequency,
    Name,
    Percentage,
    Region,
    RetryStrategy,
    RuntimeId,
    ShortThreshold,
    TagText,
)
from service.checks.requests import (
    ApiRequest,
    DnsRequest,
    Heartbeat,
    IcmpRequest,
    TcpRequest,
    UrlRequest,
)
from service.checks.rules import (
    offset_problem,
    phase_problem,
    unsupported_problem,
)
from service.checks.script_fields import PhaseScript
from service.http.strict import JsonNumber, Strict, Text, field_error
from service.variables.bodies import EnvironmentVariables


class CheckWrite(Strict):
    """Fields that all types share."""

    name: Name
    """The name that people see."""
    activated: bool = True
    """Whether the check runs."""
    muted: bool = False
    """Whether alerts are off; the check runs all the same."""
    double_check: bool = True
    """Deprecated; `retryStrategy` replaces it. True without a `retryStrategy`: a failed run is
    tried once more at once, at another of the check's locations where it has any. False: a failed
    run is final."""
    should_fail: bool = False
    """Whether the check passes on an error status or a refused connection, and fails otherwise."""
    locations: Listing[Region] = Field(default_factory=list)
    """Regions; this installation serves one only where a private location has it as its slug."""
    private_locations: Listing[Text] = Field(default_factory=list)
    """Slugs of private locations."""
    tags: Listing[TagText] = Field(default_factory=list)
    """Words to find and to select checks by."""
    alert_settings: AlertSettings | None = AlertSettings()
    """When people are alerted. Null: as the account says."""
    use_global_alert_settings: bool | None = True
    """Whether the account's alert settings apply, and not `alertSettings`."""
    group_id: Id = None
    """The check group. Null: the check is in none."""
    group_order: Annotated[float, Field(ge=0), JsonNumber] | None = None
    """The place of the check among those of its group; lower ones come first."""
    runtime_id: RuntimeId = None
    """What scripts run on; in quotes. Null: the newest runtime of the agent."""
    alert_channel_subscriptions: Listing[AlertSubscription] = Field(default_factory=list)
    """The channels that get alerts of the check; there are none yet."""
    retry_strategy: RetryStrategy | None = None
    """Null: as `doubleCheck` says, which is one immediate retry unless it is false."""
    trigger_incident: TriggerIncident | None = None
    """The incident that an alert opens on a status page. Null: none."""
    run_parallel: bool = False
    """Run in all locations each time, instead of in one after the other."""
    description: Annotated[Text, Field(max_length=500)] | None = None
    """A note for people."""
    frequency: Frequency = 10
    """Minutes between runs; 0, for API and TCP checks only: every `frequencyOffset` seconds."""
    frequency_offset: Annotated[int, Field(ge=1), JsonNumber] | None = None
    """Frequency 0: 10, 20 or 30 seconds. 1 to 60: 1 to ten times the frequency. Above 60: 1 to
    the frequency's hours, rounded up. Null: spread by the check's id."""

    kind: ClassVar[CheckType]

    @model_validator(mode="after")
    def _offset_fits(self) -> "CheckWrite":
        if problem := offset_problem(self.frequency, self.frequency_offset):
            raise field_error("frequencyOffset", problem)
        return self

    def hold_runtime(self) -> None:
        """Refuse names that no agent has: where there is a script, it could not run."""
        if self.runtime_id and (problem := runtime_problem(self.runtime_id)):
            raise field_error("runtimeId", problem)

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_dropped_in_silence(cls, body: Any) -> Any:
        if isinstance(body, dict) and (found := unsupported_problem(body, cls.kind)):
            raise field_error(*found)
        return body


class MinuteCheckWrite(CheckWrite):
    """Fields of the types that run once a minute at most."""

    frequency: MinuteFrequency = 10
    """Minutes between runs."""


class UrlCheckWrite(MinuteCheckWrite):
    """A URL monitor."""

    kind = CheckType.URL
    request: UrlRequest
    """What is requested and asserted."""
    environment_variables: EnvironmentVariables = Field(default_factory=list)
    """Win over those of the group and the account, for this check."""
    degraded_response_time: HttpThreshold | None = 3000
    """Milliseconds after which a result is degraded. Null: never."""
    max_response_time: HttpThreshold | None = 5000
    """Milliseconds after which a result fails. Null: never."""


class ApiCheckWrite(CheckWrite):
    """An API check."""

    kind = CheckType.API
    request: ApiRequest
    """What is requested and asserted."""
    environment_variables: EnvironmentVariables = Field(default_factory=list)
    """Win over those of the group and the account, for this check."""
    degraded_response_time: HttpThreshold | None = 5000
    """Milliseconds after which a result is degraded. Null: never."""
    max_response_time: HttpThreshold | None = 20_000
    """Milliseconds after which a result fails. Null: never."""
    setup_snippet_id: Id = None
    """A snippet that runs before the request, instead of `localSetupScript`."""
    tear_down_snippet_id: Id = None
    """A snippet that runs on the response, instead of `localTearDownScript`."""
    local_setup_script: PhaseScript = None
    """Node.js code that runs before the request and may change it. Null: none."""
    local_tear_down_script: PhaseScript = None
    """Node.js code that runs on the response, before the assertions. Null: none."""

    @model_validator(mode="after")
    def _phases_fit(self) -> "ApiCheckWrite":
        setup, teardown = self.local_setup_script, self.local_tear_down_script
        ids = self.setup_snippet_id, self.tear_down_snippet_id
        if problem := phase_problem("localSetupScript", script=setup, snippet_id=ids[0]):
            raise field_error("setupSnippetId", problem)
        if problem := phase_problem("localTearDownScript", script=teardown, snippet_id=ids[1]):
            raise field_error("tearDownSnippetId", problem)
        if any(one is not None for one in (setup, teardown, *ids)):
            self.hold_runtime()
        return self


class TcpCheckWrite(CheckWrite):
    """A TCP monitor."""

    kind = CheckType.TCP
    request: TcpRequest
    """What is connected to and asserted."""
    degraded_response_time: ShortThreshold | None = 3000
    """Milliseconds after which a result is degraded. Null: never."""
    max_response_time: ShortThreshold | None = 5000
    """Milliseconds after which a result fails. Null: never."""


class DnsCheckWrite(MinuteCheckWrite):
    """A DNS monitor."""

    kind = CheckType.DNS
    request: DnsRequest
    """What is asked and asserted."""
    degraded_response_time: ShortThreshold | None = 500
    """Milliseconds after which a result is degraded. Null: never."""
    max_response_time: ShortThreshold | None = 1000
    """Milliseconds after which a result fails. Null: never."""


class IcmpCheckWrite(MinuteCheckWrite):
    """An ICMP monitor, judged by packet loss in percent."""

    kind = CheckType.ICMP
    request: IcmpRequest
    """What is pinged and asserted."""
    degraded_packet_loss_threshold: Percentage = 10
    """With this percentage of lost packets or more, a result is degraded."""
    max_packet_loss_threshold: Percentage = 20
    """With this percentage of lost packets or more, a result fails."""


class HeartbeatCheckWrite(MinuteCheckWrite):
    """A heartbeat monitor; without locations it is judged at the oldest private location."""

    kind = CheckType.HEARTBEAT
    heartbeat: Heartbeat
    """When pings are expected."""
    frequency: MinuteFrequency = 1
    """Minutes between looks at the last ping: how late a silence may be noticed."""
