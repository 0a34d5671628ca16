"""Builders of observations, evidence, outcomes and results."""

from datetime import UTC, datetime
from typing import Any

from contract.assertions import Source
from contract.checks import CheckType
from contract.evidence import HttpEvidence, SeenResponse, SentRequest
from contract.job import Job
from contract.result import (
    Failure,
    FailureKind,
    HeartbeatEvidence,
    IcmpEvidence,
    Outcome,
    Result,
    Status,
    Timings,
)
from runners.runner import Fields, JsonText, Number, Numbers, Observation, Text

STARTED_AT = datetime(2026, 11, 21, 10, 0, 1, tzinfo=UTC)


def a_failure(kind: FailureKind = FailureKind.CONNECT, message: str = "It broke.") -> Failure:
    return Failure(kind=kind, message=message)


def http_evidence(
    status_code: int = 200,
    *,
    url: str = "http://127.0.0.1:9/",
    request_headers: dict[str, str] | None = None,
    response_headers: dict[str, str] | None = None,
    body: str = "",
    **changes: Any,
) -> HttpEvidence:
    return HttpEvidence(
        request=SentRequest(method="GET", url=url, headers=request_headers or {}),
        response=SeenResponse(status_code=status_code, headers=response_headers or {}, body=body),
        **changes,
    )


def an_observation(**changes: Any) -> Observation:
    """Something was seen, 12 ms long; nothing is asserted to be good."""
    return Observation(**{"response_time_ms": 12.0, "timings": Timings(total=12.0), **changes})


def an_http_observation(
    status_code: int = 200, *, body: str = "", took_ms: float = 12.0, **changes: Any
) -> Observation:
    facts = {
        Source.STATUS_CODE: Number(status_code),
        Source.RESPONSE_TIME: Number(took_ms),
        Source.HEADERS: Fields({"content-type": "application/json"}),
        Source.TEXT_BODY: Text(body),
        Source.JSON_BODY: JsonText(body),
    }
    return an_observation(
        **{
            "response_time_ms": took_ms,
            "facts": facts,
            "evidence": http_evidence(status_code, body=body),
            **changes,
        }
    )


def a_dns_observation(
    response_code: str = "NOERROR", *, took_ms: float = 12.0, **changes: Any
) -> Observation:
    facts = {
        Source.RESPONSE_CODE: Text(response_code),
        Source.RESPONSE_TIME: Number(took_ms),
        Source.TEXT_ANSWER: Text(""),
        Source.JSON_ANSWER: JsonText("{}"),
    }
    return an_observation(**{"response_time_ms": took_ms, "facts": facts, **changes})


def an_icmp_observation(loss_percent: float = 0.0, **changes: Any) -> Observation:
    latency = {"avg": 1.0, "min": 0.5, "max": 2.0, "stdDev": 0.25}
    evidence = IcmpEvidence(
        hostname="127.0.0.1", ip_family="IPv4", packet_loss=loss_percent, latency=latency
    )
    facts = {Source.LATENCY: Numbers(latency), Source.JSON_RESPONSE: JsonText("{}")}
    return an_observation(**{"evidence": evidence, "facts": facts, **changes})


def a_heartbeat_observation(silent_for_s: float | None = None, **changes: Any) -> Observation:
    evidence = HeartbeatEvidence(silent_for_s=silent_for_s, period_s=60, grace_s=30)
    return an_observation(**{"response_time_ms": None, "evidence": evidence, **changes})


def an_outcome(**changes: Any) -> Outcome:
    return Outcome(**{"status": Status.PASSED, **changes})


def a_result(outcome: Outcome | None = None, **changes: Any) -> Result:
    fields = {
        "job_id": "job-1",
        "fence": 1,
        "run_id": "run-1",
        "check_id": "check-1",
        "check_type": CheckType.URL,
        "agent_id": "agent-1",
        "started_at": STARTED_AT,
        "started_after_s": 0.01,
        "took_s": 0.02,
        "outcome": outcome if outcome is not None else an_outcome(),
    }
    return Result(**{**fields, **changes})  # type: ignore[arg-type]  # a builder takes any field


def a_result_of(job: Job, outcome: Outcome | None = None, **changes: Any) -> Result:
    """A result that fits the job's envelope."""
    envelope = {
        "job_id": job.job_id,
        "fence": job.fence,
        "run_id": job.run_id,
        "check_id": job.check_id,
        "attempt": job.attempt,
    }
    return a_result(outcome, **{**envelope, **changes})
