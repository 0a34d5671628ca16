"""What agent and service say to each other under `/agent/v1`, and where."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from contract.checks import CheckType, Lane
from contract.job import Lease
from contract.result import Result
from contract.wire import Seconds, Wire

PREFIX: Final = "/agent/v1"
HELLO: Final = f"{PREFIX}/hello"
CLAIM: Final = f"{PREFIX}/jobs/claim"
RENEW: Final = f"{PREFIX}/jobs/renew"
RELEASE: Final = f"{PREFIX}/jobs/release"
RESULTS: Final = f"{PREFIX}/results"
ARTIFACTS: Final = f"{PREFIX}/artifacts"
"""Followed by `/{jobId}/{name}`."""
BUNDLES: Final = f"{PREFIX}/bundles"
"""Followed by `/{sha256}`."""
PINGS: Final = f"{PREFIX}/pings"
EVENTS: Final = f"{PREFIX}/events"

AGENT_ID_HEADER: Final = "x-agent-id"
"""One id per process start, on every request."""
ARTIFACT_DIGEST_HEADER: Final = "x-content-sha256"
"""Of the whole file, hexadecimal; needed on the part that completes it, good on every part."""
ARTIFACT_FENCE_HEADER: Final = "x-fence"
"""Of the claim under which the file was made, on every part; under an older one than the newest
it is refused."""
ARTIFACT_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
"""What an artifact may be called; `.part` at its end is the service's own."""
USER_AGENT_PREFIX: Final = "picket-agent/"
"""Followed by the agent's version."""

_FIGURES: Final = re.compile(r"\d+(?:\.\d+)?")

MAX_WAIT_S: Final = 30
"""The longest that a claim may wait for work."""
MAX_RESULTS: Final = 256
MAX_RESULTS_BYTES: Final = 8 * 1024 * 1024
MAX_ARTIFACT_BYTES: Final = 150 * 1024 * 1024
GZIP_ABOVE_BYTES: Final = 4096
"""Bodies above this may be sent with `content-encoding: gzip`."""


def name_checks(kind: CheckType, *, with_scripts: bool) -> str:
    """What people read of a type, or of its checks with scripts."""
    return f"{kind} checks{' with scripts' if with_scripts else ''}"


class UnavailableType(Wire, frozen=True, kw_only=True):
    """A check type that an agent knows and cannot run on its machine."""

    type: CheckType
    cause: str
    """What is missing or in the way: one sentence without its full stop."""
    remedy: str
    """What to do about it, in the same form."""
    only_with_scripts: bool = False
    """The type's checks with setup or teardown scripts cannot run; its others can."""

    @property
    def what(self) -> str:
        """Which checks cannot run."""
        return name_checks(self.type, with_scripts=self.only_with_scripts)

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays while the cause does: figures, such as the machine's load, do not count."""
        cause, remedy = (_FIGURES.sub("0", text) for text in (self.cause, self.remedy))
        return self.what, cause, remedy

    @property
    def sentence(self) -> str:
        """The one sentence that people read of it, wherever they look."""
        return f"{self.what} cannot run here: {self.cause}; {self.remedy}."


class Hello(Wire, frozen=True, kw_only=True):
    """An agent introduces itself: at start, on reconnect, when its capabilities change."""

    agent_id: str
    version: str
    platform: str
    """As in linux-x86_64."""
    runtimes: dict[str, str] = {}
    """Runtime name to version: `python`; where there are any, those of scripts by their ids, with
    the version of their Node, and `chromium`."""
    check_types: tuple[CheckType, ...]
    """What the agent can run, after its boot check."""
    unavailable: tuple[UnavailableType, ...] = ()
    """What it knows and cannot run; a type in neither list has not been tried yet."""
    slots: dict[Lane, int]
    """How many jobs it runs at once, per lane."""


class LocationInfo(Wire, frozen=True, kw_only=True):
    """The private location that the key belongs to."""

    id: str
    slug_name: str
    proxy_url: str | None = None
    """Proxy for what URL and API checks send, `*********` for its credentials, which jobs carry.
    None: direct."""


class Limits(Wire, frozen=True, kw_only=True):
    """What the service takes in one request."""

    results: int = MAX_RESULTS
    results_bytes: int = MAX_RESULTS_BYTES
    artifact_bytes: int = MAX_ARTIFACT_BYTES


class HelloAnswer(Wire, frozen=True, kw_only=True):
    """The service knows the agent now."""

    location: LocationInfo
    lease_s: dict[Lane, Seconds]
    min_agent_version: str
    """An older agent is refused with 426."""
    limits: Limits = Limits()


class Claim(Wire, frozen=True, kw_only=True):
    """Ask for at most as many jobs as there are free slots."""

    claim_id: str
    """Repeated after a broken connection, it gets the same jobs again."""
    slots: dict[Lane, Annotated[int, msgspec.Meta(ge=0)]]
    check_types: tuple[CheckType, ...]
    """What the agent can run now; no other job is handed out."""
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_S)] = MAX_WAIT_S


class ClaimAnswer(Wire, frozen=True, kw_only=True):
    """Jobs, each to be read by itself (`contract.job.Job`)."""

    jobs: tuple[msgspec.Raw, ...] = ()
    next_poll_s: Seconds = 0
    """Wait this long before the next claim."""
    say_hello: bool = False
    """The service does not know this agent (any more): say hello before the next claim."""


class Renew(Wire, frozen=True, kw_only=True):
    """Keep the leases of all running jobs."""

    leases: tuple[Lease, ...]


class RenewAnswer(Wire, frozen=True, kw_only=True):
    """Leases named in neither list hold for another full length."""

    lost: tuple[Lease, ...] = ()
    """Somebody else's now, or done: stop the run, send nothing."""
    cancel: tuple[Lease, ...] = ()
    """The run is not wanted any more: stop it and release it."""


class ReleaseReason(StrEnum):
    """Why a job is given back without a result."""

    DRAINING = "draining"
    AGENT_ERROR = "agent_error"
    NO_ROOM = "no_room"
    MALFORMED = "malformed"
    UNSUPPORTED = "unsupported"
    CANCELLED = "cancelled"


class Released(Wire, frozen=True, kw_only=True):
    """A job that is given back."""

    job_id: str
    fence: int
    reason: ReleaseReason
    message: str = ""
    """One sentence without secrets, for the operator."""


class Release(Wire, frozen=True, kw_only=True):
    """Give jobs back; each can be claimed by another agent at once."""

    jobs: tuple[Released, ...]


class Submission(Wire, frozen=True, kw_only=True):
    """Results, idempotent on (jobId, fence)."""

    results: Annotated[tuple[Result, ...], msgspec.Meta(max_length=MAX_RESULTS)]


class Rejected(Wire, frozen=True, kw_only=True):
    """A result that the service will never take."""

    job_id: str
    fence: int
    reason: str


class SubmissionAnswer(Wire, frozen=True, kw_only=True):
    """Every result of the submission stands in exactly one list; all of them are settled."""

    accepted: tuple[Lease, ...] = ()
    duplicates: tuple[Lease, ...] = ()
    """Already known, or late: kept as history, counted never."""
    rejected: tuple[Rejected, ...] = ()


class ArtifactStored(Wire, frozen=True, kw_only=True):
    """How much of an artifact the service has; `content-range` says which part was sent."""

    offset: int
    """Bytes so far: where the next part begins."""
    complete: bool
    """The whole file is there, and is what its digest says."""


class Ping(Wire, frozen=True, kw_only=True):
    """A heartbeat ping that a job in the closed network sent to the agent's ping port."""

    ping_id: str
    """Made by the agent, so that a ping relayed twice counts once."""
    token: str
    received_at: datetime
    """By the agent's clock; for the reader only."""
    age_s: Seconds
    """How long ago it came in, when it was relayed: the service subtracts it from its clock."""
    method: str
    source: str = ""
    """Origin or Referer header."""
    user_agent: str = ""


class Pings(Wire, frozen=True, kw_only=True):
    """Pings to relay."""

    pings: tuple[Ping, ...]


class ErrorEvent(Wire, frozen=True, kw_only=True):
    """An error-level event of an agent: the specification's five facts and nothing else."""

    message: str
    stack_trace: str
    agent_version: str
    platform: str
    runtime_version: str


class Events(Wire, frozen=True, kw_only=True):
    """Error-level events; sent only while `EXTERNAL_OBSERVABILITY` is on."""

    events: tuple[ErrorEvent, ...]


class Refusal(Wire, frozen=True, kw_only=True):
    """The one error body of the specification, as an agent reads it."""

    status_code: int
    error: str
    message: str


class StoredBytes(Wire, frozen=True, kw_only=True):
    """Where an upload goes on."""

    offset: int


class RangeRefusal(Refusal, frozen=True, kw_only=True):
    """416: a part of an artifact begins elsewhere than where the stored bytes end."""

    attributes: StoredBytes
