"""Turns facts into a verdict: one pure function for all check types.

`shouldFail` inverts what counts as a failure of the answer; assertions and time limits hold all
the same, and a check that got no answer at all does not pass, with the exceptions below.

| Type      | passes with shouldFail            | EXPECTED_FAILURE         | fails as ever        |
|-----------|-----------------------------------|--------------------------|----------------------|
| URL, API  | status 400 or above               | status below 400         | no answer: DNS, TLS, |
|           |                                   |                          | CONNECT, TIMEOUT, …  |
|           | with acceptedStatusCodes: a       | a status on that list    |                      |
|           | status that is not on that list   |                          |                      |
| TCP       | refused, unreachable or silent    | the connection was made, | DNS, TLS, EGRESS, …  |
|           | (CONNECT, TIMEOUT)                | broken off later or not  |                      |
| DNS       | any response code but NOERROR     | NOERROR                  | no answer: TIMEOUT … |
| ICMP      | loss at the failed threshold or   | loss below the threshold | DNS, EGRESS, …       |
|           | above; unreachable (CONNECT,      |                          |                      |
|           | TIMEOUT)                          |                          |                      |
| HEARTBEAT | (has no shouldFail)               |                          |                      |

When several failures hold, the verdict names the first of these: no observation; the answer itself
(status, response code, loss, overdue ping), which is the likeliest cause of the others; a teardown
script; the first assertion that failed, in the check's order; a response that was too slow.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from contract.assertions import Assertion, AssertionResult, Source
from contract.checks import (
    ApiSpec,
    CheckSpec,
    DnsSpec,
    HeartbeatSpec,
    HttpSpec,
    IcmpSpec,
    RequestSpec,
    TcpSpec,
    TimedSpec,
    UrlSpec,
)
from contract.result import (
    DnsEvidence,
    Failure,
    FailureKind,
    HeartbeatEvidence,
    IcmpEvidence,
    Outcome,
    Status,
    TcpEvidence,
)
from contract.targets import LOWEST_ERROR, is_accepted
from runners.judging.assertions import evaluate
from runners.runner import Number, Observation, Text
from runners.timing import duration, milliseconds

LOWEST_SERVER_FAULT: Final = 500
_UNREACHABLE: Final = frozenset({FailureKind.CONNECT, FailureKind.TIMEOUT})


def judge(spec: CheckSpec, seen: Observation) -> Outcome:
    """Decide what the facts mean for this check."""
    if seen.failure is not None:
        return _judge_failure(spec, seen, _mention_limit(spec, seen, seen.failure))
    return _judge_answer(spec, seen)


def _judge_failure(spec: CheckSpec, seen: Observation, failure: Failure) -> Outcome:
    """Judge a run without an answer, which assertions and limits cannot be compared with."""
    may_be_unreachable = (
        isinstance(spec, RequestSpec) and spec.passes_unreachable and spec.should_fail
    )
    if not may_be_unreachable or failure.kind not in _UNREACHABLE or not _was_tried(seen, failure):
        return _outcome(seen, failure=failure)
    if isinstance(spec, TcpSpec) and seen.timings.tcp is not None:
        return _outcome(seen, failure=_tcp_failure(spec, seen))
    return _outcome(seen)


def _mention_limit(spec: CheckSpec, seen: Observation, failure: Failure) -> Failure:
    """Add the check's own limit to the sentence of a time-out, which comes long after it."""
    _, failed_after_ms = _read_limits(spec)
    took_ms = seen.timings.total
    if failure.kind is not FailureKind.TIMEOUT or failed_after_ms is None or took_ms is None:
        return failure
    if took_ms <= failed_after_ms:
        return failure
    limit = f"The check's maxResponseTime is {milliseconds(failed_after_ms)} ms."
    return msgspec.structs.replace(failure, message=f"{failure.message} {limit}")


def _was_tried(seen: Observation, failure: Failure) -> bool:
    """Whether there was an address to reach, and one of the right family."""
    match seen.evidence:
        case TcpEvidence(remote_address=None) | IcmpEvidence(resolved_ip=None):
            return False
        case _:
            return failure.detail.get("code") != "ERR_INVALID_IP_ADDRESS"


def _judge_answer(spec: CheckSpec, seen: Observation) -> Outcome:
    assertions = evaluate(_assertions(spec), seen.facts)
    degraded_after_ms, failed_after_ms = _read_limits(spec)
    slow = _slow_failure(seen.response_time_ms, failed_after_ms)
    before = _answer_failure(spec, seen) or seen.script_failure
    failure = before or _assertion_failure(assertions) or slow
    degraded_because = None
    if failure is None:
        slow_because = _explain_slowness(seen.response_time_ms, degraded_after_ms)
        degraded_because = slow_because or _explain_loss(spec, seen) or seen.degraded_because
    return _outcome(
        seen,
        failure=failure,
        degraded_because=degraded_because,
        assertions=assertions,
        over_max=slow is not None,
    )


def _outcome(
    seen: Observation,
    *,
    failure: Failure | None = None,
    degraded_because: str | None = None,
    assertions: tuple[AssertionResult, ...] = (),
    over_max: bool = False,
) -> Outcome:
    return Outcome(
        status=_status(failure, degraded_because),
        response_time_ms=seen.response_time_ms,
        over_max_response_time=over_max,
        timings=seen.timings,
        failure=failure,
        degraded_because=degraded_because,
        assertions=assertions,
        evidence=seen.evidence,
        artifacts=seen.artifacts,
        log=seen.log,
    )


def _status(failure: Failure | None, degraded_because: str | None) -> Status:
    if failure is not None:
        return Status.TIMED_OUT if failure.kind is FailureKind.TIMEOUT else Status.FAILED
    return Status.PASSED if degraded_because is None else Status.DEGRADED


def _assertions(spec: CheckSpec) -> tuple[Assertion, ...]:
    return spec.assertions if isinstance(spec, RequestSpec) else ()


def _read_limits(spec: CheckSpec) -> tuple[float | None, float | None]:
    """When the check is degraded and when it fails, in ms. None: never."""
    if isinstance(spec, TimedSpec):
        return spec.degraded_after_ms, spec.failed_after_ms
    return None, None


def _slow_failure(took_ms: float | None, limit_ms: float | None) -> Failure | None:
    if took_ms is None or limit_ms is None or took_ms <= limit_ms:
        return None
    return Failure(
        kind=FailureKind.TOO_SLOW,
        message=f"It took {milliseconds(took_ms)} ms; the limit is {milliseconds(limit_ms)} ms.",
    )


def _explain_slowness(took_ms: float | None, limit_ms: float | None) -> str | None:
    if took_ms is None or limit_ms is None or took_ms <= limit_ms:
        return None
    return f"It took {milliseconds(took_ms)} ms; above {milliseconds(limit_ms)} ms it is degraded."


def _assertion_failure(results: tuple[AssertionResult, ...]) -> Failure | None:
    failed = [result for result in results if result.error is not None]
    if not failed:
        return None
    first = failed[0]
    more = f" {len(failed) - 1} more failed." if len(failed) > 1 else ""
    return Failure(
        kind=FailureKind.ASSERTION,
        message=f"{first.error}{more}",
        detail={"order": first.order, "failed": len(failed)},
    )


def _answer_failure(spec: CheckSpec, seen: Observation) -> Failure | None:
    judge_type = _ANSWER_RULES.get(type(spec))
    return None if judge_type is None else judge_type(spec, seen)


def _http_failure(spec: HttpSpec, seen: Observation) -> Failure | None:
    fact = seen.facts.get(Source.STATUS_CODE)
    if not isinstance(fact, Number):
        return Failure(kind=FailureKind.PROTOCOL, message="There was no HTTP status to judge.")
    status = int(fact.value)
    if accepted := spec.request.accepted_status_codes:
        return _listed_status_failure(status, accepted, should_fail=spec.should_fail)
    if (status >= LOWEST_ERROR) == spec.should_fail:
        return None
    if spec.should_fail:
        return _unexpected_pass(
            f"The response status is {status}; this check expects 400 or above."
        )
    # Hardly anyone expects a server's own faults, so the hint is left out there.
    hint = ", unless the check expects failure" if status < LOWEST_SERVER_FAULT else ""
    return Failure(
        kind=FailureKind.HTTP_STATUS,
        message=f"The response status is {status}; anything below 400 passes{hint}.",
        detail={"code": status},
    )


def _listed_status_failure(
    status: int, accepted: Sequence[str | int], *, should_fail: bool
) -> Failure | None:
    """Judge a status by the check's own list of those that pass; `should_fail` inverts it."""
    if is_accepted(status, accepted) != should_fail:
        return None
    listed = ", ".join(map(str, accepted))
    if should_fail:
        return _unexpected_pass(
            f"The response status is {status}; this check expects none of {listed}."
        )
    return Failure(
        kind=FailureKind.HTTP_STATUS,
        message=f"The response status is {status}; this check accepts {listed}.",
        detail={"code": status},
    )


def _tcp_failure(spec: TcpSpec, _: Observation) -> Failure | None:
    if not spec.should_fail:
        return None
    return _unexpected_pass("The connection was made; this check expects that it is not.")


def _dns_failure(spec: DnsSpec, seen: Observation) -> Failure | None:
    code = _response_code(seen)
    if code is None:
        return Failure(kind=FailureKind.PROTOCOL, message="There was no response code to judge.")
    if spec.should_fail:
        if code != "NOERROR":
            return None
        return _unexpected_pass(f"{_describe_answer(seen, code)}; this check expects an error.")
    if code == "NOERROR" or _asserts(spec, Source.RESPONSE_CODE):
        return None
    return Failure(
        kind=FailureKind.DNS,
        message=f"{_describe_answer(seen, code)}; only NOERROR passes.",
        detail={"code": code},
    )


def _describe_answer(seen: Observation, code: str) -> str:
    """Describe which server answered what to which question."""
    asked = seen.evidence
    if not isinstance(asked, DnsEvidence):
        return f"The name server answered {code}"
    return f"{asked.name_server} answered {code} for {asked.query} {asked.record_type}"


def _response_code(seen: Observation) -> str | None:
    fact = seen.facts.get(Source.RESPONSE_CODE)
    if isinstance(fact, Text):
        return fact.value
    return seen.evidence.response_code if isinstance(seen.evidence, DnsEvidence) else None


def _asserts(spec: DnsSpec, source: Source) -> bool:
    return any(assertion.source is source for assertion in spec.assertions)


def _icmp_failure(spec: IcmpSpec, seen: Observation) -> Failure | None:
    if not isinstance(seen.evidence, IcmpEvidence):
        return Failure(kind=FailureKind.PROTOCOL, message="There was no packet loss to judge.")
    if (seen.evidence.packet_loss >= spec.failed_loss_percent) == spec.should_fail:
        return None
    lost, limit = _describe_loss(seen.evidence), f"{spec.failed_loss_percent:g} %"
    if spec.should_fail:
        return _unexpected_pass(f"{lost}; this check expects at least {limit}.")
    return Failure(
        kind=FailureKind.PACKET_LOSS,
        message=f"{lost}{_list_errors(seen.evidence)}; the check fails at {limit}.",
        detail={
            "sent": seen.evidence.packets_sent,
            "received": seen.evidence.packets_received,
        },
    )


def _describe_loss(evidence: IcmpEvidence) -> str:
    host, address = evidence.hostname, evidence.resolved_ip
    named = host if address in (None, host) else f"{host} ({address})"
    return f"{round(evidence.packet_loss, 1):g} % of the packets to {named} were lost"


def _list_errors(evidence: IcmpEvidence) -> str:
    """List the ICMP errors that were received instead of replies, which name the cause."""
    errors = sorted({echo.error for echo in evidence.echoes if echo.error is not None})
    return f" ({', '.join(errors)})" if errors else ""


def _explain_loss(spec: CheckSpec, seen: Observation) -> str | None:
    """Why the loss makes the check degraded. None: it does not."""
    if not isinstance(spec, IcmpSpec) or not isinstance(seen.evidence, IcmpEvidence):
        return None
    if spec.should_fail or seen.evidence.packet_loss < spec.degraded_loss_percent:
        return None
    return (
        f"{_describe_loss(seen.evidence)}; from {spec.degraded_loss_percent:g} % on it is degraded."
    )


def _heartbeat_failure(spec: HeartbeatSpec, seen: Observation) -> Failure | None:
    evidence = seen.evidence
    silent_for_s = evidence.silent_for_s if isinstance(evidence, HeartbeatEvidence) else None
    if silent_for_s is None or silent_for_s <= spec.period_s + spec.grace_s:
        return None
    return Failure(
        kind=FailureKind.OVERDUE,
        message=(
            f"The last ping came {duration(silent_for_s)} ago; one is due every "
            f"{duration(spec.period_s)}, with {duration(spec.grace_s)} of grace."
        ),
        detail={"silentForSeconds": round(silent_for_s, 3)},
    )


def _unexpected_pass(message: str) -> Failure:
    return Failure(kind=FailureKind.EXPECTED_FAILURE, message=message)


_ANSWER_RULES: Final[Mapping[type, Callable[[Any, Observation], Failure | None]]] = {
    UrlSpec: _http_failure,
    ApiSpec: _http_failure,
    TcpSpec: _tcp_failure,
    DnsSpec: _dns_failure,
    IcmpSpec: _icmp_failure,
    HeartbeatSpec: _heartbeat_failure,
}
"""The rule for the answer of each type; a type that is missing here has none of its own."""
