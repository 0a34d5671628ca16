"""A job: one run of one check at one location."""

from datetime import datetime
from enum import StrEnum

import msgspec

from contract.checks import CheckSpec
from contract.wire import Seconds, Wire


class RunSource(StrEnum):
    """What set a run off."""

    SCHEDULER = "SCHEDULER"
    SCHEDULE_NOW = "SCHEDULE_NOW"
    TRIGGER_API = "TRIGGER_API"
    TEST_RECORD = "TEST_RECORD"
    TEST_NO_RECORD = "TEST_NO_RECORD"


class Variable(Wire, frozen=True, kw_only=True):
    """A named value that a run may use; check variables have won over group and account ones."""

    key: str
    value: str
    locked: bool = False
    """Shown only to those who may write."""
    secret: bool = False
    """Never shown to anyone; scrubbed from whatever the agent sends."""


class ClientCertificate(Wire, frozen=True, kw_only=True):
    """A certificate that an HTTP exchange presents to the hosts that it matches."""

    host: str
    """An exact host or a glob such as `*.example.com`; exact wins, then the newest match, which
    is the one that comes first."""
    cert: str
    """PEM."""
    key: str
    """PEM; a secret."""
    ca: str | None = None
    """PEM of a further root. None: the usual roots."""
    passphrase: str | None = None
    """Of the key; a secret. None: the key is not encrypted."""


class Lease(Wire, frozen=True, kw_only=True):
    """The agent's right to run the job, while it renews it."""

    job_id: str
    fence: int
    """Grows with every claim of the job; only the newest one counts."""


class JobHead(Wire, frozen=True, kw_only=True):
    """As much of a job as it takes to give it back when the rest is unreadable."""

    job_id: str
    fence: int


class Job(Wire, frozen=True, kw_only=True):
    """One run to do."""

    job_id: str
    fence: int
    lease_s: Seconds
    """How long the lease holds from the moment of the claim."""
    run_id: str
    """The run that this job belongs to; its attempts share it."""
    check_id: str
    check_name: str
    account_id: str | None = None
    """Whose check it is. None: a service that does not say."""
    location: str
    """Slug of the private location."""
    run_source: RunSource = RunSource.SCHEDULER
    attempt: int = 1
    """From 1; grows with the user's retries, never with redeliveries."""
    scheduled_for: datetime
    """When the run was due, by the service's clock. For the reader only."""
    lag_s: Seconds = 0
    """How long after it was due the job was handed out."""
    deadline_s: Seconds
    """The longest that the run may take."""
    spec: CheckSpec
    variables: tuple[Variable, ...] = ()
    client_certificates: tuple[ClientCertificate, ...] = ()
    proxy_url: str | None = None
    """The location's proxy for what URL and API checks send; may hold credentials. None: direct."""

    @property
    def lease(self) -> Lease:
        """The lease under which the job runs."""
        return Lease(job_id=self.job_id, fence=self.fence)


RawJob = msgspec.Raw
"""A job that has not been read yet, so that one malformed job cannot spoil its batch."""
