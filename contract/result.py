"""The result of a run: the judged Outcome, and the Result that carries it."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal

from contract.assertions import AssertionResult
from contract.checks import CheckType
from contract.evidence import (
    BrowserEvidence,
    HttpEvidence,
    MultiStepEvidence,
    PlaywrightEvidence,
    TlsFacts,
)
from contract.job import Lease
from contract.wire import Milliseconds, Seconds, Wire


class Status(StrEnum):
    """The verdict of a run."""

    PASSED = "PASSED"
    DEGRADED = "DEGRADED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"


class FailureKind(StrEnum):
    """Why a run did not pass; it is always the target's fault, never Picket's."""

    DNS = "DNS"
    CONNECT = "CONNECT"
    TLS = "TLS"
    PROTOCOL = "PROTOCOL"
    REDIRECT = "REDIRECT"
    TIMEOUT = "TIMEOUT"
    HTTP_STATUS = "HTTP_STATUS"
    PACKET_LOSS = "PACKET_LOSS"
    OVERDUE = "OVERDUE"
    ASSERTION = "ASSERTION"
    TOO_SLOW = "TOO_SLOW"
    SCRIPT = "SCRIPT"
    EGRESS = "EGRESS"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    EXPECTED_FAILURE = "EXPECTED_FAILURE"


class Failure(Wire, frozen=True, kw_only=True):
    """Why a run did not pass."""

    kind: FailureKind
    message: str
    """One sentence that names the cause."""
    detail: dict[str, str | int | float | None] = {}
    """Details such as code, syscall, hostname, address and port."""


class Timings(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Durations of the phases in ms. None: the phase did not happen."""

    wait: Milliseconds | None = None
    dns: Milliseconds | None = None
    tcp: Milliseconds | None = None
    tls: Milliseconds | None = None
    first_byte: Milliseconds | None = None
    download: Milliseconds | None = None
    data: Milliseconds | None = None
    """TCP checks: from sending the data to the end of the response."""
    installation: Milliseconds | None = None
    """PLAYWRIGHT checks: installing the packages. It is not part of `total`."""
    total: Milliseconds | None = None


ReadingEnd = Literal["decided", "closed", "patience", "limit"]


class TcpEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="tcp"):
    """Evidence of a TCP check."""

    hostname: str
    port: int
    remote_address: str | None = None
    """The address that was connected to. None: the name did not resolve."""
    response: str | None = None
    """The data that the peer sent, as text. None: nothing was read."""
    truncated: bool = False
    reading_ended: ReadingEnd | None = None
    """Why reading ended: no further byte could change an assertion, the peer closed the connection,
    our patience of 5 s (1 s without an assertion on the answer) was over, or 64 KiB were read.
    None: nothing was read, or the connection broke."""
    tls: TlsFacts | None = None
    """Facts of the TLS connection. None: TLS was not requested."""


class DnsEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="dns"):
    """Evidence of a DNS check."""

    query: str
    record_type: str
    name_server: str
    """Host and port of the name server that answered."""
    protocol: str
    """The protocol of the answer; it is TCP after a truncated answer by UDP."""
    queries: int | None = None
    """How often the name server was asked until it answered; above 1, packets were lost or late.
    None: there was no answer."""
    response_code: str | None = None
    """The response code, such as NOERROR. None: there was no answer."""
    answer: dict[str, object] | None = None
    """The answer as JSON: Answer, Question, Status, TC, RD, RA, AD and CD. None: there was none."""
    text: str = ""
    """The answer as dig prints it."""


class Echo(Wire, frozen=True, kw_only=True):
    """An echo request and its result."""

    sequence: int
    success: bool
    rtt_ms: Milliseconds | None = None
    """The round-trip time. None: there was no reply."""
    ttl: int | None = None
    """The TTL of the reply. None: there was no reply, or the system does not report it."""
    error: str | None = None
    """The name of the ICMP error, such as host-unreachable. None: a reply came, or nothing did."""


class IcmpEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="icmp"):
    """Evidence of an ICMP check."""

    hostname: str
    resolved_ip: str | None = None
    """The address that was pinged. None: the name did not resolve."""
    ip_family: str
    packets_sent: int = 0
    packets_received: int = 0
    packet_size: int = 64
    packet_loss: float = 0
    """The share of lost packets in percent."""
    dns_ms: Milliseconds | None = None
    """Duration of the DNS lookup. None: the host was an IP address."""
    latency: dict[str, float] = {}
    """`avg`, `min`, `max` and `stdDev` in ms. Empty: there were no replies."""
    echoes: tuple[Echo, ...] = ()


class HeartbeatEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="heartbeat"):
    """Evidence of a heartbeat check."""

    silent_for_s: Seconds | None = None
    """The age of the last ping. None: the timer has not started."""
    period_s: Seconds
    grace_s: Seconds


Evidence = (
    HttpEvidence
    | TcpEvidence
    | DnsEvidence
    | IcmpEvidence
    | HeartbeatEvidence
    | BrowserEvidence
    | MultiStepEvidence
    | PlaywrightEvidence
)
"""What a run saw, recorded for people who read the result."""


class LogLine(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a run's log."""

    after_ms: Milliseconds
    """Time from the start of the run."""
    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]
    message: str
    phase: Literal["setup", "request", "teardown"] | None = None
    """The phase of an API check with scripts that wrote the line. None: no single phase did."""


ArtifactKind = Literal["log", "trace", "video", "screenshot", "pcap", "report", "file"]


class Artifact(Wire, frozen=True, kw_only=True):
    """A file of a run; it is uploaded before the result that names it."""

    name: str
    kind: ArtifactKind
    size_bytes: int
    sha256: str
    content_type: str = "application/octet-stream"


class Outcome(Wire, frozen=True, kw_only=True):
    """The judged content of a run. It has no ids, so a runner cannot get them wrong."""

    status: Status
    response_time_ms: Milliseconds | None = None
    """The time that is compared with the thresholds. None: nothing was measured."""
    over_max_response_time: bool = False
    timings: Timings = Timings()
    failure: Failure | None = None
    """Why the run failed. None: it passed or is degraded."""
    degraded_because: str | None = None
    """One sentence that names the exceeded threshold. None: the run is not degraded."""
    assertions: tuple[AssertionResult, ...] = ()
    evidence: Evidence | None = None
    """What the run saw. None: it failed before it saw anything."""
    artifacts: tuple[Artifact, ...] = ()
    log: tuple[LogLine, ...] = ()


class Result(Wire, frozen=True, kw_only=True):
    """An outcome with the ids of its run."""

    job_id: str
    fence: int
    run_id: str
    check_id: str
    check_type: CheckType
    agent_id: str
    attempt: int = 1
    started_at: datetime
    """When the run started by the agent's clock; for display only."""
    started_after_s: Seconds
    """Time from the answer to the claim to the start of the run; the service adds it to its own
    clock's time of the claim."""
    took_s: Seconds
    """Duration of the run."""
    outcome: Outcome

    @property
    def lease(self) -> Lease:
        """The lease under which the job ran."""
        return Lease(job_id=self.job_id, fence=self.fence)


class CheckFailed(Exception):  # noqa: N818 - a verdict on the target, not an error of ours
    """A fault of the target. Any other exception of a runner is our fault and fails no check."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        detail: Mapping[str, str | int | float | None] | None = None,
    ) -> None:
        super().__init__(message)
        self.failure = Failure(kind=kind, message=message, detail=dict(detail or {}))


class MachineError(Exception):
    """This machine lacks something that a run needs, so the job belongs on another one.

    The text is a sentence that says what.
    """
