"""Fields that the bodies of checks and groups share."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from contract.assertion_rules import assertion_problem
from contract.assertions import Assertion, Comparison, Source
from contract.checks import CheckType
from contract.runtimes import RUNTIMES, runtime_problem
from contract.scripts import (
    MAX_PATH_LETTERS,
    config_problem,
    folder_problem,
    path_problem,
    script_problem,
    sha256_problem,
)
from contract.targets import (
    connect_to_problem,
    format_value,
    header_problem,
    hostname_problem,
    split_address,
    status_codes_problem,
    url_problem,
)
from service.alert_channels.model import ChannelChoice
from service.checks.rules import expression_problem, frequency_problem, property_problem
from service.http.schema import (
    JsonNumber,
    RequestModel,
    Text,
    Whole,
    blank_is_none,
    field_error,
    judged_by,
    zero_is_none,
)
from service.vault.texts import NotEchoed

T = TypeVar("T")


def _replace_none_by_list(value: list[T] | None) -> list[T]:
    return value or []


def _replace_none_by_text(value: str | None) -> str:
    return value or ""


def _check_frequency(value: object) -> object:
    if problem := frequency_problem(value):
        raise PydanticCustomError("rule", "{sentence}", {"sentence": problem})
    return value


def _check_region(value: object) -> object:
    """The slug of a private location is the likeliest slip."""
    if isinstance(value, str) and value not in (regions := get_args(Regions)):
        raise field_error(
            "",
            f"is {format_value(value)}, which is not a region; a private location belongs in"
            f' "privateLocations", and the regions are {", ".join(regions)}',
        )
    return value


def _check_runtime(value: object) -> object:
    """Clients that read YAML send a number where it was not in quotes."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise field_error(
            "", f'is the number {value}; put it in quotes, as in "{next(iter(RUNTIMES))}"'
        )
    if isinstance(value, str) and value not in get_args(Runtime):
        raise field_error("", runtime_problem(value) or "")
    return value


MOST_ITEMS: Final = 500
"""Each takes its time to judge, and what a group has is kept with each of its checks."""
Listing = Annotated[
    Annotated[list[T], Field(max_length=MOST_ITEMS)] | None, AfterValidator(_replace_none_by_list)
]
"""A list; clients send null for an empty one."""
Joined = Annotated[
    Annotated[list[T], Field(max_length=2 * MOST_ITEMS)] | None,
    AfterValidator(_replace_none_by_list),
]
"""A list as it is shown: what the group of a check adds to it is as long at most."""
MOST_PATTERN_LETTERS: Final = 10_000
MaybeText = Annotated[Text | None, AfterValidator(_replace_none_by_text)]
"""Text; clients send null for none."""

Regions = Literal[
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
    "ca-central-1",
    "sa-east-1",
    "eu-west-1",
    "eu-central-1",
    "eu-west-2",
    "eu-west-3",
    "eu-north-1",
    "eu-south-1",
    "me-south-1",
    "ap-southeast-1",
    "ap-northeast-1",
    "ap-east-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "af-south-1",
]
Region = Annotated[Regions, BeforeValidator(_check_region)]
"""One of the 22; private locations have a field of their own."""
Runtime = Literal["2026.04", "2025.04", "2024.09", "2024.02", "2023.09", "2023.02", "2022.10"]
RuntimeId = Annotated[
    Literal[Runtime, ""] | None, BeforeValidator(_check_runtime), BeforeValidator(blank_is_none)
]
_WholeMinutes = Literal[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440]
Frequency = Annotated[Literal[0, _WholeMinutes], JsonNumber]
MinuteFrequency = Annotated[_WholeMinutes, BeforeValidator(_check_frequency), JsonNumber]
"""The frequency of types that run once a minute at most."""
Method = Literal["GET", "POST", "PUT", "HEAD", "DELETE", "PATCH"]
BodyKind = Literal["NONE", "JSON", "FORM", "RAW", "GRAPHQL"]
Family = Literal["IPv4", "IPv6"]
Version = Literal["AUTO", "HTTP_1_1", "HTTP_2", "HTTP_3"]
AnyComparison = Literal[
    "EQUALS",
    "NOT_EQUALS",
    "HAS_KEY",
    "NOT_HAS_KEY",
    "HAS_VALUE",
    "NOT_HAS_VALUE",
    "IS_EMPTY",
    "NOT_EMPTY",
    "GREATER_THAN",
    "LESS_THAN",
    "CONTAINS",
    "NOT_CONTAINS",
    "IS_NULL",
    "NOT_NULL",
]
NumberComparison = Literal["EQUALS", "NOT_EQUALS", "LESS_THAN", "GREATER_THAN"]
TextComparison = Literal[
    "EQUALS",
    "NOT_EQUALS",
    "IS_EMPTY",
    "NOT_EMPTY",
    "LESS_THAN",
    "GREATER_THAN",
    "CONTAINS",
    "NOT_CONTAINS",
]

Name = Annotated[Text, Field(min_length=1, max_length=1000)]
TagText = Annotated[Text, Field(max_length=250)]
HttpThreshold = Annotated[float, Field(ge=0, le=30_000), JsonNumber]
ShortThreshold = Annotated[float, Field(ge=0, le=5_000), JsonNumber]
Percentage = Annotated[float, Field(ge=0, le=100), JsonNumber]
PortNumber = Annotated[int, Field(ge=1, le=65_535), JsonNumber]
Id = Annotated[int | None, BeforeValidator(zero_is_none), JsonNumber]
"""A number that names something else; 0 means none."""


class KeyValue(RequestModel):
    """A header or a query parameter."""

    key: Annotated[Text, Field(min_length=1)]
    """Its name."""
    value: Annotated[Text, NotEchoed] = ""
    """`*********` keeps the value that is stored for this key."""
    locked: bool = False
    """Shown only to keys that may write the check; redacted in results like a secret."""


def check_headers(headers: Iterable[KeyValue]) -> None:
    """Refuse a header that no request can carry, as one of several lines."""
    for order, header in enumerate(headers):
        if problem := header_problem(header.key, header.value):
            raise field_error(f"headers[{order}]", problem)


class BasicAuth(RequestModel):
    """Credentials of HTTP authentication; the password is redacted in results."""

    username: Text
    """The user name."""
    password: Annotated[Text, NotEchoed]
    """`*********` keeps the stored password."""


class AssertionWrite(RequestModel):
    """A condition that must hold for the check to pass."""

    source: str
    """What is compared."""
    comparison: str
    """How it is compared with `target`."""
    property: Annotated[MaybeText, Field(max_length=MOST_PATTERN_LETTERS)] = ""
    """JSON sources: a JSONPath. HEADERS: the header's name. LATENCY: avg, min, max or stdDev.
    Text sources: a regular expression whose first capture group is compared."""
    target: MaybeText = ""
    """Always a string; compared as a number if the actual value is one."""
    regex: Annotated[Text, Field(max_length=MOST_PATTERN_LETTERS)] | None = None
    """HEADERS only: the first capture group is compared. Null: the whole value."""

    kind: ClassVar[CheckType]

    @model_validator(mode="after")
    def _makes_sense(self) -> "AssertionWrite":
        if problem := property_problem(self.source, self.property or ""):
            raise field_error("property", problem)
        assertion = Assertion(
            source=Source(self.source),
            comparison=Comparison(self.comparison),
            property=self.property or "",
            target=self.target or "",
            regex=self.regex,
        )
        if found := assertion_problem(assertion, self.kind) or expression_problem(assertion):
            raise field_error(*found)
        return self


class RetryStrategy(RequestModel):
    """How a failed run is retried."""

    type: Literal["FIXED", "LINEAR", "EXPONENTIAL", "SINGLE_RETRY"]
    """How the wait before each retry grows."""
    base_backoff_seconds: Annotated[float, Field(ge=0, le=86_400), JsonNumber] = 60
    """Seconds before the first retry."""
    same_region: bool = True
    """Whether retries run at the same location instead of another one."""
    max_retries: Annotated[int, Field(ge=1, le=10), JsonNumber] | None = None
    """Number of retries. Null: 2, or 1 for SINGLE_RETRY."""
    max_duration_seconds: Annotated[float, Field(ge=0, le=600), JsonNumber] | None = None
    """Seconds within which all runs must begin. Null: 600."""
    only_on: list[Literal["NETWORK_ERROR"]] | Literal["NETWORK_ERROR"] | None = None
    """Retry only after these failures; null or empty: after any failure."""


class AlertSubscription(RequestModel):
    """A channel that gets the check's alerts."""

    alert_channel_id: Whole
    """The id of the channel."""
    activated: bool = True
    """Whether the channel gets alerts; false also if the group's would reach it."""


def read_choices(sent: Iterable[AlertSubscription] | None) -> tuple[ChannelChoice, ...]:
    """What a check or a group says about channels; of several about one the last counts."""
    return tuple(
        {
            one.alert_channel_id: ChannelChoice(one.alert_channel_id, one.activated)
            for one in sent or ()
        }.values()
    )


class TriggerIncident(RequestModel):
    """A status page incident that follows the check's alerts."""

    service_id: Text
    """The service of the status page."""
    severity: Literal["CRITICAL", "MAJOR", "MEDIUM", "MINOR"]
    """How severe the incident is."""
    name: Text
    """The title of the incident."""
    description: Text
    """The text of the incident."""
    notify_subscribers: bool
    """Whether subscribers of the status page are notified."""


class RunBased(RequestModel):
    """Alert after this many failed runs in a row."""

    failed_run_threshold: Annotated[Literal[1, 2, 3, 4, 5], JsonNumber] = 1
    """Failed runs in a row."""


class TimeBased(RequestModel):
    """Alert once it has failed for this many minutes."""

    minutes_failing_threshold: Annotated[Literal[5, 10, 15, 30], JsonNumber] = 5
    """Minutes."""


class Reminders(RequestModel):
    """How often a continuing alert is repeated."""

    amount: Annotated[Literal[0, 1, 2, 3, 4, 5, 100_000], JsonNumber] = 0
    """How many reminders; 100000: no limit."""
    interval: Annotated[Literal[1, 2, 3, 4, 5, 10, 15, 30], JsonNumber] = 5
    """Minutes between reminders."""


class ParallelRuns(RequestModel):
    """With parallel runs: alert only when this share of locations fails."""

    enabled: bool = False
    """Whether the share counts."""
    percentage: Annotated[Literal[10, 20, 30, 40, 50, 60, 70, 80, 90, 100], JsonNumber] = 10
    """The share of locations, in percent."""


class AlertSettings(RequestModel):
    """When people are alerted."""

    escalation_type: Literal["RUN_BASED", "TIME_BASED"] = "RUN_BASED"
    """Whether failed runs or failing minutes count."""
    run_based_escalation: RunBased = RunBased()
    """With `RUN_BASED`: how many runs."""
    time_based_escalation: TimeBased = TimeBased()
    """With `TIME_BASED`: how many minutes."""
    reminders: Reminders = Reminders()
    """How often an alert is repeated."""
    parallel_run_failure_threshold: ParallelRuns = ParallelRuns()
    """How many locations must fail."""


DEFAULT_REGION: Final[Region] = "us-east-1"
"""Where the established service runs what names no place."""


def _check_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    if found := config_problem(config):
        raise field_error(*found)
    return config


PhaseScript = Annotated[
    Annotated[Text, judged_by(script_problem)] | None, BeforeValidator(blank_is_none)
]
"""Node.js code of a phase. Null or empty: there is no such phase."""
Script = Annotated[Text, Field(min_length=1), judged_by(script_problem)]
"""Code that a check consists of."""
KeptScript = Annotated[PhaseScript, Field(exclude_if=lambda script: script is None)]
"""Code that is kept with a check which does not run it. Null or empty: there is none."""
ScriptPath = Annotated[
    Annotated[Text, Field(max_length=MAX_PATH_LETTERS), judged_by(path_problem)] | None,
    BeforeValidator(blank_is_none),
]
FolderPath = Annotated[
    Annotated[Text, Field(max_length=MAX_PATH_LETTERS), judged_by(folder_problem)] | None,
    BeforeValidator(blank_is_none),
]
PlaywrightConfig = Annotated[dict[str, Any], AfterValidator(_check_config)]
Domain = Annotated[
    Annotated[Text, Field(max_length=253), judged_by(hostname_problem)] | None,
    BeforeValidator(blank_is_none),
]
Sha256 = Annotated[str, Field(json_schema_extra={"pattern": "^[0-9a-f]{64}$"})]
BundlePath = Annotated[Sha256, judged_by(sha256_problem)]
SnapshotKey = Annotated[Sha256, judged_by(sha256_problem)]
Browser = Literal["chromium", "firefox", "webkit"]
Engine = Annotated[Literal["node", "bun", ""] | None, BeforeValidator(blank_is_none)]
Command = Annotated[Text, Field(max_length=2000)]
Label = Annotated[Annotated[Text, Field(max_length=200)] | None, BeforeValidator(blank_is_none)]


class DependencyWrite(RequestModel):
    """A file that a script imports."""

    path: Annotated[Text, Field(min_length=1, max_length=MAX_PATH_LETTERS)]
    """Relative to the same folder as `scriptPath`."""
    content: Text


class AgentRuntime(RequestModel):
    """What the model of an AGENTIC check has besides its prompt."""

    skills: Listing[Text] = Field(default_factory=list)


def fill_in_region(regions: list[Region]) -> list[Region]:
    """The regions, or the established service's one where none is named."""
    return regions or [DEFAULT_REGION]


def _replace_none_by_default(given: AgentRuntime | None) -> AgentRuntime:
    return given or AgentRuntime()


MaybeAgentRuntime = Annotated[AgentRuntime | None, AfterValidator(_replace_none_by_default)]
Prompt = Annotated[Text, Field(min_length=1, max_length=10_000)]
Url = Annotated[Text, Field(min_length=1, max_length=2048), judged_by(url_problem)]
Hostname = Annotated[Text, Field(min_length=1, max_length=2048), judged_by(hostname_problem)]


def _status_code(value: object) -> object:
    """Clients may write a code as the number that it is."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


StatusCodes = Annotated[
    list[
        Annotated[
            Annotated[Text, Field(max_length=7), judged_by(status_codes_problem)],
            BeforeValidator(_status_code),
        ]
    ]
    | None,
    Field(max_length=100),
    AfterValidator(_replace_none_by_list),
]
ConnectTo = Annotated[
    Annotated[Text, Field(max_length=60), judged_by(connect_to_problem)] | None,
    BeforeValidator(blank_is_none),
]


class HttpWrite(RequestModel):
    """What URL monitors and API checks request."""

    url: Url
    """`*********` for user and password keeps the stored ones."""
    follow_redirects: bool = True
    """Whether redirects are followed."""
    skip_ssl: bool = Field(default=False, alias="skipSSL")
    """Do not verify the certificate."""
    ip_family: Family = "IPv4"
    """The version of the Internet Protocol."""
    http_version: Version = "AUTO"
    """AUTO offers HTTP/2 over TLS; the others require that version."""
    accepted_status_codes: StatusCodes = Field(default_factory=list)
    """Codes, ranges and classes that pass, as in 429, 200-299 and 4xx. Empty: those below
    400. Beyond the specification."""
    auth_scheme: Literal["BASIC", "DIGEST"] = "BASIC"
    """How user and password are sent: BASIC with the request, DIGEST as the answer to the server's
    challenge (RFC 7616). Beyond the specification."""
    connect_to: ConnectTo = None
    """The IP address to connect to, perhaps with a port. Null: the host's. Beyond the
    specification."""

    @model_validator(mode="after")
    def _address_is_of_the_family(self) -> "HttpWrite":
        address = split_address(self.connect_to or "")
        if address is not None and (":" in address[0]) != (self.ip_family == "IPv6"):
            found = "IPv6" if ":" in address[0] else "IPv4"
            problem = f"is an {found} address, and ipFamily is {self.ip_family}; set it to {found}"
            raise field_error("connectTo", problem)
        return self
