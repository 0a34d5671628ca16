"""One full value of every message of the contract; the golden files are made from these."""

from pathlib import Path

import msgspec

from contract.agent_api import (
    ArtifactLink,
    ArtifactStored,
    Claim,
    ClaimAnswer,
    ErrorEvent,
    Events,
    Hello,
    HelloAnswer,
    LocationInfo,
    Ping,
    Pings,
    RangeRefusal,
    Refusal,
    Rejected,
    Release,
    Released,
    ReleaseReason,
    Renew,
    RenewAnswer,
    StoredBytes,
    Submission,
    SubmissionAnswer,
    UnavailableType,
)
from contract.assertions import AssertionResult, Comparison, Source
from contract.checks import CheckType, Lane
from contract.job import ClientCertificate, Job, Lease, RunSource, Variable
from contract.result import (
    Artifact,
    Failure,
    FailureKind,
    LogLine,
    Outcome,
    Result,
    Status,
    Timings,
)
from contract.wire import encode
from tests.contract.sample_evidence import EVIDENCE, NOON
from tests.contract.sample_specs import SPECS

GOLDEN = Path(__file__).parent / "golden"


def job(kind: CheckType) -> Job:
    """A job of the given type with every field set."""
    return Job(
        job_id="1042",
        fence=3,
        lease_s=60,
        run_id="7b0e",
        check_id="c-1",
        check_name="Shop",
        account_id="c6a6f1ab-52f1-4ff4-8f0a-1f6a7a2bb2a0",
        location="berlin",
        run_source=RunSource.TRIGGER_API,
        attempt=2,
        scheduled_for=NOON,
        lag_s=0.25,
        deadline_s=30,
        spec=SPECS[kind],
        variables=(Variable(key="ORDER", value="17", locked=True, secret=True),),
        client_certificates=(
            ClientCertificate(
                host="*.shop.example", cert="CERT", key="KEY", ca="CA", passphrase="open"
            ),
        ),
        proxy_url="http://user:pass@proxy.example:3128",
    )


def result(evidence: str) -> Result:
    """A result with the given kind of evidence and every field set."""
    return Result(
        job_id="1042",
        fence=3,
        run_id="7b0e",
        check_id="c-1",
        check_type=CheckType.API,
        agent_id="a-1",
        attempt=2,
        started_at=NOON,
        started_after_s=0.002,
        took_s=0.25,
        outcome=Outcome(
            status=Status.FAILED,
            response_time_ms=250,
            over_max_response_time=True,
            timings=Timings(
                wait=0.1, dns=1, tcp=2, tls=3, first_byte=240, download=4, data=5, total=250
            ),
            failure=Failure(
                kind=FailureKind.ASSERTION,
                message="$.items.length is 0, which is not greater than 0.",
                detail={"code": "ECONNREFUSED", "port": 80, "address": None},
            ),
            degraded_because="It took 250 ms; above 200 ms it is degraded.",
            assertions=(
                AssertionResult(
                    source=Source.JSON_BODY,
                    comparison=Comparison.GREATER_THAN,
                    property="$.items.length",
                    target="0",
                    regex="(.*)",
                    order=0,
                    actual="0",
                    error="$.items.length is 0, which is not greater than 0.",
                ),
            ),
            evidence=EVIDENCE[evidence],
            artifacts=(
                Artifact(
                    name="trace.zip",
                    kind="trace",
                    size_bytes=12,
                    sha256="ab" * 32,
                    content_type="application/zip",
                ),
            ),
            log=(
                LogLine(after_ms=1, level="INFO", message="sent"),
                LogLine(after_ms=2, level="WARN", message="odd", phase="teardown"),
            ),
        ),
    )


_LEASE = Lease(job_id="1042", fence=3)

MESSAGES: dict[str, msgspec.Struct] = {
    **{f"job_{kind}": job(kind) for kind in CheckType},
    **{f"result_{kind}": result(kind) for kind in EVIDENCE},
    "hello": Hello(
        agent_id="a-1",
        version="0.1.0",
        platform="linux-x86_64",
        runtimes={"python": "3.11.7"},
        check_types=(CheckType.URL, CheckType.DNS),
        unavailable=(
            UnavailableType(
                type=CheckType.API, cause="no Node", remedy="set it up", only_with_scripts=True
            ),
        ),
        slots={Lane.UPTIME: 256, Lane.MAIN: 1},
    ),
    "artifact_link": ArtifactLink(
        url="https://files.example/picket/a?X-Amz-Signature=1",
        headers={"content-type": "application/octet-stream"},
    ),
    "hello_answer": HelloAnswer(
        location=LocationInfo(id="l-1", slug_name="berlin", proxy_url="http://proxy.example:3128"),
        lease_s={Lane.UPTIME: 60, Lane.MAIN: 300},
        min_agent_version="0.1.0",
    ),
    "claim": Claim(
        claim_id="k-1", slots={Lane.UPTIME: 32}, check_types=(CheckType.URL,), wait_s=25
    ),
    "claim_answer": ClaimAnswer(
        jobs=(msgspec.Raw(encode(_LEASE)),), next_poll_s=0.5, say_hello=True
    ),
    "renew": Renew(leases=(_LEASE,), is_complete=True),
    "renew_answer": RenewAnswer(lost=(_LEASE,), cancel=(_LEASE,)),
    "release": Release(
        jobs=(
            Released(
                job_id="1042", fence=3, reason=ReleaseReason.DRAINING, message="The agent stops."
            ),
        )
    ),
    "submission": Submission(results=(result("heartbeat"),)),
    "submission_answer": SubmissionAnswer(
        accepted=(_LEASE,),
        duplicates=(_LEASE,),
        rejected=(Rejected(job_id="9", fence=1, reason="There is no job 9."),),
    ),
    "pings": Pings(
        pings=(
            Ping(
                ping_id="p-1",
                token="0d9c7d0e",
                received_at=NOON,
                age_s=1.5,
                method="POST",
                source="https://cron.example",
                user_agent="curl/8",
            ),
        )
    ),
    "events": Events(
        events=(
            ErrorEvent(
                message="KeyError",
                stack_trace="agent/jobs/dispatcher.py:10 run",
                agent_version="0.1.0",
                platform="linux-x86_64",
                runtime_version="python 3.11.7",
            ),
        )
    ),
    "artifact_stored": ArtifactStored(offset=5_242_880, complete=False),
    "refusal": Refusal(status_code=401, error="Unauthorized", message="Bad Token"),
    "range_refusal": RangeRefusal(
        status_code=416,
        error="Requested Range Not Satisfiable",
        message="The part begins at 0, but 1000 bytes are stored; continue there.",
        attributes=StoredBytes(offset=1000),
    ),
}


def written(message: msgspec.Struct) -> str:
    """The message as its golden file holds it."""
    return msgspec.json.format(encode(message), indent=2).decode() + "\n"


if __name__ == "__main__":
    for name, message in MESSAGES.items():
        (GOLDEN / f"{name}.json").write_text(written(message))
