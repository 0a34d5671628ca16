"""Every variable that the agent reads: its name, default, meaning and what it may be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent import settings_values as values
from agent.logs import LogFormat, LogLevel

REQUIRED: Final = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One variable, for whoever sets it and for the page that lists them."""

    name: str
    field: str
    """Of `Settings`."""
    read: Callable[[str], object]
    """Raises ValueError for what is not allowed."""
    default: str
    """As a person reads it; `required` when there is none."""
    allowed: str
    """Completes the sentence `NAME is VALUE; use …`."""
    meaning: str
    secret: bool = False
    """Never printed; may come from a file named by the variable `NAME_FILE`."""
    any_case: bool = False
    """The lower-case name counts as well, as everywhere with proxies."""


_PROXY: Final = "the address of an HTTP proxy, as in http://proxy.example:3128"
_SWITCH: Final = "on or off"

SETTINGS: Final = (
    Setting(
        name="API_KEY",
        field="api_key",
        read=values.location_key,
        default=REQUIRED,
        allowed="the key of a private location, which begins with pl_",
        meaning="Key of the private location that this agent works for.",
        secret=True,
    ),
    Setting(
        name="SERVICE_URL",
        field="service_url",
        read=values.service_url,
        default=REQUIRED,
        allowed=(
            "the address of the service, which begins with http:// or https://, as in "
            "https://picket.example, without /v1, and holds no credentials"
        ),
        meaning="Where the service is.",
    ),
    Setting(
        name="JOB_CONCURRENCY",
        field="job_concurrency",
        read=values.whole(1, 1000),
        default="1 per 1.5 GB of free memory, at most the cores",
        allowed="1 to 1000",
        meaning="How many browser, multi-step, Playwright and scripted API checks run at once.",
    ),
    Setting(
        name="UPTIME_CONCURRENCY",
        field="uptime_concurrency",
        read=values.whole(1, 10_000),
        default="256",
        allowed="1 to 10000",
        meaning="How many checks without browsers or scripts run at once.",
    ),
    Setting(
        name="AGENT_HEALTH_PORT",
        field="health_port",
        read=values.whole(0, 65535),
        default="8081",
        allowed="0 to 65535",
        meaning="Port of the probes and of /metrics; 0 takes a free one.",
    ),
    Setting(
        name="HEARTBEAT_PORT",
        field="heartbeat_port",
        read=values.whole(0, 65535),
        default="8082",
        allowed="0 to 65535",
        meaning="Port where jobs in the closed network send heartbeat pings; 0 switches it off.",
    ),
    Setting(
        name="EXTERNAL_OBSERVABILITY",
        field="external_observability",
        read=values.switch,
        default="on",
        allowed=_SWITCH,
        meaning="Whether error-level events of the agent are reported to the service.",
    ),
    Setting(
        name="LOG_LEVEL",
        field="log_level",
        read=values.word_of(LogLevel, upper=True),
        default="INFO",
        allowed="DEBUG, INFO, LOG, WARN or ERROR",
        meaning="The least important log lines that are written.",
    ),
    Setting(
        name="LOG_FORMAT",
        field="log_format",
        read=values.word_of(LogFormat, upper=False),
        default="console on a terminal, json otherwise",
        allowed="json or console",
        meaning="How a log line is written.",
    ),
    Setting(
        name="HTTPS_PROXY",
        field="https_proxy",
        read=values.proxy_url,
        default="",
        allowed=_PROXY,
        meaning=(
            "Proxy for the agent's own traffic to an https service, and for installing a suite's "
            "packages; not for the checks'."
        ),
        secret=True,
        any_case=True,
    ),
    Setting(
        name="HTTP_PROXY",
        field="http_proxy",
        read=values.proxy_url,
        default="",
        allowed=_PROXY,
        meaning="The same for an http service, and for https when HTTPS_PROXY is not set.",
        secret=True,
        any_case=True,
    ),
    Setting(
        name="NO_PROXY",
        field="no_proxy",
        read=values.listed,
        default="",
        allowed="hosts, .suffixes, addresses and networks, separated by commas",
        meaning="Where the agent goes without a proxy; * for everywhere.",
        any_case=True,
    ),
    Setting(
        name="USE_OS_DNS_RESOLVER",
        field="use_os_dns_resolver",
        read=values.switch,
        default="off",
        allowed=_SWITCH,
        meaning=(
            "Resolve hosts, and the name servers of DNS checks, through the system instead of "
            "asking DNS servers; URL and API checks always do, unless the location's proxy "
            "resolves for them."
        ),
    ),
    Setting(
        name="EXTRA_CA_CERTS",
        field="extra_ca_certs",
        read=values.pem_file,
        default="",
        allowed="a readable PEM file of certificates",
        meaning="File of further roots to trust, for the service and for the checks.",
    ),
    Setting(
        name="EGRESS_ALLOW",
        field="egress_allow",
        read=values.listed,
        default="everything",
        allowed="networks, addresses and names, separated by commas",
        meaning="The only networks and names that checks may reach.",
    ),
    Setting(
        name="EGRESS_DENY",
        field="egress_deny",
        read=values.listed,
        default="link-local and cloud metadata addresses",
        allowed="networks, addresses and names, separated by commas",
        meaning="Networks and names that checks may not reach; wins over EGRESS_ALLOW.",
    ),
    Setting(
        name="PICKET_RUNTIMES",
        field="runtimes_dir",
        read=values.existing_directory,
        default="",
        allowed="the absolute path of a folder",
        meaning="Where the runtimes of scripted checks are, if not where they were installed.",
    ),
    Setting(
        name="CHROMIUM_PATH",
        field="chromium_path",
        read=values.program,
        default="",
        allowed="the absolute path of a program",
        meaning="Chromium's headless shell, if not the system's; it says its version at start.",
    ),
    Setting(
        name="AGENT_DATA_DIR",
        field="data_dir",
        read=values.directory,
        default="/var/lib/picket",
        allowed="an absolute path",
        meaning="Where results, their files and pings wait while the service is away.",
    ),
    Setting(
        name="AGENT_SENSITIVE_HEADERS",
        field="sensitive_headers",
        read=values.header_names,
        default="",
        allowed="names of headers, as in X-Session, X-Internal-Token",
        meaning="Headers whose values no result shows, beside Authorization, Cookie and the like.",
    ),
    Setting(
        name="SPOOL_MAX_BYTES",
        field="spool_max_bytes",
        read=values.size_bytes,
        default="1GiB",
        allowed="a number of bytes, or a size such as 512MiB",
        meaning="How many bytes of results, and again of files, may wait; the oldest go first.",
    ),
    Setting(
        name="SPOOL_MAX_AGE_S",
        field="spool_max_age_s",
        read=values.seconds(1, 366 * 86400),
        default="86400",
        allowed="1 to 31622400 seconds",
        meaning="How long a result may wait there before it is dropped.",
    ),
    Setting(
        name="SHUTDOWN_GRACE_S",
        field="shutdown_grace_s",
        read=values.seconds(0, 86400),
        default="300",
        allowed="0 to 86400 seconds",
        meaning="How long running checks may take to end after the first SIGTERM.",
    ),
    Setting(
        name="AGENT_READY_GRACE_S",
        field="ready_grace_s",
        read=values.seconds(0, 86400),
        default="60",
        allowed="0 to 86400 seconds",
        meaning="How long the service may be away before the agent turns unready.",
    ),
)
"""Every variable but `SERVICE_SECRET_*`, in the order of the settings page."""
