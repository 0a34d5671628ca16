"""The service's settings: environment variables, read once, all problems said at once."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from contract.suggestions import UnknownName, unknown_names
from service.accounts.keys import LOCATION_PREFIX, SERVICE_PREFIX, USER_PREFIX
from service.accounts.model import Role
from service.addresses.model import NO_ADDRESSES, StaticAddresses, parse_addresses
from service.alert_channels.sending.egress import Network, parse_networks
from service.checks.environment_urls import NO_HOSTS, EnvironmentHosts, parse_hosts
from service.errors import SettingsError
from service.locations.regions import NO_REGIONS, RegionLocations, parse_regions
from service.mail.model import Sender, SmtpServer
from service.mail.rules import find_address_problem, parse_sender, parse_server
from service.object_store.model import Bucket, parse_bucket
from service.oidc.model import OidcSettings
from service.oidc.rules import parse_domains, parse_roles
from service.vault.master_keys import parse_keys

ValueT = TypeVar("ValueT")

_SQLITE: Final = "sqlite:///"
_POSTGRESQL: Final = ("postgresql://", "postgres://")
_DATABASE_FILE: Final = "picket.db"
_LEAST_KEY_LETTERS: Final = 32
_NO_ROLES: Final[Mapping[str, Role]] = MappingProxyType({})
_VIEWER_PORT: Final[int | None] = 8083


class LogLevel(StrEnum):
    """The least important lines that are written."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    """How a line is written."""

    JSON = "json"
    CONSOLE = "console"


class MetricsAccess(StrEnum):
    """Who may read `/metrics`."""

    OFF = "off"
    LOOPBACK = "loopback"
    ANYONE = "anyone"


class BadgeAccess(StrEnum):
    """Who may see badges."""

    KEY = "key"
    ANYONE = "anyone"


@dataclass(frozen=True, slots=True)
class PostgresUrl:
    """Where a PostgreSQL database is, and with which password."""

    value: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an operator may choose."""

    host: str = "0.0.0.0"
    """SERVICE_HOST: the address to listen at."""
    port: int = 8080
    """SERVICE_PORT: the port to listen at; 0 for any free one."""
    data_dir: Path = Path(".picket/service")
    """SERVICE_DATA_DIR: where the database and uploaded files are kept."""
    database: Path | PostgresUrl = Path(".picket/service") / _DATABASE_FILE
    """DATABASE_URL: sqlite:/// and a path, or postgresql:// and the rest; without it a file in
    SERVICE_DATA_DIR."""
    artifact_store: Bucket | None = None
    """ARTIFACT_STORE: the bucket for files of results and bundles, as in s3://bucket/prefix. None:
    folders in SERVICE_DATA_DIR."""
    artifact_endpoint: str | None = None
    """ARTIFACT_STORE_ENDPOINT: the address of the store of that bucket. None: AWS."""
    artifact_region: str = "us-east-1"
    """ARTIFACT_STORE_REGION: the region of the bucket."""
    artifact_key_id: str | None = None
    """ARTIFACT_STORE_KEY_ID: the access key. None: credentials as other AWS clients find them."""
    artifact_secret_key: str | None = field(default=None, repr=False)
    """ARTIFACT_STORE_SECRET_KEY: the secret of the access key."""
    artifact_link_minutes: int = 0
    """ARTIFACT_LINK_MINUTES: how long signed links to files are valid; 0: there are none."""
    artifact_agent_link_minutes: int = 0
    """ARTIFACT_AGENT_LINK_MINUTES: how long links are valid by which agents reach the bucket
    themselves; 0: they send files to the service."""
    public_url: str | None = None
    """SERVICE_PUBLIC_URL: where people reach the service. None: where the request came in."""
    trace_viewer_port: int | None = _VIEWER_PORT
    """TRACE_VIEWER_PORT: where the trace viewer listens, an origin of its own; 0 for any free one.
    None: it is off."""
    trace_viewer_url: str | None = None
    """TRACE_VIEWER_URL: where people reach the trace viewer, with a host of its own. None: at the
    other one of the names 127.0.0.1 and localhost."""
    trusted_proxies: tuple[str, ...] = ("127.0.0.1",)
    """TRUSTED_PROXIES: addresses and networks of proxies whose `X-Forwarded-For` counts."""
    log_level: LogLevel = LogLevel.INFO
    """LOG_LEVEL: DEBUG, INFO, WARN or ERROR."""
    log_format: LogFormat = LogFormat.JSON
    """LOG_FORMAT: json or console; without it console on a terminal."""
    metrics_access: MetricsAccess = MetricsAccess.LOOPBACK
    """METRICS_ACCESS: off, loopback or anyone."""
    badge_access: BadgeAccess = BadgeAccess.KEY
    """BADGE_ACCESS: key or anyone."""
    static_addresses: StaticAddresses = NO_ADDRESSES
    """STATIC_ADDRESSES: where agents' requests come from, as in cellar=192.0.2.7."""
    region_locations: RegionLocations = NO_REGIONS
    """REGION_LOCATIONS: private locations that run what names a region, as in *=default."""
    environment_hosts: EnvironmentHosts = NO_HOSTS
    """ENVIRONMENT_URL_HOSTS: hosts at which trigger links may run checks, as in *.example.com."""
    master_keys: tuple[bytes, ...] = field(default=(), repr=False)
    """SERVICE_MASTER_KEY: what secrets are encrypted with in the database, the current key first.
    Empty: the key in the file master-key beside the database, which a first start makes."""
    key_pepper: str | None = field(default=None, repr=False)
    """KEY_PEPPER: the secret that keys are hashed with. None: one that is made once and kept."""
    sms_gateway: str | None = field(default=None, repr=False)
    """SMS_GATEWAY_URL: takes text messages of alerts. None: there are none."""
    call_gateway: str | None = field(default=None, repr=False)
    """CALL_GATEWAY_URL: takes calls of alerts. None: there are none."""
    alert_egress_allow: tuple[Network, ...] = ()
    """ALERT_EGRESS_ALLOW: loopback and link-local networks that alert channels may reach."""
    api_requests: int = 600
    """API_REQUESTS_PER_MINUTE: of an API key, or of an address that needs none; 0: no limit."""
    result_lists: int = 60
    """RESULT_LISTS_PER_MINUTE: lists of results that an API key may ask for; 0: no limit."""
    analytics_requests: int = 30
    """ANALYTICS_REQUESTS_PER_MINUTE: series, summaries and reports, per API key; 0: no limit."""
    agent_requests: int = 120_000
    """LOCATION_REQUESTS_PER_MINUTE: of all agents with one location key; 0: no limit."""
    refused_requests: int = 300
    """REFUSED_REQUESTS_PER_MINUTE: of an address, with keys that are none; 0: no limit."""
    smtp_server: SmtpServer | None = field(default=None, repr=False)
    """SMTP_URL: the server that takes mails, as in smtp://user:password@mail.example:587.
    None: no mails are sent."""
    mail_sender: Sender | None = None
    """SMTP_FROM: who mails come from. None: the user of SMTP_URL, if that is an address."""
    results_kept_days: int = 30
    """RESULTS_KEPT_DAYS: how long results are kept; 0: for ever."""
    rollups_kept_days: int = 761
    """ROLLUPS_KEPT_DAYS: how long hourly and daily roll-ups are kept, 25 months; 0: for ever."""
    files_kept_days: int = 30
    """FILES_KEPT_DAYS: how long files of results are kept; 0: for ever."""
    late_results_kept_days: int = 7
    """LATE_RESULTS_KEPT_DAYS: how long results that came too late are kept; 0: for ever."""
    alerts_kept_days: int = 396
    """ALERTS_KEPT_DAYS: how long alerts are kept, 13 months; 0: for ever."""
    clickhouse_url: str | None = field(default=None, repr=False)
    """CLICKHOUSE_URL: where results are copied to, as in https://user:password@host:8443/database.
    None: nowhere."""
    clickhouse_days: int = 400
    """CLICKHOUSE_DAYS: how long ClickHouse keeps copies; 0: for ever."""
    oidc_issuer: str | None = None
    """OIDC_ISSUER: the identity provider by which people may sign in. None: there is none."""
    oidc_client_id: str = ""
    """OIDC_CLIENT_ID: the service's id at the identity provider."""
    oidc_client_secret: str | None = field(default=None, repr=False)
    """OIDC_CLIENT_SECRET: its secret there. None: the service is a public client."""
    oidc_domains: tuple[str, ...] = ()
    """OIDC_ALLOWED_DOMAINS: of mail addresses whose people alone may sign in. Empty: of all."""
    oidc_roles: Mapping[str, Role] = field(default_factory=dict)
    """OIDC_ROLES: those of the provider's groups, whose people alone may sign in. Empty: of all."""
    oidc_groups_claim: str = "groups"
    """OIDC_GROUPS_CLAIM: in which the identity provider lists groups."""
    first_api_key: str | None = field(default=None, repr=False)
    """FIRST_API_KEY: the API key of a first start. None: a new one is made and printed."""
    first_location_key: str | None = field(default=None, repr=False)
    """FIRST_LOCATION_KEY: the location key of a first start. None: as above."""
    unknown: tuple[UnknownName, ...] = ()
    """Variables that look like settings and are none."""

    @property
    def database_file(self) -> Path:
        """The database, or what lies in its place where it is no file: keys are beside it."""
        if isinstance(self.database, PostgresUrl):
            return self.data_dir / _DATABASE_FILE
        return self.database

    @property
    def artifact_folder(self) -> Path:
        """Files of results, or with a bucket those that are still arriving."""
        return self.data_dir / "artifacts"

    @property
    def artifact_bucket(self) -> Bucket | None:
        """The bucket for files of results, and how to reach it. None: they stay in the folder."""
        if self.artifact_store is None:
            return None
        return replace(
            self.artifact_store,
            endpoint=self.artifact_endpoint,
            region=self.artifact_region,
            key_id=self.artifact_key_id,
            secret_key=self.artifact_secret_key,
            link_s=60 * self.artifact_link_minutes,
            agent_link_s=60 * self.artifact_agent_link_minutes,
        )

    @property
    def oidc(self) -> OidcSettings | None:
        """The identity provider. None: there is none."""
        if self.oidc_issuer is None:
            return None
        return OidcSettings(
            issuer=self.oidc_issuer,
            client_id=self.oidc_client_id,
            client_secret=self.oidc_client_secret,
            domains=self.oidc_domains,
            roles=self.oidc_roles,
            groups_claim=self.oidc_groups_claim,
        )


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from the given environment, or from the process's own.

    Raises:
        SettingsError: with all problems at once, none of which holds a secret.
    """
    reading = _Reading(os.environ if environ is None else environ)
    settings = _with_sender(reading, replace(_known(reading), unknown=reading.unknown()))
    _require_client(reading, settings)
    _check_artifacts(reading, settings)
    _check_viewer(reading, settings)
    if reading.problems:
        raise SettingsError(tuple(reading.problems))
    return settings


@dataclass(slots=True)
class _Reading:
    """One pass over an environment."""

    environ: Mapping[str, str]
    problems: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """Those that were read."""

    def value(self, name: str, read: Callable[[str], ValueT], *, default: ValueT) -> ValueT:
        """The variable, or what the file that its `_FILE` twin names holds."""
        self.names.add(name)
        text = self._text(name)
        if not text:
            return default
        try:
            return read(text)
        except ValueError as problem:
            self.problems.append(f"{name} {problem}")
            return default

    def unknown(self) -> tuple[UnknownName, ...]:
        """What was set and not read, and looks like it."""
        known = self.names | {f"{name}_FILE" for name in self.names}
        return unknown_names(self.environ, known=known, misspelt=sorted(self.names))

    def _text(self, name: str) -> str:
        given, file = self.environ.get(name, ""), self.environ.get(f"{name}_FILE", "")
        if not file:
            return given.strip()
        if given:
            self.problems.append(f"{name} and {name}_FILE are both set; use one of them")
            return ""
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            reason = getattr(problem, "strerror", None) or "it is not text"
            self.problems.append(f"{name}_FILE is {file}, which cannot be read: {reason}")
            return ""


def _known(reading: _Reading) -> Settings:
    """All but the names that are no settings; where there are problems, not to be used."""
    data_dir = reading.value("SERVICE_DATA_DIR", Path, default=Path(".picket/service"))
    default_database: Path | PostgresUrl = data_dir / _DATABASE_FILE
    default_format = LogFormat.CONSOLE if sys.stdout.isatty() else LogFormat.JSON
    return Settings(
        host=reading.value("SERVICE_HOST", str, default="0.0.0.0"),
        port=reading.value("SERVICE_PORT", _port, default=8080),
        data_dir=data_dir,
        database=reading.value("DATABASE_URL", parse_database, default=default_database),
        **_artifacts(reading),
        public_url=reading.value("SERVICE_PUBLIC_URL", _url, default=None),
        trace_viewer_port=reading.value("TRACE_VIEWER_PORT", _port_or_off, default=_VIEWER_PORT),
        trace_viewer_url=reading.value("TRACE_VIEWER_URL", _origin, default=None),
        trusted_proxies=reading.value("TRUSTED_PROXIES", _networks, default=("127.0.0.1",)),
        log_level=reading.value("LOG_LEVEL", _level, default=LogLevel.INFO),
        log_format=reading.value("LOG_FORMAT", _format, default=default_format),
        metrics_access=reading.value("METRICS_ACCESS", _access, default=MetricsAccess.LOOPBACK),
        badge_access=reading.value("BADGE_ACCESS", _badges, default=BadgeAccess.KEY),
        static_addresses=reading.value("STATIC_ADDRESSES", parse_addresses, default=NO_ADDRESSES),
        region_locations=reading.value("REGION_LOCATIONS", parse_regions, default=NO_REGIONS),
        environment_hosts=reading.value("ENVIRONMENT_URL_HOSTS", parse_hosts, default=NO_HOSTS),
        master_keys=reading.value("SERVICE_MASTER_KEY", parse_keys, default=()),
        key_pepper=reading.value("KEY_PEPPER", _pepper, default=None),
        api_requests=reading.value("API_REQUESTS_PER_MINUTE", _count, default=600),
        result_lists=reading.value("RESULT_LISTS_PER_MINUTE", _count, default=60),
        analytics_requests=reading.value("ANALYTICS_REQUESTS_PER_MINUTE", _count, default=30),
        agent_requests=reading.value("LOCATION_REQUESTS_PER_MINUTE", _count, default=120_000),
        refused_requests=reading.value("REFUSED_REQUESTS_PER_MINUTE", _count, default=300),
        smtp_server=reading.value("SMTP_URL", parse_server, default=None),
        mail_sender=reading.value("SMTP_FROM", parse_sender, default=None),
        sms_gateway=reading.value("SMS_GATEWAY_URL", _secret_url, default=None),
        call_gateway=reading.value("CALL_GATEWAY_URL", _secret_url, default=None),
        alert_egress_allow=reading.value("ALERT_EGRESS_ALLOW", parse_networks, default=()),
        results_kept_days=reading.value("RESULTS_KEPT_DAYS", _days, default=30),
        rollups_kept_days=reading.value("ROLLUPS_KEPT_DAYS", _days, default=761),
        files_kept_days=reading.value("FILES_KEPT_DAYS", _days, default=30),
        late_results_kept_days=reading.value("LATE_RESULTS_KEPT_DAYS", _days, default=7),
        alerts_kept_days=reading.value("ALERTS_KEPT_DAYS", _days, default=396),
        clickhouse_url=reading.value("CLICKHOUSE_URL", _clickhouse, default=None),
        clickhouse_days=reading.value("CLICKHOUSE_DAYS", _days, default=400),
        **_oidc(reading),
        first_api_key=reading.value(
            "FIRST_API_KEY", _key(USER_PREFIX, SERVICE_PREFIX), default=None
        ),
        first_location_key=reading.value("FIRST_LOCATION_KEY", _key(LOCATION_PREFIX), default=None),
    )


def _oidc(reading: _Reading) -> dict[str, Any]:
    """The fields of sign-in by OpenID Connect."""
    return {
        "oidc_issuer": reading.value("OIDC_ISSUER", _issuer, default=None),
        "oidc_client_id": reading.value("OIDC_CLIENT_ID", str, default=""),
        "oidc_client_secret": reading.value("OIDC_CLIENT_SECRET", str, default=None),
        "oidc_domains": reading.value(
            "OIDC_ALLOWED_DOMAINS", parse_domains, default=tuple[str, ...]()
        ),
        "oidc_roles": reading.value("OIDC_ROLES", parse_roles, default=_NO_ROLES),
        "oidc_groups_claim": reading.value("OIDC_GROUPS_CLAIM", str, default="groups"),
    }


def _artifacts(reading: _Reading) -> dict[str, Any]:
    """The fields that say where files of results are kept."""
    return {
        "artifact_store": reading.value("ARTIFACT_STORE", parse_bucket, default=None),
        "artifact_endpoint": reading.value("ARTIFACT_STORE_ENDPOINT", _url, default=None),
        "artifact_region": reading.value("ARTIFACT_STORE_REGION", str, default="us-east-1"),
        "artifact_key_id": reading.value("ARTIFACT_STORE_KEY_ID", str, default=None),
        "artifact_secret_key": reading.value("ARTIFACT_STORE_SECRET_KEY", str, default=None),
        "artifact_link_minutes": reading.value("ARTIFACT_LINK_MINUTES", _link_minutes, default=0),
        "artifact_agent_link_minutes": reading.value(
            "ARTIFACT_AGENT_LINK_MINUTES", _link_minutes, default=0
        ),
    }


def _check_viewer(reading: _Reading, settings: Settings) -> None:
    """Cookies ignore ports: on the service's host, those of a session would reach the viewer."""
    if settings.trace_viewer_url is None:
        return
    if settings.public_url is None:
        reading.problems.append("TRACE_VIEWER_URL needs SERVICE_PUBLIC_URL; set both")
    elif urlsplit(settings.public_url).hostname == urlsplit(settings.trace_viewer_url).hostname:
        reading.problems.append(
            f"TRACE_VIEWER_URL is {settings.trace_viewer_url}, which has the host of"
            " SERVICE_PUBLIC_URL; use another host name"
        )


def _with_sender(reading: _Reading, settings: Settings) -> Settings:
    """Mails need a sender; the user of the mail server is one where it is an address."""
    server = settings.smtp_server
    if server is None or settings.mail_sender is not None:
        return settings
    user = server.username or ""
    if find_address_problem(user) is None:
        return replace(settings, mail_sender=Sender(user))
    reading.problems.append("SMTP_FROM is missing; set it to the address that mails come from")
    return settings


def _require_client(reading: _Reading, settings: Settings) -> None:
    if settings.oidc_issuer and not settings.oidc_client_id:
        reading.problems.append("OIDC_CLIENT_ID is missing; set it to the id that the issuer gave")


def _check_artifacts(reading: _Reading, settings: Settings) -> None:
    if (settings.artifact_key_id is None) != (settings.artifact_secret_key is None):
        reading.problems.append(
            "of ARTIFACT_STORE_KEY_ID and ARTIFACT_STORE_SECRET_KEY one is missing; set both"
        )


def _issuer(text: str) -> str:
    if not text.startswith(("http://", "https://")) or "?" in text or "#" in text:
        raise ValueError(f"is {text}; use an address as in https://login.example.com")
    return text


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= 65535):
        raise ValueError(f"is {text}; use 0 to 65535")
    return int(text)


def _port_or_off(text: str) -> int | None:
    return None if text.lower() == "off" else _port(text)


def _origin(text: str) -> str:
    parts = urlsplit(_url(text))
    if not parts.hostname or parts.path or parts.query or parts.fragment:
        raise ValueError(f"is {text}; use a scheme and a host, as in https://traces.example.com")
    return f"{parts.scheme}://{parts.netloc}"


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise ValueError(f"is {text}; use a whole number, 0 for no limit")
    return int(text)


def _days(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5):
        raise ValueError(f"is {text}; use a whole number of days, 0 for ever")
    return int(text)


def _link_minutes(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 10_080):
        raise ValueError(f"is {text}; use whole minutes up to 10080, 0 for no links")
    return int(text)


def _networks(text: str) -> tuple[str, ...]:
    networks = tuple(part.strip() for part in text.split(","))
    for network in networks:
        try:
            ip_network(network)
        except ValueError:
            raise ValueError(f"has {network}; use addresses as in 10.0.0.0/8,192.0.2.7") from None
    return networks


def _pepper(text: str) -> str:
    if len(text) < _LEAST_KEY_LETTERS:
        raise ValueError(f"has {len(text)} characters; use at least {_LEAST_KEY_LETTERS}")
    return text


def parse_database(text: str) -> Path | PostgresUrl:
    """Where a database is, from its address.

    Raises:
        ValueError: with the rest of a sentence that has no password.
    """
    if text.startswith(_POSTGRESQL):
        try:
            _ = urlsplit(text).port
        except ValueError:
            port = urlsplit(text).netloc.rpartition(":")[2]
            raise ValueError(f"has the port {port}; use 1 to 65535") from None
        return PostgresUrl(text)
    path = text.removeprefix(_SQLITE)
    if path == text or not path or path == ":memory:":
        scheme = text.partition(":")[0]  # what follows may hold a password
        raise ValueError(
            f"begins with {scheme}; use sqlite:/// and the path of a file, or postgresql://"
        )
    return Path(path)


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError(f"is {text}; use an address that begins with http:// or https://")
    return text.rstrip("/")


def _secret_url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("does not begin with http:// or https://")
    return text


def _clickhouse(text: str) -> str:
    """The address is not quoted: it may hold a password."""
    wanted = "use an address as in https://user:password@clickhouse.example:8443/picket"
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise ValueError(f"is no address; {wanted}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"does not begin with http:// or https:// and a host; {wanted}")
    return text


def _level(text: str) -> LogLevel:
    return _one_of(LogLevel, text.upper(), text)


def _format(text: str) -> LogFormat:
    return _one_of(LogFormat, text.lower(), text)


def _access(text: str) -> MetricsAccess:
    return _one_of(MetricsAccess, text.lower(), text)


def _badges(text: str) -> BadgeAccess:
    return _one_of(BadgeAccess, text.lower(), text)


ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


def _one_of(choices: type[ChoiceT], wanted: str, text: str) -> ChoiceT:
    if wanted not in {choice.value for choice in choices}:
        names = [choice.value for choice in choices]
        raise ValueError(f"is {text}; use {', '.join(names[:-1])} or {names[-1]}")
    return choices(wanted)


def _key(*prefixes: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not text.startswith(prefixes):
            raise ValueError(f"does not begin with {' or '.join(prefixes)}")
        if len(text) < _LEAST_KEY_LETTERS:
            raise ValueError(f"has {len(text)} characters; use at least {_LEAST_KEY_LETTERS}")
        return text

    return read
