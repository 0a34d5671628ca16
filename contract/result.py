"""What came out of a run: the judged Outcome, and the Result that carries it."""

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
    """The verdict on a run."""

    PASSED = "PASSED"
    DEGRADED = "DEGRADED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"


class FailureKind(StrEnum):
    """Why a run did not pass; always the target's fault, never ours."""

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
    """Facts behind the sentence: code, syscall, hostname, address, port."""


class Timings(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """How long each phase took, in ms. None: the phase did not happen."""

    wait: Milliseconds | None = None
    dns: Milliseconds | None = None
    tcp: Milliseconds | None = None
    tls: Milliseconds | None = None
    first_byte: Milliseconds | None = None
    download: Milliseconds | None = None
    data: Milliseconds | None = None
    """TCP checks: from sending to the end of the answer."""
    installation: Milliseconds | None = None
    """PLAYWRIGHT checks: until the packages were there. It is no part of `total`."""
    total: Milliseconds | None = None


class TcpEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="tcp"):
    """What a TCP check saw."""

    hostname: str
    port: int
    remote_address: str | None = None
    """None: the name did not resolve."""
    response: str | None = None
    """What the peer said, as text. None: nothing was read."""
    truncated: bool = False
    tls: TlsFacts | None = None
    """None: no TLS was asked for."""


class DnsEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="dns"):
    """What a DNS check saw."""

    query: str
    record_type: str
    name_server: str
    """The server that answered, host and port."""
    protocol: str
    """What the answer came by: UDP, or TCP after truncation."""
    response_code: str | None = None
    """As in NOERROR. None: no answer."""
    answer: dict[str, object] | None = None
    """The JSON form: Answer, Question, Status, TC, RD, RA, AD, CD. None: no answer."""
    text: str = ""
    """The text form, as dig prints it."""


class Echo(Wire, frozen=True, kw_only=True):
    """One echo request and what became of it."""

    sequence: int
    success: bool
    rtt_ms: Milliseconds | None = None
    """None: no reply."""
    ttl: int | None = None
    """None: no reply, or the system does not tell."""
    error: str | None = None
    """An ICMP error by name, as in host-unreachable. None: a reply, or silence."""


class IcmpEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="icmp"):
    """What an ICMP check saw."""

    hostname: str
    resolved_ip: str | None = None
    """None: the name did not resolve."""
    ip_family: str
    packets_sent: int = 0
    packets_received: int = 0
    packet_size: int = 64
    packet_loss: float = 0
    """Percent."""
    dns_ms: Milliseconds | None = None
    """None: the host was an address."""
    latency: dict[str, float] = {}
    """avg, min, max and stdDev in ms; empty without replies."""
    echoes: tuple[Echo, ...] = ()


class HeartbeatEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="heartbeat"):
    """What a heartbeat check saw."""

    silent_for_s: Seconds | None = None
    """Age of the last ping. None: the timer has not started."""
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
"""What was seen, kept for whoever reads the result."""


class LogLine(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a run's log."""

    after_ms: Milliseconds
    """Since the run started."""
    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]
    message: str
    phase: Literal["setup", "request", "teardown"] | None = None
    """Of an API check with scripts. None: of another, or of the run as a whole."""


ArtifactKind = Literal["log", "trace", "video", "screenshot", "pcap", "report", "file"]


class Artifact(Wire, frozen=True, kw_only=True):
    """A file that was uploaded before the result that names it."""

    name: str
    kind: ArtifactKind
    size_bytes: int
    sha256: str
    content_type: str = "application/octet-stream"


class Outcome(Wire, frozen=True, kw_only=True):
    """The judged content of a run; it knows no ids, so a runner cannot get them wrong."""

    status: Status
    response_time_ms: Milliseconds | None = None
    """What thresholds are held against. None: nothing was measured."""
    over_max_response_time: bool = False
    timings: Timings = Timings()
    failure: Failure | None = None
    """None: it passed or is degraded."""
    degraded_because: str | None = None
    """One sentence that names the threshold it went over. None: it is not degraded."""
    assertions: tuple[AssertionResult, ...] = ()
    evidence: Evidence | None = None
    """None: the run failed before there was anything to see."""
    artifacts: tuple[Artifact, ...] = ()
    log: tuple[LogLine, ...] = ()


class Result(Wire, frozen=True, kw_only=True):
    """An outcome in its envelope."""

    job_id: str
    fence: int
    run_id: str
    check_id: str
    check_type: CheckType
    agent_id: str
    attempt: int = 1
    started_at: datetime
    """By the agent's clock; for the reader only."""
    started_after_s: Seconds
    """From the claim's answer to the start of the run: the service adds it to its own clock."""
    took_s: Seconds
    """How long the run took."""
    outcome: Outcome

    @property
    def lease(self) -> Lease:
        """The lease under which the job ran."""
        return Lease(job_id=self.job_id, fence=self.fence)


class CheckFailed(Exception):  # noqa: N818 - a verdict on the target, not an error of ours
    """The target's fault. Whatever else a runner raises is ours, and never fails the check."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        detail: Mapping[str, str | int | float | None] | None = None,
    ) -> None:
        super().__init__(message)
        self.failure = Failure(kind=kind, message=message, detail=dict(detail or {}))


class MachineError(Exception):
    """This machine lacks what a run needs, as a sentence; the job belongs to another one."""
