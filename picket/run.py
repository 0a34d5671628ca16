"""`picket run`: runs the check of a file once, and shows its result."""

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from rich.text import Text

from agent.outbox.redact import (
    drop_artifact,
    note_left_out,
    withhold_details,
    withhold_unsearchable,
)
from agent.settings import BadSettingsError, Settings, read_settings
from contract.agent_api import ARTIFACT_NAME
from contract.checks import ApiSpec, CheckSpec, Lane, PlaywrightSpec, check_type, deadline_ms, lane
from contract.job import Job
from contract.result import Artifact, MachineError, Outcome, Result, Status
from picket.check_file.load import CheckFile, load
from picket.errors import CommandError, ExitCode
from picket.report import report, trace_commands
from picket.terminal import Terminal
from redaction.clean import (
    Clean,
    CleanFile,
    FileVerdict,
    LeakError,
    UnscannableError,
    Withheld,
    pass_file,
)
from redaction.files import clean_in_child
from redaction.result import Scrubber
from runners.execute import execute
from runners.net.dns.resolve import DnsServerResolver, SystemResolver
from runners.net.tls.ca_roots import NoRootsError
from runners.registry import RUNNABLE, runner_for
from runners.runner import RunContext
from runners.scripting.environment import build_local_environment
from runners.scripting.harness import Harness, find_unavailable, open_harness
from runners.scripting.node.runtimes import find_runtimes
from runners.scripting.suites import bundle_archive
from runners.scripting.suites.bundle_cache import MAX_BUNDLE_BYTES, BundleError
from runners.scripting.suites.resources import SuiteOptions
from runners.tools import Tools, open_tools
from sandbox.spawn import can_have_own_users
from sandbox.users import find_impassable_parent
from sandbox.workspace import RunFile, Workspace, temporary_folder

_HERE: Final = "here"
"""Stands for ids and places that a run without a service does not have."""
_DEADLINE_SLACK_S: Final = 1.0
"""The runner ends by itself at the time limit; this is for the one that does not."""
_GOOD: Final = frozenset({Status.PASSED, Status.DEGRADED})


class NoPings:
    """The ping book of a process that takes no pings."""

    def silent_for_s(self, token: str) -> float | None:  # noqa: ARG002 - the protocol has it
        """Nobody pinged here."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a person may choose for a run."""

    as_json: bool = False
    timeout_s: float | None = None
    """The longest that the run may take. None: as long as its type may."""
    artifacts: Path | None = None
    """Where to put the files that it leaves. None: they go."""


def run_file(source: str, options: RunOptions) -> int:
    """Run the file's check once and print its result; gives the exit code.

    Raises:
        CommandError: the file or a setting is wrong, or an internal error prevented the run.
    """
    check = load(source)
    clean = run_check(check, options)
    _print(clean, check.name, options)
    return ExitCode.OK if clean.result.outcome.status in _GOOD else ExitCode.FAILED


def run_check(check: CheckFile, options: RunOptions) -> Clean:
    """Run the check once; its result, without secrets.

    Raises:
        CommandError: a setting is wrong, or an internal error prevented the run.
    """
    settings = settings_for_runs(os.environ)
    _require_runner(check)
    if options.artifacts is not None:
        prepare(options.artifacts)
    with ExitStack() as stack:
        suites: SuiteOptions | None = None
        spec = check.spec
        if check.suite is not None and isinstance(spec, PlaywrightSpec):
            suites, sha256 = stack.enter_context(pack_suite(check.suite, os.environ))
            spec = msgspec.structs.replace(spec, bundle_sha256=sha256)
        job = _job(check, spec, timeout_s=options.timeout_s)
        return _run_and_clean(job, settings, suites, options.artifacts)


def _run_and_clean(
    job: Job, settings: Settings, suites: SuiteOptions | None, artifacts: Path | None
) -> Clean:
    """What came of the run, its files put where they are wanted."""
    workspace = Workspace()
    hidden = {**settings.service_secrets, **settings.proxy_passwords()}
    scrubber = Scrubber(hidden.values(), sensitive_headers=settings.sensitive_headers)
    try:
        result = asyncio.run(_look(job, settings, workspace, suites))
        if artifacts is not None:
            outcome = keep(
                result.outcome, artifacts, job=job, workspace=workspace, scrubber=scrubber
            )
            result = msgspec.structs.replace(result, outcome=outcome)
    except NoRootsError as problem:
        raise CommandError(str(problem)) from problem
    finally:
        workspace.remove()
    return _clean(result, job, workspace, scrubber)


def _clean(result: Result, job: Job, workspace: Workspace, scrubber: Scrubber) -> Clean:
    if workspace.unsearchable_because is not None:
        result = withhold_details(result, workspace.unsearchable_because)
    clean = partial(
        scrubber.clean, job=job, found=workspace.secrets, typed_among=workspace.find_typed
    )
    try:
        return clean(result)
    except (LeakError, UnscannableError) as problem:
        return clean(withhold_details(result, str(problem)))


def settings_for_runs(environ: Mapping[str, str]) -> Settings:
    """The agent's settings as far as they concern checks; a run needs no service and no key.

    Raises:
        CommandError: one of them is wrong.
    """
    needed = {"API_KEY": "pl_none", "SERVICE_URL": "http://127.0.0.1"}
    others = {name: environ[name] for name in environ if name.removesuffix("_FILE") not in needed}
    try:
        return read_settings(others | needed)
    except BadSettingsError as bad:
        raise CommandError("\n".join(bad.problems)) from bad


def _job(check: CheckFile, spec: CheckSpec, *, timeout_s: float | None) -> Job:
    limit_s = timeout_s or deadline_ms(spec) / 1000
    return Job(
        job_id=_HERE,
        fence=1,
        lease_s=limit_s,
        run_id=_HERE,
        check_id=_HERE,
        check_name=check.name,
        location=_HERE,
        scheduled_for=datetime.now(UTC),
        deadline_s=limit_s,
        spec=spec,
        variables=check.variables,
        client_certificates=check.client_certificates,
        proxy_url=check.proxy_url,
    )


def _require_runner(check: CheckFile) -> None:
    kind = check_type(check.spec)
    if kind not in RUNNABLE:
        raise CommandError(
            f"this version has no runner for {kind} checks; "
            f"it has runners for {', '.join(sorted(RUNNABLE))}",
            ExitCode.OWN_FAULT,
        )


@asynccontextmanager
async def _scripts_for(
    job: Job, settings: Settings, suites: SuiteOptions | None
) -> AsyncIterator[Harness | None]:
    """What the check's scripts run with. None: it has none.

    Raises:
        CommandError: something that they need is not there.
    """
    if lane(job.spec) is Lane.UPTIME:
        yield None
        return
    async with AsyncExitStack() as stack:
        found = find_runtimes(settings.runtimes_dir, settings.chromium_path)
        opening = open_harness(found, extra_roots=settings.extra_ca_certs, suites=suites)
        try:
            harness = await stack.enter_async_context(opening)
        except OSError as problem:
            raise CommandError(str(problem), ExitCode.OWN_FAULT) from problem
        with_scripts = isinstance(job.spec, ApiSpec)
        missing = find_unavailable(check_type(job.spec), harness, with_scripts=with_scripts)
        if missing is not None:
            raise CommandError(missing.sentence, ExitCode.OWN_FAULT)
        yield harness


async def _look(
    job: Job, settings: Settings, workspace: Workspace, suites: SuiteOptions | None
) -> Result:
    patient = msgspec.structs.replace(job, deadline_s=job.deadline_s + _DEADLINE_SLACK_S)
    async with _network_for(job, settings, suites) as network:
        ctx = _context(job, network, workspace, secrets=settings.service_secrets)
        started_at, began_s = datetime.now(UTC), time.monotonic()
        try:
            outcome = await execute(patient, runner_for(job.spec), ctx)
        except MachineError as problem:
            raise CommandError(str(problem), ExitCode.OWN_FAULT) from problem
    return _result(job, outcome, started_at=started_at, took_s=time.monotonic() - began_s)


@asynccontextmanager
async def _network_for(
    job: Job, settings: Settings, suites: SuiteOptions | None
) -> AsyncIterator[Tools]:
    """What runners look through; scripts run with what they need."""
    resolver = SystemResolver() if settings.use_os_dns_resolver else DnsServerResolver()
    roots = settings.extra_ca_certs.read_text() if settings.extra_ca_certs else None
    async with (
        _scripts_for(job, settings, suites) as harness,
        open_tools(
            settings.egress, resolver=resolver, extra_ca_pem=roots, harness=harness
        ) as network,
    ):
        yield network


def _context(
    job: Job, network: Tools, workspace: Workspace, *, secrets: Mapping[str, str]
) -> RunContext:
    return RunContext(
        network=network,
        pings=NoPings(),
        timeout_s=job.deadline_s,
        variables=job.variables,
        environment=build_local_environment(job),
        location_secrets=secrets,
        client_certificates=job.client_certificates,
        proxy_url=job.proxy_url,
        workspace=workspace,
        keeps_files=True,
    )


def _result(job: Job, outcome: Outcome, *, started_at: datetime, took_s: float) -> Result:
    return Result(
        job_id=job.job_id,
        fence=job.fence,
        run_id=job.run_id,
        check_id=job.check_id,
        check_type=check_type(job.spec),
        agent_id=_HERE,
        started_at=started_at,
        started_after_s=0,
        took_s=took_s,
        outcome=outcome,
    )


def _print(clean: Clean, name: str, options: RunOptions) -> None:
    console = Terminal()
    if options.as_json:
        body = msgspec.json.format(clean.body, indent=2)
        console.file.write(body.decode() + "\n")
        return
    console.print(report(clean.result, name=name))
    if options.artifacts is not None:
        _print_traces(console, trace_commands(clean.result.outcome, options.artifacts))


def _print_traces(console: Terminal, commands: Sequence[str]) -> None:
    """Whole and at the beginning of a line, however narrow the terminal is: they are copied."""
    if commands:
        console.print(Text("\n  Traces", style="bold"))
    for command in commands:
        console.print(Text(command), soft_wrap=True)


_INVALID_NAME: Final = Withheld(because="its name is not valid")


def prepare(folder: Path) -> None:
    """Make the folder, before anybody waits for a run.

    Raises:
        CommandError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise CommandError(f"--artifacts is {folder}; {problem.strerror}") from problem


def keep(
    outcome: Outcome, folder: Path, *, job: Job, workspace: Workspace, scrubber: Scrubber
) -> Outcome:
    """Put the files into the folder; the outcome names those that are there.

    Raises:
        CommandError: one cannot be written.
    """
    kept = outcome
    files = [workspace.run_file(one) for one in outcome.artifacts if _fits(one)]
    verdicts = withhold_unsearchable(files, workspace) or _search_files(
        files, job, workspace, scrubber
    )
    known = {file.artifact.name: (file, said) for file, said in zip(files, verdicts, strict=True)}
    for artifact in outcome.artifacts:
        file, verdict = known.get(artifact.name, (None, _INVALID_NAME))
        if isinstance(verdict, Withheld):
            said = scrubber.explain(verdict, job=job, found=workspace.secrets)
            kept = drop_artifact(kept, artifact, because=said.because)
        elif file is not None:
            _put(pass_file(file, verdict), folder)
            kept = note_left_out(kept, artifact, verdict.left_out)
    return kept


def _search_files(
    files: Sequence[RunFile], job: Job, workspace: Workspace, scrubber: Scrubber
) -> tuple[FileVerdict, ...]:
    secrets = scrubber.all_secrets(job, workspace.secrets)
    cleaning = clean_in_child(
        files,
        secrets,
        typed=workspace.find_typed(secrets),
        in_sight=workspace.script_secrets,
        header_names=scrubber.header_names,
    )
    return asyncio.run(cleaning)


def _fits(artifact: Artifact) -> bool:
    return ARTIFACT_NAME.fullmatch(artifact.name) is not None


def _put(file: CleanFile, folder: Path) -> None:
    place = folder / file.artifact.name
    try:
        shutil.copyfile(file.path, place)
    except OSError as problem:
        raise CommandError(f"{place}: {problem.strerror}") from problem


_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")


class SuiteTooLargeError(Exception):
    """The folder is more than a bundle may hold; the text says how much."""


@dataclass(frozen=True, slots=True)
class PackedSuite:
    """A bundle of this machine; gives itself to runners."""

    path: Path
    sha256: str

    async def fetch(self, sha256: str) -> Path:
        """The tar.gz.

        Raises:
            BundleError: another one is wanted.
        """
        if sha256 != self.sha256:
            raise BundleError(f"There is no bundle {sha256} here.")
        return self.path


@contextmanager
def pack_suite(folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[SuiteOptions, str]]:
    """What a run of the folder's suite needs, for as long as the block lasts; and its hash.

    Raises:
        CommandError: the folder cannot be packed.
    """
    with temporary_folder() as place:
        place.chmod(0o755)  # packages are read by the users that suites run as
        suite = pack_or_explain(folder, place / "suite.tar.gz")
        options = SuiteOptions(
            bundles=suite,
            packages=packages_folder(environ) or place / "packages",
            environment=read_proxies(environ),
            is_short_lived=True,
        )
        yield options, suite.sha256


def pack_or_explain(folder: Path, target: Path) -> PackedSuite:
    """Write the folder's files into a tar.gz.

    Raises:
        CommandError: the folder cannot be packed.
    """
    try:
        return pack(folder, target)
    except SuiteTooLargeError as problem:
        raise CommandError(f"the suite {folder} has {problem}") from problem
    except OSError as problem:
        name = problem.filename or folder
        raise CommandError(f"{name} cannot be packed: {problem.strerror}") from problem


_SYSTEM_CACHE: Final = "/var/cache"


def packages_folder(environ: Mapping[str, str]) -> Path | None:
    """Make the folder in which packages are kept for the next run. None: there can be none.

    The users that suites run as have to enter it, so root's home usually cannot have it.
    """
    own = environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - a user without a home is no error
    for cache in (own, *([_SYSTEM_CACHE] if can_have_own_users() else [])):
        folder = Path(cache) / "picket/packages"
        try:
            if not _can_be_entered(_find_existing(folder)):
                continue  # nothing is made where nothing can be kept
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError:
            continue
        if _can_be_entered(folder) and os.access(folder, os.W_OK):
            return folder
    return None


def _find_existing(folder: Path) -> Path:
    """Find the folder, or the nearest one above that is there."""
    return next(one for one in (folder, *folder.absolute().parents) if one.exists())


def _can_be_entered(folder: Path) -> bool:
    """Whether the users that suites run as, if there are any, can enter it."""
    return not can_have_own_users() or find_impassable_parent(folder / "one") is None


def read_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Those of the environment, in capitals or not, as package managers read them. Pure."""
    found = {name: environ.get(name) or environ.get(name.lower()) for name in _PROXIES}
    return {name: value for name, value in found.items() if value}


def pack(folder: Path, target: Path) -> PackedSuite:
    """Write the folder's files into a tar.gz, without what a run makes anew.

    Raises:
        SuiteTooLargeError: it is more than a bundle may hold.
        OSError: a file cannot be read, or the bundle not be written.
    """
    bundle_archive.pack(folder, target)
    size = target.stat().st_size
    if size > MAX_BUNDLE_BYTES:
        raise SuiteTooLargeError(f"{size} bytes when packed; use at most {MAX_BUNDLE_BYTES}")
    with target.open("rb") as file:
        return PackedSuite(target, hashlib.file_digest(file, hashlib.sha256).hexdigest())
