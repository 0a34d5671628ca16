"""What a check of each type needs in order to run: one Spec per type.

No schedule, no alerts, no ids: those belong to the control plane's Check. What they ask for
stands in `contract.requests`; the types that are a script's alone in `contract.checks`; what a
Spec says of its type in `contract.checks`.
Limits and defaults are the specification's and, where it is silent, the field notes' (1.5).

What a check needs that is a script's alone, or a model's: one Spec per type.

API checks, whose scripts run beside a request of their own, stand with the others in
`contract.checks`.

What a Spec says of its type, and the fields that several Specs share.

A new check type says here and in its Spec what it is; everybody else reads it from there.
"""

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal, get_args

import msgspec

from contract.assertions import OF_EQUALITY, OF_NUMBERS, Assertion, Comparison, Source
from contract.requests import DnsRequest, HttpRequest, IcmpRequest, TcpRequest
from contract.wire import Milliseconds, Wire


class Spec(Wire, frozen=True, kw_only=True):
    """Facts that hold for all checks of a type."""

    noun: ClassVar[str]
    """What people call such a check, as in "DNS monitor"."""
    sources: ClassVar[frozenset[Source]] = frozenset()
    """What its assertions may compare. Empty: it takes no assertions."""
    comparisons: ClassVar[frozenset[Comparison] | None] = None
    """The comparisons of its assertions. None: all that their sources take."""
    is_run_by_agents: ClassVar[bool] = True
    """Whether there is a runner for it; runs of the others are recorded as missed."""
    may_run_below_a_minute: ClassVar[bool] = False
    """Whether its frequency may be 0, with seconds between runs."""
    is_main: ClassVar[bool] = False
    """Whether each run takes a slot of the main lane."""
    needs_node: ClassVar[bool] = False
    """Whether it is code, which needs a Node runtime."""
    needs_browser: ClassVar[bool] = False
    """Whether it needs a browser too."""


class RequestSpec(Spec, frozen=True, kw_only=True):
    """A check that sends one request and may assert on what comes back."""

    passes_unreachable: ClassVar[bool] = False
    """Whether a target that refuses or does not answer passes with `should_fail`."""

    request: Wire
    assertions: tuple[Assertion, ...] = ()
    should_fail: bool = False


class TimedSpec(RequestSpec, frozen=True, kw_only=True):
    """A check with limits on its response time; each type has bounds and defaults of its own."""

    degraded_after_ms: float | None = msgspec.field(default=None, name="degradedResponseTime")
    failed_after_ms: float | None = msgspec.field(default=None, name="maxResponseTime")


class ScriptSpec(Spec, frozen=True, kw_only=True):
    """A check that is code."""

    is_main = True
    needs_node = True


class Dependency(Wire, frozen=True, kw_only=True):
    """A further file that a script imports."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    content: str


RuntimeId = Literal["2026.04", "2025.04", "2024.09", "2024.02", "2023.09", "2023.02", "2022.10"]


class BrowserSpec(ScriptSpec, frozen=True, kw_only=True, tag_field="type", tag="BROWSER"):
    """A script that drives a browser."""

    noun = "browser check"
    needs_browser = True

    script: str
    script_path: str | None = None
    """None: the script came from an editor and is called /script.js."""
    dependencies: tuple[Dependency, ...] = ()
    snippets: tuple[Dependency, ...] = ()
    """Files that scripts import from `./snippets/`; paths as in `snippets/login.js`, from the
    folder of the script."""
    runtime_id: RuntimeId | None = None
    """None: the newest runtime of the agent."""
    ssl_check_domain: str | None = None
    """Host whose certificate alerts on expiry are to watch; no run looks at it. None: none."""
    playwright_config: dict[str, object] | None = None
    """The parts `timeout`, `use` and `expect` of a Playwright configuration. None: defaults."""


class MultiStepSpec(ScriptSpec, frozen=True, kw_only=True, tag_field="type", tag="MULTI_STEP"):
    """A script of several API requests."""

    noun = "multi-step check"

    script: str
    script_path: str | None = None
    """None: the script came from an editor and is called /script.js."""
    dependencies: tuple[Dependency, ...] = ()
    snippets: tuple[Dependency, ...] = ()
    """Files that scripts import from `./snippets/`; paths as in `snippets/login.js`, from the
    folder of the script."""
    runtime_id: RuntimeId | None = None
    """None: the newest runtime of the agent."""
    playwright_config: dict[str, object] | None = None
    """The parts `timeout`, `use` and `expect` of a Playwright configuration. None: defaults."""


class PlaywrightSpec(ScriptSpec, frozen=True, kw_only=True, tag_field="type", tag="PLAYWRIGHT"):
    """A whole Playwright test suite."""

    noun = "Playwright suite"
    needs_browser = True

    bundle_sha256: str
    """Content address of the suite's tar.gz at the service."""
    test_command: str = "npx playwright test"
    install_command: str = ""
    browsers: tuple[str, ...] = ()
    playwright_version: str | None = None
    """None: as the suite's lock file says."""
    working_dir: str | None = None
    """None: the bundle's root."""
    cache_hash: str | None = None
    """Packages that were kept under another one are not used. None: what they are installed from
    says it all."""
    engine: Literal["node", "bun"] | None = None
    """None: node."""
    engine_version: str | None = None
    """None: the Node of the runtime."""
    runtime_id: RuntimeId | None = None
    """Whose Node runs the suite, which brings everything else. None: the agent's newest."""
    refresh_cache: bool = False


class AgenticSpec(Spec, frozen=True, kw_only=True, tag_field="type", tag="AGENTIC"):
    """A goal in plain words that a model tries to reach in a browser."""

    noun = "agentic check"
    is_run_by_agents = False
    is_main = True

    prompt: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
    skills: tuple[str, ...] = ()


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
