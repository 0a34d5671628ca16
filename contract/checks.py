"""What a check of each type needs in order to run: one Spec per type.

No schedule, no alerts, no ids: those belong to the control plane's Check. What they ask for
stands in `contract.requests`; the types that are a script's alone in `contract.scripted`; what a
Spec says of its type in `contract.specs`.
Limits and defaults are the specification's and, where it is silent, the field notes' (1.5).
"""

from enum import StrEnum
from typing import Annotated, Final, get_args

import msgspec

from contract.assertions import OF_EQUALITY, OF_NUMBERS, Comparison, Source
from contract.requests import DnsRequest, HttpRequest, IcmpRequest, TcpRequest
from contract.scripted import (
    AgenticSpec,
    BrowserSpec,
    Dependency,
    MultiStepSpec,
    PlaywrightSpec,
    RuntimeId,
)
from contract.specs import RequestSpec, Spec, TimedSpec
from contract.wire import Milliseconds


class CheckType(StrEnum):
    """The ten types of the specification."""

    AGENTIC = "AGENTIC"
    API = "API"
    BROWSER = "BROWSER"
    HEARTBEAT = "HEARTBEAT"
    ICMP = "ICMP"
    MULTI_STEP = "MULTI_STEP"
    TCP = "TCP"
    PLAYWRIGHT = "PLAYWRIGHT"
    URL = "URL"
    DNS = "DNS"

    @property
    def path_segment(self) -> str:
        """The type in paths of the public API, as in `/v1/checks/multistep`."""
        return self.value.lower().replace("_", "")


class TimeUnit(StrEnum):
    """Units of a heartbeat's period and grace."""

    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    DAYS = "days"


SECONDS_PER: Final = {
    TimeUnit.SECONDS: 1,
    TimeUnit.MINUTES: 60,
    TimeUnit.HOURS: 3600,
    TimeUnit.DAYS: 86400,
}

HttpThreshold = Annotated[float, msgspec.Meta(ge=0, le=30_000)]
ShortThreshold = Annotated[float, msgspec.Meta(ge=0, le=5_000)]
Percentage = Annotated[float, msgspec.Meta(ge=0, le=100)]


class HttpSpec(TimedSpec, frozen=True, kw_only=True):
    """A check whose request is HTTP."""

    request: HttpRequest
    degraded_after_ms: HttpThreshold | None = msgspec.field(
        default=None, name="degradedResponseTime"
    )
    failed_after_ms: HttpThreshold | None = msgspec.field(default=None, name="maxResponseTime")


class UrlSpec(HttpSpec, frozen=True, kw_only=True, tag_field="type", tag="URL"):
    """Is this address up? Always GET; asserts on the status code only."""

    noun = "URL monitor"
    sources = frozenset({Source.STATUS_CODE})
    comparisons = OF_EQUALITY | OF_NUMBERS

    degraded_after_ms: HttpThreshold | None = msgspec.field(
        default=3000, name="degradedResponseTime"
    )
    failed_after_ms: HttpThreshold | None = msgspec.field(default=5000, name="maxResponseTime")


class ApiSpec(HttpSpec, frozen=True, kw_only=True, tag_field="type", tag="API"):
    """Does this API answer as it should?"""

    noun = "API check"
    sources = frozenset(
        {
            Source.STATUS_CODE,
            Source.JSON_BODY,
            Source.HEADERS,
            Source.TEXT_BODY,
            Source.RESPONSE_TIME,
        }
    )
    may_run_below_a_minute = True

    degraded_after_ms: HttpThreshold | None = msgspec.field(
        default=5000, name="degradedResponseTime"
    )
    failed_after_ms: HttpThreshold | None = msgspec.field(default=20000, name="maxResponseTime")
    group_setup_script: str | None = None
    """JavaScript of the check's group that runs before `setup_script`. None: there is none."""
    setup_script: str | None = None
    """JavaScript that runs before the request. None: there is none."""
    setup_script_path: str | None = None
    """The file that errors name. None: setup.js."""
    teardown_script: str | None = None
    """JavaScript that runs on the response. None: there is none."""
    teardown_script_path: str | None = None
    """The file that errors name. None: teardown.js."""
    group_teardown_script: str | None = None
    """JavaScript of the check's group that runs after `teardown_script`. None: there is none."""
    snippets: tuple[Dependency, ...] = ()
    """Files that the scripts import from `./snippets/`; paths as in `snippets/login.js`."""
    runtime_id: RuntimeId | None = None
    """What the scripts run on. None: the newest runtime of the agent."""


class TcpSpec(TimedSpec, frozen=True, kw_only=True, tag_field="type", tag="TCP"):
    """Does this port accept connections, and answer as it should?"""

    noun = "TCP monitor"
    sources = frozenset({Source.RESPONSE_DATA, Source.RESPONSE_TIME})
    comparisons = (
        OF_EQUALITY
        | OF_NUMBERS
        | {Comparison.IS_EMPTY, Comparison.NOT_EMPTY, Comparison.CONTAINS, Comparison.NOT_CONTAINS}
    )
    may_run_below_a_minute = True
    passes_unreachable = True

    request: TcpRequest
    degraded_after_ms: ShortThreshold | None = msgspec.field(
        default=3000, name="degradedResponseTime"
    )
    failed_after_ms: ShortThreshold | None = msgspec.field(default=5000, name="maxResponseTime")


class DnsSpec(TimedSpec, frozen=True, kw_only=True, tag_field="type", tag="DNS"):
    """Does this name resolve as it should?"""

    noun = "DNS monitor"
    sources = frozenset(
        {Source.RESPONSE_TIME, Source.RESPONSE_CODE, Source.TEXT_ANSWER, Source.JSON_ANSWER}
    )

    request: DnsRequest
    degraded_after_ms: ShortThreshold | None = msgspec.field(
        default=500, name="degradedResponseTime"
    )
    failed_after_ms: ShortThreshold | None = msgspec.field(default=1000, name="maxResponseTime")


class IcmpSpec(RequestSpec, frozen=True, kw_only=True, tag_field="type", tag="ICMP"):
    """Does this host answer pings? Judged by packet loss."""

    noun = "ICMP monitor"
    sources = frozenset({Source.LATENCY, Source.JSON_RESPONSE})
    passes_unreachable = True

    request: IcmpRequest
    degraded_loss_percent: Percentage = msgspec.field(
        default=10, name="degradedPacketLossThreshold"
    )
    """Loss at or above this degrades the check."""
    failed_loss_percent: Percentage = msgspec.field(default=20, name="maxPacketLossThreshold")
    """Loss at or above this fails the check."""


class HeartbeatSpec(Spec, frozen=True, kw_only=True, tag_field="type", tag="HEARTBEAT"):
    """Did the job that should ping us do so in time?"""

    noun = "heartbeat monitor"

    period_s: Annotated[float, msgspec.Meta(ge=30, le=365 * 86400)]
    """A ping is due this long after the last one."""
    grace_s: Annotated[float, msgspec.Meta(ge=0, le=365 * 86400)]
    """How much longer we wait before the check fails."""
    ping_token: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """The last part of the ping address; whoever knows it can ping."""
    silent_for_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Age of the last ping when the service handed the job out. None: the timer has not started,
    because no ping has come since the check was activated."""


CheckSpec = (
    ApiSpec
    | UrlSpec
    | TcpSpec
    | DnsSpec
    | IcmpSpec
    | HeartbeatSpec
    | BrowserSpec
    | MultiStepSpec
    | PlaywrightSpec
    | AgenticSpec
)

_TYPES: Final[dict[type[CheckSpec], CheckType]] = {
    spec: CheckType(spec.__struct_config__.tag) for spec in get_args(CheckSpec)
}
SPEC_TYPES: Final[dict[CheckType, type[CheckSpec]]] = {kind: spec for spec, kind in _TYPES.items()}
"""The Spec of each type, in the order in which people read them; a test holds it complete."""

AGENT_TYPES: Final = tuple(kind for kind, spec in SPEC_TYPES.items() if spec.is_run_by_agents)
"""The types that agents run, in that order."""
SCRIPT_TYPES: Final = frozenset(kind for kind, spec in SPEC_TYPES.items() if spec.needs_node)
"""The types that are code."""
MAIN_LANE_TYPES: Final = frozenset(kind for kind, spec in SPEC_TYPES.items() if spec.is_main)
"""The types that come by the main lane whatever their spec says."""
HTTP_TYPES: Final = frozenset(
    kind for kind, spec in SPEC_TYPES.items() if issubclass(spec, HttpSpec)
)
"""The types whose request is HTTP: it has places for variables, and goes by a proxy."""


class Lane(StrEnum):
    """Which slots of an agent a job takes."""

    UPTIME = "uptime"
    MAIN = "main"


def check_type(spec: CheckSpec) -> CheckType:
    """The type that a spec belongs to."""
    return _TYPES[type(spec)]


def is_scripted(spec: ApiSpec) -> bool:
    """Whether any script runs before or after the request."""
    return (
        spec.setup_script is not None
        or spec.teardown_script is not None
        or spec.group_setup_script is not None
        or spec.group_teardown_script is not None
    )


def lane(spec: CheckSpec) -> Lane:
    """The lane of a spec: `main` for whatever needs Node or a browser."""
    if isinstance(spec, ApiSpec):
        return Lane.MAIN if is_scripted(spec) else Lane.UPTIME
    return Lane.MAIN if spec.is_main else Lane.UPTIME


def deadline_ms(spec: CheckSpec) -> Milliseconds:
    """The longest that a run may take: 30 s uptime, 240 s scripts, 30 min suites."""
    if isinstance(spec, PlaywrightSpec):
        return 30 * 60_000
    if lane(spec) is Lane.UPTIME:
        return 30_000
    return 240_000
