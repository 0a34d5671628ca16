"""What a check of each type needs in order to run: one Spec per type, beside its request.

A Spec has no schedule, no alerts and no ids, which belong to the service's Check.
Its class variables say what the type is; all other modules read them from here.
"""

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal, get_args

import msgspec

from contract.assertions import (
    CONNECTION_SOURCES,
    OF_EQUALITY,
    OF_NUMBERS,
    Assertion,
    Comparison,
    Source,
)
from contract.requests import DnsProtocol, Hostname, HttpRequest, IpFamily, Port, RecordType
from contract.wire import Milliseconds, Wire


class Spec(Wire, frozen=True, kw_only=True):
    """The class variables that describe a type, with their defaults."""

    noun: ClassVar[str]
    """What messages call such a check, such as "DNS monitor"."""
    sources: ClassVar[frozenset[Source]] = frozenset()
    """What assertions of this type may test. Empty: the type has no assertions."""
    comparisons: ClassVar[frozenset[Comparison] | None] = None
    """Which comparisons its assertions may use. None: all that their sources allow."""
    is_run_by_agents: ClassVar[bool] = True
    """Whether agents have a runner for it; runs of other types are recorded as missed."""
    may_run_below_a_minute: ClassVar[bool] = False
    """Whether its frequency may be 0, which allows intervals in seconds."""
    is_main: ClassVar[bool] = False
    """Whether each run takes a slot of the main lane."""
    needs_node: ClassVar[bool] = False
    """Whether every check of the type is a script, which needs a Node runtime."""
    needs_browser: ClassVar[bool] = False
    """Whether its scripts need a browser too."""


class RequestSpec(Spec, frozen=True, kw_only=True):
    """A check that sends one request and may have assertions on the response."""

    passes_unreachable: ClassVar[bool] = False
    """Whether a target that refuses or does not answer passes with `should_fail`."""

    request: Wire
    assertions: tuple[Assertion, ...] = ()
    should_fail: bool = False


class TimedSpec(RequestSpec, frozen=True, kw_only=True):
    """A check with thresholds for its response time; each type has its own bounds and defaults."""

    degraded_after_ms: float | None = msgspec.field(default=None, name="degradedResponseTime")
    failed_after_ms: float | None = msgspec.field(default=None, name="maxResponseTime")


class ScriptSpec(Spec, frozen=True, kw_only=True):
    """A check that is a script."""

    is_main = True
    needs_node = True


class Dependency(Wire, frozen=True, kw_only=True):
    """A file that a script imports."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    content: str


class Snapshot(Wire, frozen=True, kw_only=True):
    """A file that Playwright compares with what a script sees."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    """Relative to the same folder as the script's path."""
    sha256: str
    """The SHA-256 of its bytes, under which the service stores it."""


RuntimeId = Literal["2026.04", "2025.04", "2024.09", "2024.02", "2023.09", "2023.02", "2022.10"]


class BrowserSpec(ScriptSpec, frozen=True, kw_only=True, tag_field="type", tag="BROWSER"):
    """A script that drives a browser."""

    noun = "browser check"
    needs_browser = True

    script: str
    script_path: str | None = None
    """The script's path in its project. None: it has none and runs as /script.js."""
    dependencies: tuple[Dependency, ...] = ()
    snippets: tuple[Dependency, ...] = ()
    """Files that scripts import from `./snippets/`; their paths, such as `snippets/login.js`, are
    relative to the script's folder."""
    runtime_id: RuntimeId | None = None
    """The runtime that the script runs on. None: the newest one of the agent."""
    ssl_check_domain: str | None = None
    """The host whose certificate is watched for expiry, at port 443. None: no host."""
    playwright_config: dict[str, object] | None = None
    """`timeout`, `use` and `expect` of a Playwright configuration. None: Playwright's defaults."""
    snapshots: tuple[Snapshot, ...] = ()
    """What `toHaveScreenshot` and `toMatchSnapshot` compare with."""
    update_snapshots: bool = False
    """Whether snapshots that are missing or differ are written anew, and become files of the
    result. False: the run fails."""


class MultiStepSpec(ScriptSpec, frozen=True, kw_only=True, tag_field="type", tag="MULTI_STEP"):
    """A script of several API requests."""

    noun = "multi-step check"

    script: str
    script_path: str | None = None
    """The script's path in its project. None: it has none and runs as /script.js."""
    dependencies: tuple[Dependency, ...] = ()
    snippets: tuple[Dependency, ...] = ()
    """Files that scripts import from `./snippets/`; their paths, such as `snippets/login.js`, are
    relative to the script's folder."""
    runtime_id: RuntimeId | None = None
    """The runtime that the script runs on. None: the newest one of the agent."""
    playwright_config: dict[str, object] | None = None
    """`timeout`, `use` and `expect` of a Playwright configuration. None: Playwright's defaults."""


class PlaywrightSpec(ScriptSpec, frozen=True, kw_only=True, tag_field="type", tag="PLAYWRIGHT"):
    """A whole Playwright test suite."""

    noun = "Playwright suite"
    needs_browser = True

    bundle_sha256: str
    """The SHA-256 of the suite's tar.gz, under which the service stores it."""
    test_command: str = "npx playwright test"
    install_command: str = ""
    browsers: tuple[str, ...] = ()
    playwright_version: str | None = None
    """The version of Playwright Test. None: the one in the suite's lock file."""
    working_dir: str | None = None
    """The folder in the bundle where commands run. None: the bundle's root."""
    cache_hash: str | None = None
    """A key of the package cache; a new one installs packages again. None: the files that packages
    are installed from are the key."""
    engine: Literal["node", "bun"] | None = None
    """The JavaScript engine. None: node."""
    engine_version: str | None = None
    """The version of the engine. None: the Node of the runtime."""
    runtime_id: RuntimeId | None = None
    """The runtime whose Node runs the suite, which brings its own packages. None: the newest of the
    agent."""
    refresh_cache: bool = False


class AgenticSpec(Spec, frozen=True, kw_only=True, tag_field="type", tag="AGENTIC"):
    """A goal in plain language that a model pursues in a browser."""

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
        """The type in paths of the public API, such as `/v1/checks/multistep`."""
        return self.value.lower().replace("_", "")


class TimeUnit(StrEnum):
    """Units of a heartbeat's period and grace time."""

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
    """Is this address up? Always GET; asserts on the status code and on facts of the connection."""

    noun = "URL monitor"
    sources = CONNECTION_SOURCES | {Source.STATUS_CODE}
    comparisons = OF_EQUALITY | OF_NUMBERS

    degraded_after_ms: HttpThreshold | None = msgspec.field(
        default=3000, name="degradedResponseTime"
    )
    failed_after_ms: HttpThreshold | None = msgspec.field(default=5000, name="maxResponseTime")


class ApiSpec(HttpSpec, frozen=True, kw_only=True, tag_field="type", tag="API"):
    """Does this API answer as it should?"""

    noun = "API check"
    sources = CONNECTION_SOURCES | {
        Source.STATUS_CODE,
        Source.JSON_BODY,
        Source.HEADERS,
        Source.TEXT_BODY,
        Source.RESPONSE_TIME,
    }
    may_run_below_a_minute = True

    degraded_after_ms: HttpThreshold | None = msgspec.field(
        default=5000, name="degradedResponseTime"
    )
    failed_after_ms: HttpThreshold | None = msgspec.field(default=20000, name="maxResponseTime")
    group_setup_script: str | None = None
    """JavaScript of the check's group that runs before `setup_script`. None: nothing runs."""
    setup_script: str | None = None
    """JavaScript that runs before the request. None: nothing runs."""
    setup_script_path: str | None = None
    """The file name of the setup script in errors. None: setup.js."""
    teardown_script: str | None = None
    """JavaScript that runs after the response, which it can read. None: nothing runs."""
    teardown_script_path: str | None = None
    """The file name of the teardown script in errors. None: teardown.js."""
    group_teardown_script: str | None = None
    """JavaScript of the check's group that runs after `teardown_script`. None: nothing runs."""
    snippets: tuple[Dependency, ...] = ()
    """Files that the scripts import from `./snippets/`; a path is like `snippets/login.js`."""
    runtime_id: RuntimeId | None = None
    """The runtime that the scripts run on. None: the newest one of the agent."""


class HostRequest(Wire, frozen=True, kw_only=True):
    """A request to a host name or an IP address rather than a URL."""

    hostname: Hostname


class TcpRequest(HostRequest, frozen=True, kw_only=True):
    """A TCP connection that may send data and may read a response."""

    port: Port
    data: str | None = None
    """Text that is sent after connecting, in UTF-8. None: nothing is sent."""
    ip_family: IpFamily = IpFamily.IPV4
    tls: bool = False
    """Whether a TLS handshake follows the connection."""
    skip_ssl: bool = msgspec.field(default=False, name="skipSSL")


class TcpSpec(TimedSpec, frozen=True, kw_only=True, tag_field="type", tag="TCP"):
    """Does this port accept connections, and answer as it should?"""

    noun = "TCP monitor"
    sources = CONNECTION_SOURCES | {Source.RESPONSE_DATA, Source.RESPONSE_TIME}
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


class DnsRequest(Wire, frozen=True, kw_only=True):
    """A DNS query."""

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    record_type: RecordType = RecordType.A
    name_server: Annotated[str, msgspec.Meta(max_length=253)] | None = None
    """The host name or IP address of the name server. None: the agent's default resolvers."""
    port: Port | None = None
    """The port of the name server. None: 53."""
    protocol: DnsProtocol = DnsProtocol.UDP


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


class IcmpRequest(HostRequest, frozen=True, kw_only=True):
    """ICMP echo requests, sent every 500 ms."""

    ip_family: IpFamily = IpFamily.IPV4
    ping_count: Annotated[int, msgspec.Meta(ge=1, le=50)] = 10


class IcmpSpec(RequestSpec, frozen=True, kw_only=True, tag_field="type", tag="ICMP"):
    """Does this host answer pings? Judged by packet loss."""

    noun = "ICMP monitor"
    sources = frozenset({Source.LATENCY, Source.JSON_RESPONSE})
    passes_unreachable = True

    request: IcmpRequest
    degraded_loss_percent: Percentage = msgspec.field(
        default=10, name="degradedPacketLossThreshold"
    )
    """Packet loss in percent from which the check is degraded."""
    failed_loss_percent: Percentage = msgspec.field(default=20, name="maxPacketLossThreshold")
    """Packet loss in percent from which the check fails."""


class HeartbeatSpec(Spec, frozen=True, kw_only=True, tag_field="type", tag="HEARTBEAT"):
    """Did a job send its ping in time?"""

    noun = "heartbeat monitor"

    period_s: Annotated[float, msgspec.Meta(ge=30, le=365 * 86400)]
    """A ping is due this long after the last one."""
    grace_s: Annotated[float, msgspec.Meta(ge=0, le=365 * 86400)]
    """How long a ping may be overdue before the check fails."""
    ping_token: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """The last part of the ping URL; whoever knows it can ping."""
    silent_for_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """The age of the last ping when the service assigned the job. None: no ping has come since the
    check was activated, so the timer has not started."""


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
"""The Spec of each type, in the order in which documents list them; a test proves it complete."""

AGENT_TYPES: Final = tuple(kind for kind, spec in SPEC_TYPES.items() if spec.is_run_by_agents)
"""The types that agents run, in the order of `SPEC_TYPES`."""
SCRIPT_TYPES: Final = frozenset(kind for kind, spec in SPEC_TYPES.items() if spec.needs_node)
"""The types whose checks are scripts."""
MAIN_LANE_TYPES: Final = frozenset(kind for kind, spec in SPEC_TYPES.items() if spec.is_main)
"""The types that always use the main lane."""
HTTP_TYPES: Final = frozenset(
    kind for kind, spec in SPEC_TYPES.items() if issubclass(spec, HttpSpec)
)
"""The types whose request is HTTP: it may contain variables and use a proxy."""


class Lane(StrEnum):
    """The pool of an agent's slots that a job takes one from."""

    UPTIME = "uptime"
    MAIN = "main"


def check_type(spec: CheckSpec) -> CheckType:
    """Return the type of a spec."""
    return _TYPES[type(spec)]


def is_scripted(spec: ApiSpec) -> bool:
    """Whether a script runs before or after the request."""
    return (
        spec.setup_script is not None
        or spec.teardown_script is not None
        or spec.group_setup_script is not None
        or spec.group_teardown_script is not None
    )


def lane(spec: CheckSpec) -> Lane:
    """Return the lane of a spec: `main` for whatever needs Node or a browser."""
    if isinstance(spec, ApiSpec):
        return Lane.MAIN if is_scripted(spec) else Lane.UPTIME
    return Lane.MAIN if spec.is_main else Lane.UPTIME


def deadline_ms(spec: CheckSpec) -> Milliseconds:
    """Return the time limit of a run: uptime checks 30 s, scripts 240 s, suites 30 min."""
    if isinstance(spec, PlaywrightSpec):
        return 30 * 60_000
    if lane(spec) is Lane.UPTIME:
        return 30_000
    return 240_000
