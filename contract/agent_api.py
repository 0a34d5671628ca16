"""The messages of agent and service under `/agent/v1`, and their paths."""

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
"""The path continues with `/{jobId}/{name}`; for a file that goes straight to the store, with
`/link` or `/stored` after that."""
BUNDLES: Final = f"{PREFIX}/bundles"
"""The path continues with `/{sha256}`."""
PINGS: Final = f"{PREFIX}/pings"
EVENTS: Final = f"{PREFIX}/events"

AGENT_ID_HEADER: Final = "x-agent-id"
"""The agent's id, which is new at each start of the process; every request carries it."""
ARTIFACT_DIGEST_HEADER: Final = "x-content-sha256"
"""The SHA-256 of the whole file in hexadecimal.

The part that completes the file must carry it; any other part may."""
ARTIFACT_SIZE_HEADER: Final = "x-content-size"
"""The size of the whole file in bytes, where the request does not carry it."""
LINKS_HEADER: Final = "x-takes-links"
"""Whoever asks for a bundle with this header may be sent to a link (307) that needs no key."""
ARTIFACT_FENCE_HEADER: Final = "x-fence"
"""The fence of the claim under which the file was made; every part must carry it.

The service refuses a part whose fence is older than the job's newest one."""
ARTIFACT_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
"""A valid name of an artifact; the service reserves the ending `.part`."""
USER_AGENT_PREFIX: Final = "picket-agent/"
"""The start of the agent's User-Agent header; its version follows."""

_FIGURES: Final = re.compile(r"\d+(?:\.\d+)?")

MAX_WAIT_S: Final = 30
"""How long a claim may wait for jobs at most."""
MAX_RESULTS: Final = 256
MAX_RESULTS_BYTES: Final = 8 * 1024 * 1024
MAX_ARTIFACT_BYTES: Final = 150 * 1024 * 1024
GZIP_ABOVE_BYTES: Final = 4096
"""The size above which a body may be sent with `content-encoding: gzip`."""


def name_checks(kind: CheckType, *, with_scripts: bool) -> str:
    """Return what messages call the checks of a type, or those of them with scripts."""
    return f"{kind} checks{' with scripts' if with_scripts else ''}"


class UnavailableType(Wire, frozen=True, kw_only=True):
    """A check type that an agent knows and cannot run on its machine."""

    type: CheckType
    cause: str
    """Why the checks cannot run: one sentence without a full stop."""
    remedy: str
    """How to fix it: one sentence without a full stop."""
    only_with_scripts: bool = False
    """Whether only checks with setup or teardown scripts are affected."""

    @property
    def what(self) -> str:
        """Which checks cannot run."""
        return name_checks(self.type, with_scripts=self.only_with_scripts)

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the problem; numbers in it, such as the machine's load, do not count."""
        cause, remedy = (_FIGURES.sub("0", text) for text in (self.cause, self.remedy))
        return self.what, cause, remedy

    @property
    def sentence(self) -> str:
        """The sentence that logs, `picket doctor`, `picket up` and the API show."""
        return f"{self.what} cannot run here: {self.cause}; {self.remedy}."


class Hello(Wire, frozen=True, kw_only=True):
    """An agent introduces itself: at start, on reconnect, when its capabilities change."""

    agent_id: str
    version: str
    platform: str
    """Operating system and architecture, such as linux-x86_64."""
    runtimes: dict[str, str] = {}
    """Versions by name: `python`, each script runtime's Node by the runtime's id, and `chromium`;
    the latter two only where they are installed."""
    check_types: tuple[CheckType, ...]
    """The types that the agent can run, by its self-test."""
    unavailable: tuple[UnavailableType, ...] = ()
    """The types that it cannot run; a type in neither list has not been tested yet."""
    slots: dict[Lane, int]
    """How many jobs it runs at once, per lane."""


class LocationInfo(Wire, frozen=True, kw_only=True):
    """The private location that the key belongs to."""

    id: str
    slug_name: str
    proxy_url: str | None = None
    """The proxy for requests of URL and API checks, its credentials masked as `*********` (jobs
    carry the real ones). None: direct connections."""


class Limits(Wire, frozen=True, kw_only=True):
    """How much the service accepts in one request."""

    results: int = MAX_RESULTS
    results_bytes: int = MAX_RESULTS_BYTES
    artifact_bytes: int = MAX_ARTIFACT_BYTES


class HelloAnswer(Wire, frozen=True, kw_only=True):
    """The service's answer to a hello; it knows the agent from now on."""

    location: LocationInfo
    lease_s: dict[Lane, Seconds]
    min_agent_version: str
    """The oldest version that the service accepts; it answers older agents with 426."""
    limits: Limits = Limits()


class Claim(Wire, frozen=True, kw_only=True):
    """Ask for at most as many jobs as there are free slots."""

    claim_id: str
    """The id of this claim: repeating it after a broken connection returns the same jobs."""
    slots: dict[Lane, Annotated[int, msgspec.Meta(ge=0)]]
    check_types: tuple[CheckType, ...]
    """The types that the agent can run now; it gets jobs of no other type."""
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_S)] = MAX_WAIT_S
    oldest_ping_s: Seconds | None = None
    """The age of the oldest heartbeat ping that the agent has not relayed yet. None: none waits."""


class ClaimAnswer(Wire, frozen=True, kw_only=True):
    """The claimed jobs; each is decoded on its own (`contract.job.Job`)."""

    jobs: tuple[msgspec.Raw, ...] = ()
    next_poll_s: Seconds = 0
    """How long the agent must wait before its next claim."""
    say_hello: bool = False
    """Whether the service does not know the agent, which must say hello before its next claim."""


class Renew(Wire, frozen=True, kw_only=True):
    """Renew the leases of all running jobs."""

    leases: tuple[Lease, ...]
    is_complete: bool = False
    """Whether these are all leases that the agent knows of, and no result of it is on its way; the
    service takes back jobs that two complete renewals leave out."""


class RenewAnswer(Wire, frozen=True, kw_only=True):
    """The leases that could not be renewed; all others hold for another full term."""

    lost: tuple[Lease, ...] = ()
    """Leases that another agent holds now, or whose job is done: stop the run, send no result."""
    cancel: tuple[Lease, ...] = ()
    """Leases of cancelled runs: stop the run and release the job."""


class ReleaseReason(StrEnum):
    """Why a job is given back without a result."""

    DRAINING = "draining"
    AGENT_ERROR = "agent_error"
    NO_ROOM = "no_room"
    MALFORMED = "malformed"
    UNSUPPORTED = "unsupported"
    CANCELLED = "cancelled"
    UNCONFIRMED = "unconfirmed"
    """The agent could not learn whether its lease still holds, and did not begin."""


class Released(Wire, frozen=True, kw_only=True):
    """A job that is given back."""

    job_id: str
    fence: int
    reason: ReleaseReason
    message: str = ""
    """One sentence without secrets, for the operator."""


class Release(Wire, frozen=True, kw_only=True):
    """Give jobs back; another agent can claim them at once."""

    jobs: tuple[Released, ...]


class Submission(Wire, frozen=True, kw_only=True):
    """Results, idempotent on (jobId, fence)."""

    results: Annotated[tuple[Result, ...], msgspec.Meta(max_length=MAX_RESULTS)]


class Rejected(Wire, frozen=True, kw_only=True):
    """A result that the service will never accept."""

    job_id: str
    fence: int
    reason: str


class SubmissionAnswer(Wire, frozen=True, kw_only=True):
    """What became of each result; each stands in exactly one list and need not be sent again."""

    accepted: tuple[Lease, ...] = ()
    duplicates: tuple[Lease, ...] = ()
    """Results that are known already, or late; they are kept as history and do not count."""
    rejected: tuple[Rejected, ...] = ()


class ArtifactStored(Wire, frozen=True, kw_only=True):
    """How much of an artifact is stored; `Content-Range` of the request says which part it sent."""

    offset: int
    """How many bytes are stored, which is where the next part begins."""
    complete: bool
    """Whether the whole file is stored and matches its digest."""


class ArtifactLink(Wire, frozen=True, kw_only=True):
    """Where an agent can put a file itself, for a short while and without its key."""

    url: str | None = None
    """A link that takes a PUT of the whole file. None: the file goes to the service."""
    headers: dict[str, str] = {}
    """The headers that the request needs beside its length."""


class Ping(Wire, frozen=True, kw_only=True):
    """A heartbeat ping that a job in the closed network sent to the agent's ping port."""

    ping_id: str
    """An id that the agent makes, so that a ping relayed twice counts once."""
    token: str
    received_at: datetime
    """When it came in by the agent's clock; for display only."""
    age_s: Seconds
    """The ping's age when it was relayed; the service subtracts it from its own clock."""
    method: str
    source: str = ""
    """The Origin or Referer header of the ping."""
    user_agent: str = ""


class Pings(Wire, frozen=True, kw_only=True):
    """Pings that an agent relays."""

    pings: tuple[Ping, ...]


class ErrorEvent(Wire, frozen=True, kw_only=True):
    """An error-level event of an agent: these five fields and nothing else."""

    message: str
    stack_trace: str
    agent_version: str
    platform: str
    runtime_version: str


class Events(Wire, frozen=True, kw_only=True):
    """Error-level events of an agent; it sends them only while `EXTERNAL_OBSERVABILITY` is on."""

    events: tuple[ErrorEvent, ...]


class Refusal(Wire, frozen=True, kw_only=True):
    """The body of every error response, as an agent reads it."""

    status_code: int
    error: str
    message: str


class StoredBytes(Wire, frozen=True, kw_only=True):
    """Where an upload continues."""

    offset: int


class RangeRefusal(Refusal, frozen=True, kw_only=True):
    """The body of a 416: a part of an artifact does not begin where the stored bytes end."""

    attributes: StoredBytes
