"""Runs checks of files on this machine, as `picket run` runs one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
from rich.console import Console

from contract.checks import ApiSpec, CheckType
from contract.result import Outcome
from picket.check_file.load import CheckFile, parse_document
from picket.check_file.references import SUITE
from picket.code.reading.check_body import CheckBody
from picket.code.reading.documents import Document
from picket.code.trying.group_settings import with_group
from picket.code.trying.verdicts import Tried, Verdict
from picket.errors import CommandError, ExitCode
from picket.report import report
from picket.run import RunOptions, run_check
from redaction.clean import Clean

_WIDTH: Final = 100


def try_here(
    document: Document, body: CheckBody, group: Mapping[str, Any] | None, *, suite: str
) -> Tried:
    """Run one check; what this machine lacks is an error of that check alone.

    Raises:
        CommandError: the check or a setting is wrong.
    """
    tried = Tried(name=document.name, source=document.source, suite=suite, verdict=Verdict.SKIPPED)
    if body.kind is CheckType.HEARTBEAT:
        return replace(tried, reason="A heartbeat waits for pings, and never runs on demand.")
    if "codeBundlePath" in document.fields and SUITE not in document.fields:
        because = "Its code is at a service (codeBundlePath); give a --location."
        return replace(tried, reason=because)
    try:
        clean = run_check(_check_file(document, body, group), RunOptions())
    except CommandError as problem:
        if problem.code is ExitCode.BAD_INPUT:
            raise
        return replace(tried, verdict=Verdict.ERROR, reason=problem.message)
    return _read(tried, clean, document.name)


def _check_file(document: Document, body: CheckBody, group: Mapping[str, Any] | None) -> CheckFile:
    fields = body.fields if group is None else with_group(body.fields, body.kind, group)
    beside = {
        key: document.fields[key]
        for key in ("clientCertificates", "proxyUrl", SUITE)
        if key in document.fields
    }
    if body.dependencies:
        beside["dependencies"] = [dict(one) for one in body.dependencies]
    given = {key: value for key, value in fields.items() if value is not None} | beside
    check = parse_document(given, document.source, folder=document.folder)
    if group is None or not isinstance(check.spec, ApiSpec):
        return check
    spec = msgspec.structs.replace(
        check.spec,
        group_setup_script=group.get("localSetupScript"),
        group_teardown_script=group.get("localTearDownScript"),
    )
    return replace(check, spec=spec)


def _read(tried: Tried, clean: Clean, name: str) -> Tried:
    result = clean.result
    outcome = result.outcome
    verdict = Verdict(outcome.status.value)
    log = "\n".join(f"{line.level} {line.message}" for line in outcome.log)
    return replace(
        tried,
        verdict=verdict,
        reason=_reason(outcome),
        took_s=result.took_s,
        log=log,
        details=_details(clean, name) if verdict.is_bad else "",
    )


def _reason(outcome: Outcome) -> str | None:
    if outcome.failure is not None:
        return outcome.failure.message
    return outcome.degraded_because


def _details(clean: Clean, name: str) -> str:
    console = Console(width=_WIDTH, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(report(clean.result, name=name))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
