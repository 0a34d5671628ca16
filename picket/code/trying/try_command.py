"""`picket test`: runs all checks of files once, here or at a service."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, Final

from contract.checks import CheckType
from picket.api_client import ApiRefusedError, PublicApi
from picket.code.applying.stored import Stored
from picket.code.reading.check_body import WITHOUT_VARIABLES, CheckBody, check_body
from picket.code.reading.documents import Document, Kind, Project, read_project
from picket.code.reading.env_values import EnvValues
from picket.code.reading.linking import Linked, link
from picket.code.reading.other_bodies import other_body
from picket.code.suites import send_suites
from picket.code.trying.at_service import Job, Session, choose_location, try_at_service
from picket.code.trying.here import try_here
from picket.code.trying.junit_report import junit_report
from picket.code.trying.verdicts import Tried, Verdict
from picket.errors import CommandError, ExitCode
from picket.service_access import use_api
from picket.terminal import Terminal, duration, printable

_JOB: Final = re.compile(r"checkRunJobs\[(?P<order>\d+)\]")
_MARKS: Final = {Verdict.PASSED: "✔", Verdict.DEGRADED: "▲", Verdict.SKIPPED: "-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOptions:
    """What a person may choose."""

    paths: tuple[Path, ...]
    data_dir: Path
    environ: Mapping[str, str]
    location: str | None = None
    here: bool = False
    """Whether no service is asked, although one is set."""
    variables: tuple[str, ...] = ()
    """`KEY=VALUE`, which win over those of the files."""
    junit: Path | None = None
    patience_s: float = 1800


def try_files(options: TryOptions, terminal: Terminal) -> int:
    """Run the checks and print a line for each; gives the exit code.

    Raises:
        CommandError: a file or a setting is wrong, or the service refuses.
    """
    values = EnvValues(options.environ)
    try:
        tried = _try_files(options, values, terminal)
    except CommandError as problem:
        raise CommandError(values.hide(problem.message), problem.code) from problem
    if options.junit is not None:
        _write(options.junit, junit_report(tried))
    bad = [one for one in tried if one.verdict.is_bad]
    terminal.print(_summary(tried, bad), markup=False, highlight=False)
    return ExitCode.FAILED if bad else ExitCode.OK


def _try_files(options: TryOptions, values: EnvValues, terminal: Terminal) -> list[Tried]:
    extra = [_variable(one) for one in options.variables]
    project = values.fill(read_project(options.paths))
    checks = [one for one in project.documents if one.kind is Kind.CHECK]
    if not checks:
        raise CommandError(f"{options.paths[0]} has no checks")
    at_service = options.location is not None or options.environ.get("SERVICE_URL")
    if at_service and not options.here:
        return asyncio.run(_try_at_service(project, extra, values, options, terminal))
    return [_hide(one, values, terminal) for one in _try_here(project, checks, extra)]


def _variable(text: str) -> dict[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise CommandError(f"--env is {key or 'empty'}; use KEY=VALUE")
    return {"key": key, "value": value}


def _try_here(
    project: Project, checks: Sequence[Document], extra: Sequence[Mapping[str, str]]
) -> Iterator[Tried]:
    """Read all of them, and then run one after another."""
    groups = {
        name: one
        for one in project.documents
        if one.kind is Kind.GROUP
        for name in (one.name, one.logical_id)
    }
    wrong: list[str] = []
    ready: list[tuple[Document, CheckBody, Document | None, dict[str, Any] | None]] = []
    for document in checks:
        try:
            body = _with_variables(check_body(document), extra)
            group = _find_group(document, groups)
            ready.append((document, body, group, other_body(group) if group else None))
        except CommandError as problem:
            wrong.append(problem.message)
    if wrong:
        raise CommandError("\n".join(dict.fromkeys(wrong)))
    return (
        try_here(document, body, settings, suite=_suite(document, group))
        for document, body, group, settings in ready
    )


def _find_group(document: Document, groups: Mapping[str, Document]) -> Document | None:
    named = document.fields.get("group")
    if named is None or str(named) in groups:
        return groups.get(str(named))
    raise CommandError(f"{document.source}: $.group is {named}; no group has this id or name")


def _with_variables(body: CheckBody, extra: Sequence[Mapping[str, str]]) -> CheckBody:
    if not extra or body.kind in WITHOUT_VARIABLES:
        return body
    keys = {one["key"] for one in extra}
    own = [one for one in body.fields.get("environmentVariables") or () if one["key"] not in keys]
    return replace(body, fields={**body.fields, "environmentVariables": [*own, *extra]})


def _suite(document: Document, group: Document | None) -> str:
    if group is not None:
        return group.name
    folder = PurePosixPath(document.source.partition(":")[0]).parent.as_posix()
    return "checks" if folder == "." else folder


async def _try_at_service(
    project: Project,
    extra: Sequence[Mapping[str, str]],
    values: EnvValues,
    options: TryOptions,
    terminal: Terminal,
) -> list[Tried]:
    ended: list[Tried] = []
    async with use_api(options.environ, options.data_dir) as api:
        location, agents = await choose_location(api, options.location)
        if not agents:
            waits = f"No agent is connected at the location {location} yet; waiting for one."
            terminal.print(waits, markup=False, highlight=False)
        linked = link(project, await Stored(api).locations())
        await send_suites(api, linked)
        jobs, skipped = _jobs(project, linked, extra)
        session = Session(
            name=project.name,
            project=project.logical_id,
            location=location,
            shared_files=linked.shared_files,
            patience_s=options.patience_s,
        )
        if jobs:
            ended = await _run(api, session, jobs, values, terminal)
    for one in skipped:
        _hide(one, values, terminal)
    return [*(_hide(one, values) for one in ended), *skipped]


async def _run(
    api: PublicApi,
    session: Session,
    jobs: Sequence[Job],
    values: EnvValues,
    terminal: Terminal,
) -> list[Tried]:
    try:
        return await try_at_service(
            api, session, jobs, lambda one: (_hide(one, values, terminal), None)[1]
        )
    except ApiRefusedError as refused:
        if refused.status == HTTPStatus.UNAUTHORIZED:
            raise
        reason = _JOB.sub(lambda job: _name_job(jobs, job), refused.reason)
        raise CommandError(values.hide(reason), ExitCode.FAILED) from refused


def _name_job(jobs: Sequence[Job], found: re.Match[str]) -> str:
    """The file of a job, in the place of its number."""
    order = int(found["order"])
    return f"{jobs[order].tried.source}: $" if order < len(jobs) else found[0]


def _jobs(
    project: Project, linked: Linked, extra: Sequence[Mapping[str, str]]
) -> tuple[list[Job], list[Tried]]:
    """What runs, and what never does."""
    groups = {one.logical_id: one for one in project.documents if one.kind is Kind.GROUP}
    settings = {
        one.logical_id: one.payload for one in linked.resources if one.type == "check-group"
    }
    jobs: list[Job] = []
    skipped: list[Tried] = []
    for resource in linked.resources:
        if resource.document is None or resource.type != "check" or resource.payload is None:
            continue
        named: Mapping[str, str] = resource.payload.get("groupId") or {}
        group_id = named.get("ref", "") if isinstance(named, dict) else ""
        tried = Tried(
            name=resource.document.name,
            source=resource.document.source,
            suite=_suite(resource.document, groups.get(group_id)),
            verdict=Verdict.SKIPPED,
        )
        body = linked.checks[resource.logical_id]
        if body.kind is CheckType.HEARTBEAT:
            because = "A heartbeat waits for pings, and never runs on demand."
            skipped.append(replace(tried, reason=because))
            continue
        payload = {**resource.payload, **_own_variables(_with_variables(body, extra))}
        if group_id:
            payload = {**payload, "groupId": None, "group": settings.get(group_id)}
        payload.pop("triggerIncident", None)
        jobs.append(Job(payload=payload, logical_id=resource.logical_id, tried=tried))
    return jobs, skipped


def _own_variables(body: CheckBody) -> dict[str, Any]:
    variables = body.fields.get("environmentVariables")
    return {} if variables is None else {"environmentVariables": variables}


def _hide(tried: Tried, values: EnvValues, terminal: Terminal | None = None) -> Tried:
    """Without values that were filled in; printed if there is a terminal."""
    hidden = replace(
        tried,
        reason=values.hide(tried.reason) if tried.reason else None,
        log=values.hide(tried.log),
        details=values.hide(tried.details),
    )
    if terminal is not None:
        mark = _MARKS.get(hidden.verdict, "✘")
        took = f"  {duration(hidden.took_s * 1000)}" if hidden.took_s else ""
        line = f"{mark} {hidden.verdict}  {hidden.name} ({hidden.source}){took}"
        terminal.print(printable(line), markup=False, highlight=False, soft_wrap=True)
        if hidden.reason:
            reason = printable(f"    {hidden.reason}")
            terminal.print(reason, markup=False, highlight=False, soft_wrap=True)
    return hidden


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as problem:
        raise CommandError(f"--junit is {file}; {problem.strerror}") from problem


def _summary(tried: Sequence[Tried], bad: Sequence[Tried]) -> str:
    skipped = len([one for one in tried if one.verdict is Verdict.SKIPPED])
    ran = len(tried) - skipped
    more = f", {skipped} skipped" if skipped else ""
    return f"{ran - len(bad)} of {ran} passed{more}."
