"""The agent's settings, read from its environment."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from agent import settings_table as values
from agent.settings_table import REQUIRED, SETTINGS, Setting
from agent.telemetry.logs import LogFormat, LogLevel, default_format
from contract import suggestions
from contract.suggestions import UnknownName
from runners.net.egress.rules import EgressRuleError, EgressRules
from sandbox.spawn import MAX_VARIABLE_BYTES

SECRET_PREFIX: Final = "SERVICE_SECRET_"  # noqa: S105 - a name, no password
FILE_SUFFIX: Final = "_FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The agent's configuration. The table `SETTINGS` explains each field."""

    api_key: str = field(repr=False)
    service_url: str
    job_concurrency: int
    uptime_concurrency: int = 256
    body_memory_mb: int = 256
    health_port: int = 8081
    health_host: str = ""
    """Empty: every address of the machine."""
    heartbeat_port: int = 8082
    """0: off."""
    heartbeat_host: str = ""
    """Empty: every address of the machine."""
    external_observability: bool = True
    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.JSON
    https_proxy: str | None = field(default=None, repr=False)
    """None: direct, or by `http_proxy`."""
    http_proxy: str | None = field(default=None, repr=False)
    """None: direct."""
    no_proxy: tuple[str, ...] = ()
    use_os_dns_resolver: bool = False
    extra_ca_certs: Path | None = None
    """None: the system's roots alone."""
    egress: EgressRules = field(default_factory=EgressRules)
    runtimes_dir: Path | None = None
    """None: where they were installed."""
    chromium_path: Path | None = None
    """None: the system's."""
    data_dir: Path = Path("/var/lib/picket")
    sensitive_headers: tuple[str, ...] = ()
    """Beside those that are sensitive everywhere."""
    spool_max_bytes: int = 1024**3
    spool_max_age_s: float = 86400
    shutdown_grace_s: float = 300
    ready_grace_s: float = 60
    service_secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables `SERVICE_SECRET_*`, by their full name; scripts read them."""
    unknown: tuple[UnknownName, ...] = ()
    """Variables that are none of the settings, but look as if they were meant to be."""

    def secret_values(self) -> tuple[str, ...]:
        """Every value that must appear in no log and no error."""
        proxies = (self.https_proxy, self.http_proxy)
        with_credentials = (proxy for proxy in proxies if proxy is not None and "@" in proxy)
        passwords = self.proxy_passwords().values()
        return (self.api_key, *self.service_secrets.values(), *with_credentials, *passwords)

    def proxy_passwords(self) -> dict[str, str]:
        """By the setting's name; what installs packages gets to see them."""
        proxies = {"HTTPS_PROXY": self.https_proxy, "HTTP_PROXY": self.http_proxy}
        passwords = {name: urlsplit(url or "").password for name, url in proxies.items()}
        return {name: unquote(found) for name, found in passwords.items() if found}


class BadSettingsError(Exception):
    """Settings that cannot be used; one line per problem, none of which holds a secret."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from the given environment, or from the process's own.

    Raises:
        BadSettingsError: with all problems at once.
    """
    environ = os.environ if environ is None else environ
    reading = _Reading(environ)
    found = {setting.field: reading.value(setting) for setting in SETTINGS}
    given = {name: value for name, value in found.items() if value is not None}
    given["egress"] = reading.egress(given.pop("egress_allow", ()), given.pop("egress_deny", ()))
    given["service_secrets"] = reading.service_secrets()
    unknown = given["unknown"] = unknown_names(environ)
    if reading.problems:
        raise BadSettingsError((*reading.problems, *_list_meant(unknown, reading.problems)))
    given.setdefault("log_format", default_format(sys.stdout))
    given.setdefault("job_concurrency", _main_slots())
    return Settings(**given)  # type: ignore[arg-type]  # each field was read by its own function


def _list_meant(unknown: Iterable[UnknownName], problems: Iterable[str]) -> tuple[str, ...]:
    """The sentences of variables that may have been meant for a setting with a problem."""
    wrong = {problem.partition(" ")[0] for problem in problems}
    meant = (one for one in unknown if (one.nearest or "").removesuffix(FILE_SUFFIX) in wrong)
    return tuple(one.sentence for one in meant)


def _main_slots() -> int:
    cores = len(os.sched_getaffinity(0))
    return values.default_main_slots(cores=cores, free_bytes=values.free_memory_bytes())


class _Reading:
    """One pass over an environment, collecting problems."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.problems: list[str] = []

    def value(self, setting: Setting) -> object:
        """The setting's value. None: it is not set, or it is a problem."""
        before = len(self.problems)
        text = self._text(setting.name, any_case=setting.any_case, secret=setting.secret)
        if text is None:
            if setting.default == REQUIRED and len(self.problems) == before:
                self.problems.append(f"{setting.name} is not set; use {setting.allowed}")
            return None
        try:
            return setting.read(text)
        except values.OtherKindError as other:
            self.problems.append(f"{setting.name} is {other}; use {setting.allowed}")
            return None
        except ValueError as problem:
            shown = "not usable" if setting.secret or "@" in text else text
            allowed = problem if isinstance(problem, values.BadPartError) else setting.allowed
            self.problems.append(f"{setting.name} is {shown}; use {allowed}")
            return None

    def egress(self, allow: object, deny: object) -> EgressRules:
        """Both egress settings together."""
        try:
            return EgressRules.parse(_texts(allow), _texts(deny))
        except EgressRuleError as bad:
            self.problems += bad.problems
            return EgressRules()

    def service_secrets(self) -> dict[str, str]:
        """All variables `SERVICE_SECRET_*`, those read from files included."""
        names = {
            name.removesuffix(FILE_SUFFIX)
            for name in self._environ
            if name.startswith(SECRET_PREFIX) and name != f"{SECRET_PREFIX}{FILE_SUFFIX}"
        }
        texts = {name: self._text(name, any_case=False, secret=True) for name in sorted(names)}
        found = {name: text for name, text in texts.items() if text is not None}
        self._hold_fit_for_scripts(found)
        return found

    def _hold_fit_for_scripts(self, secrets: Mapping[str, str]) -> None:
        """A program can be given all of them as variables."""
        unfit = [name for name, text in secrets.items() if not _is_text(name + text)]
        for name in unfit:
            written = name if name in self._environ else name + FILE_SUFFIX
            self.problems.append(f"{written} is not valid; use UTF-8 text without NUL")
        if unfit:
            return
        size_bytes = sum(len(f"{name}={text}".encode()) for name, text in secrets.items())
        if size_bytes > MAX_VARIABLE_BYTES:
            found = f"{SECRET_PREFIX}* have {size_bytes} bytes together, names included"
            self.problems.append(f"{found}; use at most {MAX_VARIABLE_BYTES}")

    def _text(self, name: str, *, any_case: bool, secret: bool) -> str | None:
        text = self._environ.get(name) or (self._environ.get(name.lower()) if any_case else None)
        path = self._environ.get(name + FILE_SUFFIX) if secret else None
        if text and path:
            self.problems.append(f"{name} and {name}{FILE_SUFFIX} are both set; use one of them")
            return None
        if path:
            return self._file(name + FILE_SUFFIX, path)
        return (text if secret else text.strip()) or None if text else None

    def _file(self, name: str, path: str) -> str | None:
        try:
            text = Path(path).read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError):
            self.problems.append(f"{name} is {path}; use a readable text file")
            return None
        if not text:
            self.problems.append(f"{name} is {path}, which is empty; use a file that contains it")
        return text or None


def _is_text(text: str) -> bool:
    with suppress(UnicodeEncodeError):
        return "\0" not in text and bool(text.encode())
    return False


def _texts(found: object) -> tuple[str, ...]:
    return found if isinstance(found, tuple) else ()


_OWN_PREFIXES: Final = ("AGENT_", "EGRESS_", "SPOOL_")
_MISSPELLED: Final = tuple(
    setting.name for setting in SETTINGS if setting.default != REQUIRED and not setting.any_case
)
"""What is required is missed at once, and programs have all kinds of keys and proxies."""
_KNOWN: Final = {setting.name for setting in SETTINGS} | {
    f"{setting.name}_FILE" for setting in SETTINGS if setting.secret
}


def unknown_names(environ: Mapping[str, str]) -> tuple[UnknownName, ...]:
    """The variables that are set and were probably meant to be settings, in order."""
    found = suggestions.unknown_names(
        environ, known=_KNOWN, misspelt=_MISSPELLED, own=_OWN_PREFIXES
    )
    return (*found, *_misspelt_secret_files(environ))


def _misspelt_secret_files(environ: Mapping[str, str]) -> Iterator[UnknownName]:
    """The `SERVICE_SECRET_*` that were probably meant to name a file."""
    for name in sorted(environ):
        secret, _, ending = name.rpartition("_")
        is_secret = len(secret) > len(SECRET_PREFIX) and secret.startswith(SECRET_PREFIX)
        if is_secret and ending != FILE_SUFFIX[1:] and suggestions.is_almost_file(ending):
            yield UnknownName(name, f"{secret}{FILE_SUFFIX}")
