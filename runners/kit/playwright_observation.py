"""What was seen of a script's run, as an observation."""

from typing import Final

from contract.result import Failure, FailureKind, Timings
from contract.script_evidence import BrowserEvidence, MultiStepEvidence
from runners.kit.observation import Observation
from runners.kit.playwright_evidence import log_of
from runners.kit.playwright_run import ScriptRun
from runners.kit.playwright_verdict import failure_of

_TUNNEL: Final = "ERR_TUNNEL_CONNECTION_FAILED"
"""What a script is told when the gate before its browser refuses a target."""


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
        timeout_s=run.timeout_s,
        memory_mb=run.memory_mb,
        is_degraded=run.degraded_because is not None,
    )
    return Observation(
        response_time_ms=took_ms,
        timings=Timings(total=took_ms),
        failure=_refused(failure, run.refusals),
        degraded_because=run.degraded_because,
        evidence=evidence,
        artifacts=run.artifacts,
        log=log_of(run.ended.log, run.book, run.notes, start_ms=run.start_ms),
    )


def _refused(failure: Failure | None, refusals: tuple[str, ...]) -> Failure | None:
    """The failure by its cause, where the script knows no more than that no tunnel was made."""
    if failure is None or not refusals or _TUNNEL not in failure.message:
        return failure
    return Failure(kind=FailureKind.EGRESS, message=refusals[0], detail=failure.detail)
