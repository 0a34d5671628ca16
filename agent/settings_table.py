"""Every setting of the agent: name, default, limits, sentence."""

import ipaddress
import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from agent.telemetry.logs import LogFormat, LogLevel
from contract.targets import hostname_problem

EnumT = TypeVar("EnumT", bound=StrEnum)

BYTES_PER_MAIN_JOB: Final = 1_500_000_000
"""What a browser and its Node process need."""
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~\-]{1,100}")
_SWITCH_WORDS: Final = {
    "on": True, "true": True, "yes": True, "1": True,
    "off": False, "false": False, "no": False, "0": False,
}  # fmt: skip
_UNITS: Final = {
    "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4,
    "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4,
}  # fmt: skip
_LISTEN_ADDRESS: Final = "an IP address of this machine, as in 127.0.0.1"
_CGROUP_LIMITS: Final = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


_ACCOUNT_KEY: Final = "cu_"
"""What the keys of the public API begin with."""


class OtherKindError(ValueError):
    """The value is one of another kind; the text says of which, and never the value."""


class BadPartError(ValueError):
    """A part of the value is wrong; the text says what to use, and never the value."""


def location_key(text: str) -> str:
    """A key that goes into a header: no blanks, no control characters, ASCII.

    Only what is known to be another key is refused for its beginning.
    """
    if text.startswith(_ACCOUNT_KEY):
        raise OtherKindError(f"a key of the public API, which begins with {_ACCOUNT_KEY}")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(text)
    return text


def service_url(text: str) -> str:
    """An http or https address without credentials, query and fragment, no slash at its end.

    One of its API is none: what the agent asks for begins with that itself.
    """
    parts = _http_url(text)
    is_of_api = parts.path.rstrip("/").endswith(("/v1", "/v2"))
    if parts.username is not None or parts.query or parts.fragment or is_of_api:
        raise ValueError(text)
    return text.rstrip("/")


def listen_address(text: str) -> str:
    """An IP address to listen on; which ones this machine has is known when it listens."""
    return str(ipaddress.ip_address(text))


def proxy_url(text: str) -> str:
    """The address of an HTTP proxy, perhaps with credentials; `http://` may be left out."""
    text = text if "://" in text else f"http://{text}"
    _http_url(text)
    return text


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number within bounds."""

    def read(text: str) -> int:
        number = int(text)
        if not low <= number <= high:
            raise ValueError(text)
        return number

    return read


def seconds(low: float, high: float) -> Callable[[str], float]:
    """A number of seconds within bounds."""

    def read(text: str) -> float:
        number = float(text.removesuffix("s"))
        if not low <= number <= high:
            raise ValueError(text)
        return number

    return read


def size_bytes(text: str) -> int:
    """A size: plain bytes, or a number with a unit as in `512MiB`."""
    lower = text.replace(" ", "").lower()
    unit = next((unit for unit in _UNITS if lower.endswith(unit)), "")
    size = int(lower.removesuffix(unit)) * _UNITS.get(unit, 1)
    if size < 0:
        raise ValueError(text)
    return size


def switch(text: str) -> bool:
    """`on` or `off`, in the usual spellings."""
    try:
        return _SWITCH_WORDS[text.lower()]
    except KeyError:
        raise ValueError(text) from None


def word_of(words: type[EnumT], *, upper: bool) -> Callable[[str], EnumT]:
    """One of a closed set of words, in any case."""
    return lambda text: words(text.upper() if upper else text.lower())


def listed(text: str) -> tuple[str, ...]:
    """Values separated by commas; blanks around them do not count."""
    return tuple(filter(None, map(str.strip, text.split(","))))


def header_names(text: str) -> tuple[str, ...]:
    """Names of headers, separated by commas."""
    names = listed(text)
    if not all(_HEADER_NAME.fullmatch(name) for name in names):
        raise ValueError
    return names


def directory(text: str) -> Path:
    """An absolute path; it is made later, when something is to be kept in it."""
    path = Path(text)
    if not path.is_absolute():
        raise ValueError(text)
    return path


def existing_directory(text: str) -> Path:
    """A folder that is there."""
    path = directory(text)
    if not path.is_dir():
        raise ValueError(text)
    return path


def program(text: str) -> Path:
    """A file that may be executed, by its absolute path."""
    path = directory(text)
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise ValueError(text)
    return path


def pem_file(text: str) -> Path:
    """A readable file of at least one certificate."""
    path = Path(text)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except OSError as problem:  # ssl.SSLError is one
        raise ValueError(text) from problem
    return path


def default_main_slots(*, cores: int, free_bytes: int) -> int:
    """One job per 1.5 GB of free memory, at most one per core, at least one."""
    return max(1, min(cores, free_bytes // BYTES_PER_MAIN_JOB))


def free_memory_bytes() -> int:
    """What this process may still use, by the machine and by its container's limit."""
    free = [_available_bytes()]
    for limit, used in _CGROUP_LIMITS:
        try:
            free.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # no such limit, or the word "max"
            continue
    return max(0, min(free))


def _available_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return BYTES_PER_MAIN_JOB
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return kilobytes[0] * 1024 if kilobytes else BYTES_PER_MAIN_JOB


def _http_url(text: str) -> SplitResult:
    parts = urlsplit(text)
    blank = any(letter.isspace() for letter in text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or blank:
        raise ValueError(text)
    if not _has_good_port(parts):
        raise BadPartError("a port from 1 to 65535, or none")
    if hostname_problem(parts.hostname) is not None:
        raise ValueError
    return parts


def _has_good_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


REQUIRED: Final = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One variable, for whoever sets it and for the page that lists them."""

    name: str
    field: str
    """The field of `Settings` that it fills."""
    read: Callable[[str], object]
    """Raises ValueError for what is not allowed."""
    default: str
    """The default as a person reads it, or `required`."""
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
        read=location_key,
        default=REQUIRED,
        allowed="the key of a private location, which begins with pl_",
        meaning="Key of the private location that this agent works for.",
        secret=True,
    ),
    Setting(
        name="SERVICE_URL",
        field="service_url",
        read=service_url,
        default=REQUIRED,
        allowed=(
            "the URL of the service, which begins with http:// or https://, as in "
            "https://picket.example, without /v1 and without credentials"
        ),
        meaning="URL of the service.",
    ),
    Setting(
        name="JOB_CONCURRENCY",
        field="job_concurrency",
        read=whole(1, 1000),
        default="1 per 1.5 GB of free memory, at most the cores",
        allowed="1 to 1000",
        meaning="How many browser, multi-step, Playwright and scripted API checks run at once.",
    ),
    Setting(
        name="UPTIME_CONCURRENCY",
        field="uptime_concurrency",
        read=whole(1, 10_000),
        default="256",
        allowed="1 to 10000",
        meaning="How many checks without browsers or scripts run at once.",
    ),
    Setting(
        name="BODY_MEMORY_MB",
        field="body_memory_mb",
        read=whole(192, 1_000_000),
        default="256",
        allowed="192 to 1000000",
        meaning=(
            "How many MB the response bodies that assertions read may take together, judging "
            "included; a body beyond it waits."
        ),
    ),
    Setting(
        name="AGENT_HEALTH_PORT",
        field="health_port",
        read=whole(0, 65535),
        default="8081",
        allowed="0 to 65535",
        meaning="Port of the probes and of /metrics; 0 selects a free one.",
    ),
    Setting(
        name="AGENT_HEALTH_HOST",
        field="health_host",
        read=listen_address,
        default="all addresses",
        allowed=_LISTEN_ADDRESS,
        meaning="The only address on which AGENT_HEALTH_PORT listens, as in 127.0.0.1.",
    ),
    Setting(
        name="HEARTBEAT_PORT",
        field="heartbeat_port",
        read=whole(0, 65535),
        default="8082",
        allowed="0 to 65535",
        meaning="Port on which jobs in the closed network send heartbeat pings; 0 disables it.",
    ),
    Setting(
        name="HEARTBEAT_HOST",
        field="heartbeat_host",
        read=listen_address,
        default="all addresses",
        allowed=_LISTEN_ADDRESS,
        meaning="The only address on which HEARTBEAT_PORT listens, as in 127.0.0.1.",
    ),
    Setting(
        name="EXTERNAL_OBSERVABILITY",
        field="external_observability",
        read=switch,
        default="on",
        allowed=_SWITCH,
        meaning="Whether error-level events of the agent are reported to the service.",
    ),
    Setting(
        name="LOG_LEVEL",
        field="log_level",
        read=word_of(LogLevel, upper=True),
        default="INFO",
        allowed="DEBUG, INFO, LOG, WARN or ERROR",
        meaning="The lowest level of log lines that are written.",
    ),
    Setting(
        name="LOG_FORMAT",
        field="log_format",
        read=word_of(LogFormat, upper=False),
        default="console on a terminal, json otherwise",
        allowed="json or console",
        meaning="Format of log lines.",
    ),
    Setting(
        name="HTTPS_PROXY",
        field="https_proxy",
        read=proxy_url,
        default="",
        allowed=_PROXY,
        meaning=(
            "Proxy for the agent's own traffic to an https service, and for installing a suite's "
            "packages; not for checks."
        ),
        secret=True,
        any_case=True,
    ),
    Setting(
        name="HTTP_PROXY",
        field="http_proxy",
        read=proxy_url,
        default="",
        allowed=_PROXY,
        meaning="Proxy for an http service, and for https when HTTPS_PROXY is not set.",
        secret=True,
        any_case=True,
    ),
    Setting(
        name="NO_PROXY",
        field="no_proxy",
        read=listed,
        default="",
        allowed="hosts, .suffixes, addresses and networks, separated by commas",
        meaning="Hosts that the agent reaches without a proxy; * for all.",
        any_case=True,
    ),
    Setting(
        name="USE_OS_DNS_RESOLVER",
        field="use_os_dns_resolver",
        read=switch,
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
        read=pem_file,
        default="",
        allowed="a readable PEM file of certificates",
        meaning="File with additional root certificates, for the service and for checks.",
    ),
    Setting(
        name="EGRESS_ALLOW",
        field="egress_allow",
        read=listed,
        default="everything",
        allowed="networks, addresses and names, separated by commas",
        meaning="The only networks and names that checks may reach.",
    ),
    Setting(
        name="EGRESS_DENY",
        field="egress_deny",
        read=listed,
        default="link-local and cloud metadata addresses",
        allowed="networks, addresses and names, separated by commas",
        meaning="Networks and names that checks may not reach; overrides EGRESS_ALLOW.",
    ),
    Setting(
        name="PICKET_RUNTIMES",
        field="runtimes_dir",
        read=existing_directory,
        default="",
        allowed="the absolute path of a folder that exists",
        meaning="Where the runtimes of scripted checks are, if not where they were installed.",
    ),
    Setting(
        name="CHROMIUM_PATH",
        field="chromium_path",
        read=program,
        default="",
        allowed="the absolute path of a program",
        meaning="Chromium's headless shell, if not the system's; its version is read at start.",
    ),
    Setting(
        name="AGENT_DATA_DIR",
        field="data_dir",
        read=directory,
        default="/var/lib/picket",
        allowed="an absolute path",
        meaning="Where results, their files and pings wait while the service is unreachable.",
    ),
    Setting(
        name="AGENT_SENSITIVE_HEADERS",
        field="sensitive_headers",
        read=header_names,
        default="",
        allowed="names of headers, as in X-Session, X-Internal-Token",
        meaning="Headers whose values are hidden, besides Authorization, Cookie and the like.",
    ),
    Setting(
        name="SPOOL_MAX_BYTES",
        field="spool_max_bytes",
        read=size_bytes,
        default="1GiB",
        allowed="a number of bytes, or a size such as 512MiB",
        meaning="Bytes of results, and separately of files, that may wait; the oldest go first.",
    ),
    Setting(
        name="SPOOL_MAX_AGE_S",
        field="spool_max_age_s",
        read=seconds(1, 366 * 86400),
        default="86400",
        allowed="1 to 31622400 seconds",
        meaning="How long a result may wait before it is dropped.",
    ),
    Setting(
        name="SHUTDOWN_GRACE_S",
        field="shutdown_grace_s",
        read=seconds(0, 86400),
        default="300",
        allowed="0 to 86400 seconds",
        meaning="How long running checks may take to end after the first SIGTERM.",
    ),
    Setting(
        name="AGENT_READY_GRACE_S",
        field="ready_grace_s",
        read=seconds(0, 86400),
        default="60",
        allowed="0 to 86400 seconds",
        meaning="How long the service may be unreachable before the agent becomes unready.",
    ),
)
"""Every variable but `SERVICE_SECRET_*`, in the order of the settings page."""
