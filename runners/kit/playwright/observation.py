"""What was seen of a script's run, as an observation."""

import re
from typing import Final
from urllib.parse import urlsplit

from contract.result import Failure, FailureKind, Timings
from contract.script_evidence import BrowserEvidence, MultiStepEvidence
from runners.kit.gate.proxy import Unreached
from runners.kit.observation import Observation
from runners.kit.playwright.evidence import log_of
from runners.kit.playwright.run import ScriptRun
from runners.kit.playwright.verdict import MESSAGE_CHARS, failure_of
from runners.kit.secrets.cut_texts import cut

_TUNNEL: Final = "ERR_TUNNEL_CONNECTION_FAILED"
"""What a script is told when the gate before its browser does not reach a target."""
_WHERE: Final = re.compile(rf"{_TUNNEL} at (\S+)")


def observation_of(run: ScriptRun, evidence: BrowserEvidence | MultiStepEvidence) -> Observation:
    """Facts and fault of a run.

    Raises:
        BrowserDidNotStartError: our fault.
        RunBrokeOffError: our fault.
    """
    took_ms = round(run.ended.took_s * 1000, 1)
    failure = failure_of(
        run.book,
        run.ended,
        limit_s=run.limit_s,
        memory_mb=run.memory_mb,
        is_degraded=run.degraded_because is not None,
    )
    return Observation(
        response_time_ms=took_ms,
        timings=Timings(total=took_ms),
        failure=by_its_cause(failure, run.unreached),
        degraded_because=run.degraded_because,
        evidence=evidence,
        artifacts=run.artifacts,
        log=log_of(run.ended.log, run.book, run.notes, start_ms=run.start_ms),
    )


def by_its_cause(failure: Failure | None, unreached: tuple[Unreached, ...]) -> Failure | None:
    """The failure with its reason, where the script knows no more than that no tunnel was made."""
    if failure is None or _TUNNEL not in failure.message:
        return failure
    cause = _cause(failure.message, unreached)
    if cause is None:
        return failure
    if cause.kind is FailureKind.EGRESS:
        return Failure(kind=cause.kind, message=cause.why, detail=failure.detail)
    told = cut(f"{cause.why}\n{failure.message}", MESSAGE_CHARS)
    return Failure(kind=failure.kind, message=told, detail=failure.detail)


def _cause(message: str, unreached: tuple[Unreached, ...]) -> Unreached | None:
    hosts = {_host_of(url) for url in _WHERE.findall(message)}
    of_host = [one for one in unreached if one.host in hosts]
    if of_host:
        return of_host[-1]
    # A redirect: the script is told the address that it asked for.
    return unreached[0] if len(unreached) == 1 else None


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
