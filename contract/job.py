"""A job: one run of one check at one location."""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from contract.checks import CheckSpec
from contract.wire import Seconds, Wire


class RunSource(StrEnum):
    """What started a run."""

    SCHEDULER = "SCHEDULER"
    SCHEDULE_NOW = "SCHEDULE_NOW"
    TRIGGER_API = "TRIGGER_API"
    TEST_RECORD = "TEST_RECORD"
    TEST_NO_RECORD = "TEST_NO_RECORD"


TEST_SOURCES: Final = frozenset({RunSource.TEST_RECORD, RunSource.TEST_NO_RECORD})
"""Sources of runs that alert nobody and count nowhere."""


class Variable(Wire, frozen=True, kw_only=True):
    """A variable of a run; check variables have already overridden those of group and account."""

    key: str
    value: str
    locked: bool = False
    """Whether the value is shown only to people who may edit it."""
    secret: bool = False
    """Whether the value is shown to nobody, and redacted from all that the agent sends."""


class ClientCertificate(Wire, frozen=True, kw_only=True):
    """A client certificate, presented to the hosts that it matches."""

    host: str
    """A host name or a glob such as `*.example.com`. An exact match wins, then the newest match,
    which is the first in the list."""
    cert: str
    """The certificate in PEM."""
    key: str
    """The private key in PEM; a secret."""
    ca: str | None = None
    """An additional root certificate in PEM. None: the usual roots only."""
    passphrase: str | None = None
    """The passphrase of the private key; a secret. None: the key is not encrypted."""


class Lease(Wire, frozen=True, kw_only=True):
    """An agent's right to run a job, as long as it renews it."""

    job_id: str
    fence: int
    """A number that grows with every claim of the job; only the newest one is valid."""


class JobHead(Wire, frozen=True, kw_only=True):
    """The fields of a job that are needed to release it when the rest cannot be decoded."""

    job_id: str
    fence: int


class Job(Wire, frozen=True, kw_only=True):
    """A run that an agent has to do."""

    job_id: str
    fence: int
    lease_s: Seconds
    """How long the lease is valid, from the claim on."""
    run_id: str
    """The run that this job belongs to; its attempts share it."""
    check_id: str
    check_name: str
    account_id: str | None = None
    """The account that owns the check. None: the service did not send it."""
    location: str
    """The slug of the private location."""
    run_source: RunSource = RunSource.SCHEDULER
    attempt: int = 1
    """The attempt's number, from 1; only retries increase it, redeliveries do not."""
    scheduled_for: datetime
    """When the run was due by the service's clock; for display only."""
    lag_s: Seconds = 0
    """How late the job was assigned, counted from when it was due."""
    deadline_s: Seconds
    """How long the run may take at most."""
    spec: CheckSpec
    variables: tuple[Variable, ...] = ()
    client_certificates: tuple[ClientCertificate, ...] = ()
    proxy_url: str | None = None
    """The location's proxy for requests of URL and API checks, perhaps with credentials. None:
    direct connections."""

    @property
    def lease(self) -> Lease:
        """The lease under which the job runs."""
        return Lease(job_id=self.job_id, fence=self.fence)


RawJob = msgspec.Raw
"""A job that is not decoded yet, so that a malformed one does not break its batch."""
