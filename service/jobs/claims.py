"""Assigns jobs to the agents that claim them, and encodes the jobs for them.

Variables and client certificates are decrypted here and exist in clear in the answer only.
Most jobs need neither, and those cost no more than the test whether they do.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple

import msgspec
import structlog
from sqlalchemy import Connection

from contract.checks import HTTP_TYPES, CheckType, HeartbeatSpec, Lane, PlaywrightSpec
from contract.job import TEST_SOURCES
from contract.wire import Seconds, Wire, decode, encode
from service.agents import actions as agents
from service.certificates import secrets as certificates
from service.checks.secrets import decrypt_spec, is_encrypted
from service.clock import NO_GAP, Gap
from service.jobs.engines import queue_of
from service.jobs.model import LEASE_MS, Claimant, JobPlace, JobState, ReadyJob
from service.jobs.queue import Assignment, JobQueue, ReadyQuery
from service.jobs.ready_floors import ReadyFloors
from service.jobs.settle import end_unreadable
from service.jobs.unrelayed_pings import RECHECK_MS, PingGate, PingReports
from service.locations.secrets import decrypt_proxy
from service.sessions.announcements import announce_started
from service.variables import secrets as variables
from service.variables.model import Owner
from service.variables.secrets import RunVariables
from service.vault.encryption import DecryptionError, Vault

_MOST_AT_ONCE: Final = 1_000
"""How many jobs a query reads at most, so that other changes get their turn."""


@dataclass(frozen=True, slots=True)
class AssignedJobs:
    """The outcome of one round of assigning."""

    jobs: Sequence[Sequence[bytes]]
    """The jobs of each claimant as JSON, in the claimants' order."""
    next_due_ms: int | None
    """When another round makes sense. None: not before a new job is queued."""
    now_ms: int
    has_held_back: bool = False
    """Jobs wait for another agent than the one that gave them back."""
    pings_needed_ms: int = 0
    """Up to when agents have to have relayed pings for the heartbeats that wait. 0: none waits."""


@dataclass(frozen=True, slots=True)
class ClaimScope:
    """The location of a round, and what decrypts its jobs' secrets."""

    location_id: str
    vault: Vault
    reports: PingReports = field(default_factory=PingReports)
    floors: ReadyFloors = field(default_factory=ReadyFloors)
    gap: Gap = NO_GAP
    """The service's last one."""


def assign_jobs(
    connection: Connection, scope: ClaimScope, claimants: Sequence[Claimant], *, now_ms: int
) -> AssignedJobs:
    """Assign the jobs that are ready, first come, first served.

    Claimants that run the same check types are served together, by one query per lane.
    """
    queue = queue_of(connection)
    pings = PingGate(
        partial(agents.presence_at, connection, scope.location_id),
        scope.reports,
        gap=scope.gap,
        now_ms=now_ms,
    )
    assigner = _Assigner(connection, queue, scope, pings, now_ms)
    assigned = assigner.find_repeated(claimants)
    alike: dict[frozenset[CheckType], list[int]] = defaultdict(list)
    for place, one in enumerate(claimants):
        if not assigned[place]:
            alike[one.check_types].append(place)
    more = False
    for check_types, places in alike.items():
        for lane in Lane:
            more |= assigner.serve(lane, check_types, [(claimants[p], assigned[p]) for p in places])
    next_due_ms: int | None = None
    jobs = assigner.encode(assigned)
    if more or any(map(_is_cut, jobs, assigned)):
        next_due_ms = now_ms
    elif not all(assigned):
        next_due_ms = queue.next_due_ms(connection, scope.location_id, now_ms=now_ms)
    held_back_ms = min(assigner.held_back_until_ms, default=None)
    recheck_ms = now_ms + RECHECK_MS if pings.needed_ms else None
    times = (time for time in (next_due_ms, held_back_ms, recheck_ms) if time is not None)
    return AssignedJobs(
        jobs,
        min(times, default=None),
        now_ms,
        has_held_back=held_back_ms is not None,
        pings_needed_ms=pings.needed_ms,
    )


def _is_cut(encoded: Sequence[bytes], assigned: Sequence[ReadyJob]) -> bool:
    """Whether some runs ended as unreadable, so that there may be other jobs for the claim."""
    return len(encoded) < len(assigned)


@dataclass(frozen=True, slots=True)
class _Assigner:
    connection: Connection
    queue: JobQueue
    scope: ClaimScope
    pings: PingGate
    now_ms: int
    held_back_until_ms: list[int] = field(default_factory=list)
    """Until when each job that no claim got waits for an agent that has not given it back."""

    def find_repeated(self, claimants: Sequence[Claimant]) -> list[list[ReadyJob]]:
        """The jobs that repeated claims got before their answers were lost, with renewed leases."""
        repeated = [one.claim_id for one in claimants if one.repeated]
        if not repeated:
            return [[] for _ in claimants]
        found = self.queue.find_assigned(self.connection, self.location_id, repeated)
        leases = [(job.id, job.fence + 1) for jobs in found.values() for job in jobs]
        self.queue.renew(self.connection, self.location_id, leases, now_ms=self.now_ms)
        return [found.get(one.claim_id, []) for one in claimants]

    def serve(
        self,
        lane: Lane,
        check_types: frozenset[CheckType],
        claims: Iterable[tuple[Claimant, list[ReadyJob]]],
    ) -> bool:
        """Assign one lane's ready jobs. True: the query's limit may have left some behind."""
        capacity = [(who, jobs, who.slots.get(lane, 0)) for who, jobs in claims]
        wanted = sum(slots for _, _, slots in capacity)
        if not wanted or not check_types:
            return False
        limit = min(wanted, _MOST_AT_ONCE)
        query = ReadyQuery(self.location_id, lane, check_types, limit, self.scope.floors)
        ready = self._find_ready(query)
        left = deque(ready)
        assignments: list[Assignment] = []
        for who, jobs, slots in capacity:
            for job in self._take(left, who, slots):
                jobs.append(job)
                assignments.append(self._assignment(job, who))
        self.held_back_until_ms.extend(
            until_ms
            for job in left
            if job.returned_by is not None
            for who, _, _ in capacity
            if (until_ms := job.held_back_until_ms(who.agent_id)) > self.now_ms
        )
        self.queue.assign(self.connection, assignments)
        self._announce_tests([job.id for job in ready if job.source in TEST_SOURCES])
        return len(ready) >= limit < wanted

    def _announce_tests(self, job_ids: Sequence[int]) -> None:
        """Tell those who follow tests which of these jobs run now."""
        held = self.queue.find_held(self.connection, job_ids).values() if job_ids else ()
        announce_started(
            self.connection,
            [job.session_id for job in held if job.session_id and job.state == JobState.LEASED],
        )

    def _find_ready(self, query: ReadyQuery) -> list[ReadyJob]:
        """Find as many ready jobs as are asked for, besides those that may be held back.

        Heartbeats that wait for pings are left out; they hide other heartbeats at most.
        """
        found = self._find(query)
        ready = [job for job in found if not self.pings.holds_back(job)]
        if len(ready) == len(found):
            return found
        others = query._replace(check_types=query.check_types - {CheckType.HEARTBEAT})
        heartbeats = [job for job in ready if job.check_type == CheckType.HEARTBEAT]
        return heartbeats + (self._find(others) if others.check_types else [])

    def _find(self, query: ReadyQuery) -> list[ReadyJob]:
        limit = query.limit
        while True:
            asked = query._replace(limit=limit)
            ready = self.queue.find_ready(self.connection, asked, now_ms=self.now_ms)
            enough = query.limit + sum(job.returned_by is not None for job in ready)
            if len(ready) < limit or limit >= enough:
                return ready
            limit = enough

    def _take(self, left: deque[ReadyJob], who: Claimant, slots: int) -> Iterator[ReadyJob]:
        """The next jobs for a claim; those that its agent gave back stay for others a while."""
        held_back: list[ReadyJob] = []
        while left and slots:
            job = left.popleft()
            if job.returned_by and job.held_back_until_ms(who.agent_id) > self.now_ms:
                held_back.append(job)
                continue
            slots -= 1
            yield job
        left.extendleft(reversed(held_back))

    def encode(self, assigned: Sequence[Sequence[ReadyJob]]) -> list[list[bytes]]:
        """The assigned jobs as JSON, as agents read them."""
        if not any(assigned):
            return [[] for _ in assigned]
        place, assigned = self._decrypt_all(
            self.queue.load_place(self.connection, self.location_id), assigned
        )
        write = partial(encode_job, place=place, now_ms=self.now_ms)
        with_secrets = [job for jobs in assigned for job in jobs if may_need_secrets(job, place)]
        if not with_secrets:
            return [[write(job) for job in jobs] for jobs in assigned]
        given = load_job_secrets(self.connection, self.scope.vault, place, with_secrets)
        return [[write(job, secrets=given.get(job.id)) for job in jobs] for jobs in assigned]

    @property
    def location_id(self) -> str:
        """The location of the round."""
        return self.scope.location_id

    def _decrypt_all(
        self, place: JobPlace, assigned: Sequence[Sequence[ReadyJob]]
    ) -> tuple[JobPlace, Sequence[Sequence[ReadyJob]]]:
        """Decrypt place and specs; runs whose secrets cannot be decrypted end here."""
        if place.sealed_proxy_url is None and all(map(are_decrypted, assigned)):
            return place, assigned
        vault = self.scope.vault
        whole = decrypt_place(place, self.location_id, vault)
        possible = assigned if whole else [drop_proxied(jobs) for jobs in assigned]
        found = [decrypt_jobs(jobs, place.account_id, vault) for jobs in possible]
        kept = {job.id for jobs in found for job in jobs}
        lost = [job.id for jobs in assigned for job in jobs if job.id not in kept]
        end_unreadable(self.connection, lost, now_ms=self.now_ms)
        return whole or place, found

    def _assignment(self, job: ReadyJob, who: Claimant) -> Assignment:
        lease_ms = LEASE_MS[Lane(job.lane)]
        return Assignment(job.id, who.agent_id, who.claim_id, self.now_ms, self.now_ms + lease_ms)


_MAIN: Final = Lane.MAIN.value
_PLACE: Final = re.compile(rb"\{\{([^{}]+)\}\}")
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")


class JobSecrets(NamedTuple):
    """Secrets of one job as JSON, which goes into the job as it is. Unset: it has none."""

    variables: msgspec.Raw | msgspec.UnsetType
    client_certificates: msgspec.Raw | msgspec.UnsetType


def may_need_secrets(job: ReadyJob, place: JobPlace) -> bool:
    """Whether the job may have secrets; answered in 0.1 µs, without SQL."""
    return job.lane == _MAIN or b"{{" in job.spec or place.has_certificates


def load_job_secrets(
    connection: Connection, vault: Vault, place: JobPlace, jobs: Iterable[ReadyJob]
) -> Mapping[int, JobSecrets]:
    """The secrets of these jobs by job id; jobs without any are left out."""
    users = [job for job in jobs if job.lane == _MAIN or job.check_type in HTTP_TYPES]
    if not users:
        return {}
    with_variables = [job for job in users if job.lane == _MAIN or b"{{" in job.spec]
    presented = (
        _load_certificates(connection, vault, place) if place.has_certificates else msgspec.UNSET
    )
    filled = _load_variables(connection, vault, place, with_variables)
    return {job.id: JobSecrets(filled.get(job.id, msgspec.UNSET), presented) for job in users}


def _load_certificates(connection: Connection, vault: Vault, place: JobPlace) -> msgspec.Raw:
    """The account's client certificates, loaded once for all jobs of a round."""
    found = certificates.certificates_for_jobs(connection, vault, place.account_id)
    return msgspec.Raw(msgspec.json.encode(found))


def _load_variables(
    connection: Connection, vault: Vault, place: JobPlace, jobs: Sequence[ReadyJob]
) -> dict[int, msgspec.Raw]:
    if not jobs:
        return {}
    owners = {owner for job in jobs for owner in _owners(job, place)[1:]}
    found = variables.variables_for_jobs(connection, vault, place.account_id, owners=owners)
    return {job.id: msgspec.Raw(_encode_variables(job, place, found)) for job in jobs}


def _encode_variables(job: ReadyJob, place: JobPlace, found: RunVariables) -> bytes:
    """The variables of a job: all of them for scripts, those that it names for a request."""
    names = None if job.lane == _MAIN else _find_names(job.spec)
    return msgspec.json.encode(found.of(_owners(job, place), names=names))


def _owners(job: ReadyJob, place: JobPlace) -> tuple[Owner, ...]:
    """Account, group if any, check; variables of later ones override earlier ones."""
    account, check = Owner.account(place.account_id), Owner.check(place.account_id, job.check_id)
    if job.group_id is None:
        return account, check
    return account, Owner.group(place.account_id, job.group_id), check


def _find_names(spec: bytes) -> frozenset[str]:
    """Every word inside `{{…}}` of the spec: names of variables, and arguments of helpers."""
    places = (place.decode() for place in _PLACE.findall(spec))
    return frozenset(word for place in places for word in _WORD.findall(place))


_DEADLINE_S: Final = {Lane.UPTIME: 30, Lane.MAIN: 240}
_SUITE_DEADLINE_S: Final = 1_800


class _JobOut(Wire, frozen=True, kw_only=True):
    """`contract.job.Job`, written without reading its spec first."""

    job_id: str
    fence: int
    lease_s: Seconds
    run_id: str
    check_id: str
    check_name: str
    account_id: str
    location: str
    run_source: str
    attempt: int
    scheduled_for: datetime
    lag_s: Seconds
    deadline_s: Seconds
    spec: msgspec.Raw
    proxy_url: str | None
    """None: direct."""


class _JobWithSecretsOut(_JobOut, frozen=True, kw_only=True):
    """A job with secrets, apart because these two fields would cost every other job 2 %."""

    variables: msgspec.Raw | msgspec.UnsetType
    client_certificates: msgspec.Raw | msgspec.UnsetType


def encode_job(
    job: ReadyJob, *, place: JobPlace, now_ms: int, secrets: JobSecrets | None = None
) -> bytes:
    """A job that was just assigned, as JSON. Without `secrets` it has none."""
    bare = _job(job, place, now_ms=now_ms)
    if secrets is None:
        return encode(bare)
    return encode(_JobWithSecretsOut(**msgspec.structs.asdict(bare), **secrets._asdict()))


def _job(job: ReadyJob, place: JobPlace, *, now_ms: int) -> _JobOut:
    lane = Lane(job.lane)
    return _JobOut(
        job_id=str(job.id),
        fence=job.fence + 1,
        lease_s=LEASE_MS[lane] / 1000,
        run_id=str(job.id),
        check_id=job.check_id,
        check_name=job.check_name,
        account_id=place.account_id,
        location=place.slug,
        run_source=job.source,
        attempt=job.attempt,
        scheduled_for=datetime.fromtimestamp(job.scheduled_ms / 1000, UTC),
        lag_s=max(0, now_ms - job.due_ms) / 1000,
        deadline_s=(
            _SUITE_DEADLINE_S if job.check_type == CheckType.PLAYWRIGHT else _DEADLINE_S[lane]
        ),
        spec=msgspec.Raw(_spec(job, now_ms=now_ms)),
        proxy_url=place.proxy_url,
    )


def _spec(job: ReadyJob, *, now_ms: int) -> bytes:
    """The spec as it is stored, with what only the run knows.

    A heartbeat gets how long it has been silent, a suite whether to install its packages anew.
    """
    if job.refresh_cache:
        suite = decode(job.spec, PlaywrightSpec)
        return encode(msgspec.structs.replace(suite, refresh_cache=True))
    if job.check_type != CheckType.HEARTBEAT or job.last_ping_ms is None:
        return job.spec
    silent_for_s = max(0, now_ms - job.last_ping_ms) / 1000
    spec = decode(job.spec, HeartbeatSpec)
    return encode(msgspec.structs.replace(spec, silent_for_s=silent_for_s))


log = structlog.get_logger()


def decrypt_place(place: JobPlace, location_id: str, vault: Vault) -> JobPlace | None:
    """The place with its whole proxy URL. None: it cannot be decrypted; nothing may bypass it."""
    named = {"account_id": place.account_id, "location_id": location_id}
    try:
        whole = decrypt_proxy(place.proxy_url, place.sealed_proxy_url, vault, **named)
    except DecryptionError as problem:
        log.exception("locations.unreadable", location_id=location_id, reason=str(problem))
        return None
    return place._replace(proxy_url=whole, sealed_proxy_url=None)


def drop_proxied(jobs: Iterable[ReadyJob]) -> list[ReadyJob]:
    """The jobs that need no proxy."""
    return [job for job in jobs if job.check_type not in HTTP_TYPES]


def are_decrypted(jobs: Iterable[ReadyJob]) -> bool:
    """Whether no spec is encrypted; answered in 0.07 µs a job."""
    return not any(is_encrypted(job.spec) for job in jobs)


def decrypt_jobs(jobs: Iterable[ReadyJob], account_id: str, vault: Vault) -> list[ReadyJob]:
    """The jobs with decrypted specs; one that cannot be decrypted is left out."""
    found = (_decrypt(job, account_id, vault) for job in jobs)
    return [job for job in found if job is not None]


def _decrypt(job: ReadyJob, account_id: str, vault: Vault) -> ReadyJob | None:
    try:
        spec = decrypt_spec(job.spec, vault, account_id=account_id, check_id=job.check_id)
    except DecryptionError as problem:
        log.exception("checks.unreadable", check_id=job.check_id, reason=str(problem))
        return None
    return job._replace(spec=spec)
