"""`picket doctor`: looks at everything that an agent on this host depends on."""

import asyncio
import os
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import structlog
from rich.text import Text

from agent.self_test import API_WITH_SCRIPTS, Trial, TypeChecked, boot_check
from agent.settings import BadSettingsError, Settings, read_settings
from agent.settings_table import SETTINGS
from agent.wiring import Scripts, open_scripts
from contract.requests import IpFamily
from picket.doctor.connection import (
    KEY,
    check_name_servers,
    check_proxy,
    check_service,
    check_service_name,
    find_proxy,
)
from picket.doctor.findings import Finding, Health, fail, ok, skip, warn
from picket.doctor.host import (
    check_data_folder,
    check_egress_rules,
    check_file_limit,
    check_health_port,
    check_memory,
    check_ping_port,
    check_ping_privilege,
    check_process_limit,
    check_temporary_folder,
    find_unhidden_secrets,
)
from picket.errors import ExitCode
from picket.terminal import Terminal, duration
from runners.net.tls.ca_roots import NoRootsError, system_bundle
from runners.registry import RUNNABLE, runner_for
from runners.scripting.harness import CHOICES

_NEEDED: Final = {"API_KEY": "pl_none", "SERVICE_URL": "http://127.0.0.1"}
"""Stand in for what is not set, so that the rest can still be looked at."""
_SETTINGS: Final = "settings"
_EXIT_CODES: Final = {_SETTINGS: ExitCode.BAD_INPUT, KEY: ExitCode.KEY_REFUSED}
_STYLES: Final = {
    Health.OK: "green",
    Health.WARN: "yellow",
    Health.FAIL: "red",
    Health.SKIP: "dim",
}


def run_doctor(*, as_json: bool) -> int:
    """Print what was found, one line each; gives the exit code."""
    with _silent_log():
        findings = asyncio.run(examine(os.environ))
    _print(findings, as_json=as_json)
    return _exit_code(finding.what for finding in findings if finding.health is Health.FAIL)


def _exit_code(failed: Iterable[str]) -> int:
    """By the worst failure: what the agent would end with itself counts more than the rest."""
    codes = {_EXIT_CODES.get(what, ExitCode.FAILED) for what in failed}
    order = (ExitCode.BAD_INPUT, ExitCode.KEY_REFUSED, ExitCode.FAILED)
    return next((code for code in order if code in codes), ExitCode.OK)


@contextmanager
def _silent_log() -> Iterator[None]:
    """The findings say what the boot check would log."""
    before = structlog.get_config()
    structlog.configure(processors=[_drop])
    try:
        yield
    finally:
        structlog.configure(**before)


def _drop(_logger: object, _method: str, _event: object) -> str:
    raise structlog.DropEvent


@dataclass(frozen=True, slots=True)
class _Look:
    """One check of the host by the agent's settings."""

    what: str
    needs: frozenset[str]
    """The settings that it judges; what stands in for a wrong one would say nothing."""
    check: Callable[[Settings], Finding]


_OF_HEALTH: Final = frozenset({"AGENT_HEALTH_PORT", "AGENT_HEALTH_HOST"})
_LOOKS: Final = (
    _Look("egress", frozenset({"EGRESS_ALLOW", "EGRESS_DENY"}), check_egress_rules),
    _Look("data directory", frozenset({"AGENT_DATA_DIR", "SPOOL_MAX_BYTES"}), check_data_folder),
    _Look("memory", frozenset({"JOB_CONCURRENCY"}), check_memory),
    _Look("processes", frozenset({"JOB_CONCURRENCY"}), check_process_limit),
    _Look("open files", frozenset({"UPTIME_CONCURRENCY"}), check_file_limit),
    _Look("AGENT_HEALTH_PORT", _OF_HEALTH, check_health_port),
    _Look("HEARTBEAT_PORT", _OF_HEALTH | {"HEARTBEAT_PORT", "HEARTBEAT_HOST"}, check_ping_port),
)
_OF_PROXIES: Final = frozenset({"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"})
_OF_NAMES: Final = frozenset({"USE_OS_DNS_RESOLVER"})
_OF_SCRIPTS: Final = frozenset({"PICKET_RUNTIMES", "CHROMIUM_PATH", "EXTRA_CA_CERTS"})


async def examine(environ: Mapping[str, str]) -> list[Finding]:
    """Look at everything, in the order in which it depends on each other."""
    settings, findings, wrong = _settings(environ)
    findings += find_unknown_settings(settings)
    findings += await check_name_servers()
    findings += await _look_at_service(settings, wrong)
    findings += [await check_ping_privilege(family) for family in IpFamily]
    findings += find_unhidden_secrets(settings)
    findings.append(check_temporary_folder(environ.get("TMPDIR") or None))
    for look in _LOOKS:
        unknown = look.needs & wrong
        findings.append(skip(look.what, unknown) if unknown else look.check(settings))
    return findings + await _check_types(settings, wrong)


async def _look_at_service(settings: Settings, wrong: AbstractSet[str]) -> list[Finding]:
    """The way to the service, as far as the settings name it."""
    findings: list[Finding] = []
    proxy = None if _OF_PROXIES & wrong else find_proxy(settings)
    if unknown := wrong & {"SERVICE_URL", *_OF_NAMES}:
        findings.append(skip("service's name", unknown))
    else:
        findings.append(await check_service_name(settings))
    if unknown := wrong & {"SERVICE_URL", *_OF_PROXIES}:
        findings.append(skip("proxy", unknown))
    else:
        findings.append(await check_proxy(proxy))
    if unknown := wrong & {*_NEEDED, *_OF_PROXIES, "EXTRA_CA_CERTS"}:
        return [*findings, skip(KEY, unknown), skip("clock", unknown)]
    return findings + await check_service(settings, proxy)


def _report_missing_roots(problem: NoRootsError) -> Finding:
    seen, _, fix = str(problem).rstrip(".").partition("; ")
    return fail("roots", seen, fix=fix or "install ca-certificates, or fix SSL_CERT_FILE")


def _settings(environ: Mapping[str, str]) -> tuple[Settings, list[Finding], set[str]]:
    """The settings, those that are wrong replaced by their defaults and named."""
    try:
        settings = read_settings(environ)
    except BadSettingsError as bad:
        wrong = {problem.split()[0] for problem in bad.problems}
        findings = [_wrong_setting(each) for each in bad.problems]
        names = {name.removesuffix("_FILE") for name in wrong}
        rest = {name: environ[name] for name in environ if name.removesuffix("_FILE") not in names}
        stand_ins = {name: value for name, value in _NEEDED.items() if f"{name}_FILE" not in rest}
        return read_settings(stand_ins | rest), findings, names
    count = sum(1 for setting in SETTINGS if setting.name in environ)
    return settings, [ok(_SETTINGS, f"{count} set, the rest are defaults")], set()


def find_unknown_settings(settings: Settings) -> list[Finding]:
    """Variables that were probably meant to be settings."""
    told = (unknown.sentence.partition("; ") for unknown in settings.unknown)
    return [warn(_SETTINGS, seen, fix=fix) for seen, _, fix in told]


def _wrong_setting(problem: str) -> Finding:
    """A problem reads `NAME is VALUE; use …`."""
    seen, found, fix = problem.partition("; ")
    if not found:
        seen, _, fix = problem.partition(": ")
    return fail(_SETTINGS, seen, fix=fix or "see picket agent --help")


async def _check_types(settings: Settings, wrong: AbstractSet[str]) -> list[Finding]:
    """The agent's own boot check: one real check of every type against loopback."""
    try:
        bundle = system_bundle()
    except NoRootsError as problem:
        return [_report_missing_roots(problem)]
    if not _holds_certificates(bundle):
        fix = "install ca-certificates, or fix SSL_CERT_FILE"
        return [fail("roots", f"{bundle} has no readable certificates", fix=fix)]
    trials = (*(Trial(check_type=kind) for kind in RUNNABLE), API_WITH_SCRIPTS)
    unknown = _OF_SCRIPTS & wrong
    skipped = tuple(trial for trial in trials if unknown and trial.needs_harness)
    trials = tuple(trial for trial in trials if trial not in skipped)
    try:
        async with open_scripts(settings) as scripts:
            found = await _run_self_test(scripts, trials)
    except OSError as problem:  # no room for its files, no descriptor or port for its targets
        return [fail("boot check", f"cannot run: {problem}", fix="free the named resource")]
    return found + [skip(trial.what, unknown) for trial in skipped]


async def _run_self_test(scripts: Scripts, trials: Iterable[Trial]) -> list[Finding]:
    harness, problem = scripts.harness, scripts.problem
    found = await boot_check(trials, runner_for=runner_for, harness=harness, problem=problem)
    return [_to_finding(one) for one in found]


def _to_finding(one: TypeChecked) -> Finding:
    """What was not installed is somebody's choice, and a busy machine has no fault."""
    lost = one.unavailable
    if lost is None:
        return ok(one.trial.what, f"work ({duration(one.took_ms)})")
    report = warn if one.is_busy or lost.remedy in CHOICES else fail
    return report(lost.what, f"cannot run here: {lost.cause}", fix=lost.remedy)


def _holds_certificates(bundle: Path) -> bool:
    try:
        ssl.create_default_context(cafile=bundle)
    except OSError:
        return False
    return True


def _print(findings: list[Finding], *, as_json: bool) -> None:
    console = Terminal()
    if as_json:
        shown = [
            {"health": each.health, "what": each.what, "seen": each.seen, "fix": each.fix}
            for each in findings
        ]
        console.file.write(
            msgspec.json.format(msgspec.json.encode(shown), indent=2).decode() + "\n"
        )
        return
    for each in findings:
        line = Text(each.line())
        line.stylize(_STYLES[each.health], 0, len(each.health))
        console.print(line, soft_wrap=True)
