"""Gives waiting jobs to the agents that claim them.

What jobs carry beside their spec: variables and client certificates, opened as they are dealt.

They are part of the answer alone. Most jobs need none of it, and those cost no more than a look.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import structlog
from sqlalchemy import Connection

from contract.checks import HTTP_TYPES, CheckType, HeartbeatSpec, Lane, PlaywrightSpec
from contract.wire import Seconds, Wire, decode, encode
from service.certificates import secrets as certificates
from service.checks.secrets import decrypt_spec, is_encrypted
from service.jobs.engines import queue_of
from service.jobs.model import LEASE_MS, Claimant, JobPlace, ReadyJob
from service.jobs.queue import Deal, JobQueue, ReadyQuery
from service.jobs.settle import end_unreadable
from service.locations.secrets import decrypt_proxy
from service.variables import secrets as variables
from service.variables.model import Owner
from service.variables.secrets import RunVariables
from service.vault.encryption import DecryptionError, Vault

_MOST_AT_ONCE: Final = 1_000
"""Jobs per query, so that other changes get their turn."""


@dataclass(frozen=True, slots=True)
class AssignedJobs:
    """What became of a round of dealing."""

    jobs: Sequence[Sequence[bytes]]
    """Per claimant, in their order; each job as JSON."""
    next_due_ms: int | None
    """When another round makes sense without a new job. None: then only."""
    now_ms: int


@dataclass(frozen=True, slots=True)
class ClaimScope:
    """Where a round is dealt, and what opens what jobs carry."""

    location_id: str
    vault: Vault


def assign_jobs(
    connection: Connection, table: ClaimScope, claimants: Sequence[Claimant], *, now_ms: int
) -> AssignedJobs:
    """Deal what is ready, first come, first served.

    Claimants that run the same check types are served together, by one query per lane.
    """
    queue = queue_of(connection)
    dealer = _Assigner(connection, queue, table, now_ms)
    hands = dealer.dealt_before(claimants)
    alike: dict[frozenset[CheckType], list[int]] = defaultdict(list)
    for place, one in enumerate(claimants):
        if not hands[place]:
            alike[one.check_types].append(place)
    more = False
    for check_types, places in alike.items():
        for lane in Lane:
            more |= dealer.serve(lane, check_types, [(claimants[p], hands[p]) for p in places])
    next_due_ms: int | None = None
    jobs = dealer.rendered(hands)
    if more or any(map(_is_cut, jobs, hands)):
        next_due_ms = now_ms
    elif not all(hands):
        next_due_ms = queue.next_due_ms(connection, table.location_id, now_ms=now_ms)
    return AssignedJobs(jobs, next_due_ms, now_ms)


def _is_cut(jobs: Sequence[bytes], hand: Sequence[ReadyJob]) -> bool:
    """Runs of a hand have ended here, so that there may be others for it."""
    return len(jobs) < len(hand)


@dataclass(frozen=True, slots=True)
class _Assigner:
    connection: Connection
    queue: JobQueue
    table: ClaimScope
    now_ms: int

    def dealt_before(self, claimants: Sequence[Claimant]) -> list[list[ReadyJob]]:
        """What the same claims were dealt before answers were lost; those leases begin anew."""
        repeated = [one.claim_id for one in claimants if one.repeated]
        if not repeated:
            return [[] for _ in claimants]
        dealt = self.queue.dealt(self.connection, self.location_id, repeated)
        leases = [(job.id, job.fence + 1) for jobs in dealt.values() for job in jobs]
        self.queue.renew(self.connection, self.location_id, leases, now_ms=self.now_ms)
        return [dealt.get(one.claim_id, []) for one in claimants]

    def serve(
        self,
        lane: Lane,
        check_types: frozenset[CheckType],
        wanting: Iterable[tuple[Claimant, list[ReadyJob]]],
    ) -> bool:
        """Deal one lane's ready jobs into hands. True: the query's limit left some behind."""
        seats = [(who, hand, who.slots.get(lane, 0)) for who, hand in wanting]
        wanted = sum(slots for _, _, slots in seats)
        if not wanted or not check_types:
            return False
        limit = min(wanted, _MOST_AT_ONCE)
        query = ReadyQuery(self.location_id, lane, check_types, limit)
        ready = self.queue.ready(self.connection, query, now_ms=self.now_ms)
        jobs = iter(ready)
        deals: list[Deal] = []
        for who, hand, slots in seats:
            for job in islice(jobs, slots):
                hand.append(job)
                deals.append(self._deal(job, who))
        self.queue.deal(self.connection, deals)
        return len(ready) == limit < wanted

    def rendered(self, hands: Sequence[Sequence[ReadyJob]]) -> list[list[bytes]]:
        """What was dealt, as agents read it."""
        if not any(hands):
            return [[] for _ in hands]
        place, hands = self._opened(self.queue.place(self.connection, self.location_id), hands)
        write = partial(encode_job, place=place, now_ms=self.now_ms)
        laden = [job for hand in hands for job in hand if may_carry(job, place)]
        if not laden:
            return [[write(job) for job in hand] for hand in hands]
        given = enclosures(self.connection, self.table.vault, place, laden)
        return [[write(job, enclosed=given.get(job.id)) for job in hand] for hand in hands]

    @property
    def location_id(self) -> str:
        """Where it is dealt."""
        return self.table.location_id

    def _opened(
        self, place: JobPlace, hands: Sequence[Sequence[ReadyJob]]
    ) -> tuple[JobPlace, Sequence[Sequence[ReadyJob]]]:
        """With what is sealed of them opened; runs of which it does not open end here."""
        if place.sealed_proxy_url is None and all(map(are_open, hands)):
            return place, hands
        vault = self.table.vault
        whole = decrypt_place(place, self.location_id, vault)
        possible = hands if whole else [past_proxy(hand) for hand in hands]
        found = [decrypt_jobs(hand, place.account_id, vault) for hand in possible]
        kept = {job.id for hand in found for job in hand}
        lost = [job.id for hand in hands for job in hand if job.id not in kept]
        end_unreadable(self.connection, lost, now_ms=self.now_ms)
        return whole or place, found

    def _deal(self, job: ReadyJob, who: Claimant) -> Deal:
        lease_ms = LEASE_MS[Lane(job.lane)]
        return Deal(job.id, who.agent_id, who.claim_id, self.now_ms, self.now_ms + lease_ms)


_MAIN: Final = Lane.MAIN.value
_PLACE: Final = re.compile(rb"\{\{([^{}]+)\}\}")
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")


class JobSecrets(NamedTuple):
    """JSON, to be put into a job as it is. Unset: nothing."""

    variables: msgspec.Raw | msgspec.UnsetType
    client_certificates: msgspec.Raw | msgspec.UnsetType


def may_carry(job: ReadyJob, place: JobPlace) -> bool:
    """Whether it is worth to look for what the job carries; said in 0.1 µs."""
    return job.lane == _MAIN or b"{{" in job.spec or place.presents


def enclosures(
    connection: Connection, vault: Vault, place: JobPlace, jobs: Iterable[ReadyJob]
) -> Mapping[int, JobSecrets]:
    """What these jobs carry, by their ids; one that carries nothing is left out."""
    users = [job for job in jobs if job.lane == _MAIN or job.check_type in HTTP_TYPES]
    if not users:
        return {}
    wanting = [job for job in users if job.lane == _MAIN or b"{{" in job.spec]
    shown = _certificates(connection, vault, place) if place.presents else msgspec.UNSET
    filled = _variables(connection, vault, place, wanting)
    return {job.id: JobSecrets(filled.get(job.id, msgspec.UNSET), shown) for job in users}


def _certificates(connection: Connection, vault: Vault, place: JobPlace) -> msgspec.Raw:
    """Once for all jobs of a round."""
    found = certificates.certificates_for_jobs(connection, vault, place.account_id)
    return msgspec.Raw(msgspec.json.encode(found))


def _variables(
    connection: Connection, vault: Vault, place: JobPlace, jobs: Sequence[ReadyJob]
) -> dict[int, msgspec.Raw]:
    if not jobs:
        return {}
    owners = {owner for job in jobs for owner in _owners(job, place)[1:]}
    found = variables.variables_for_jobs(connection, vault, place.account_id, owners=owners)
    return {job.id: msgspec.Raw(_of_job(job, place, found)) for job in jobs}


def _of_job(job: ReadyJob, place: JobPlace, found: RunVariables) -> bytes:
    """Scripts have all, requests those that they name."""
    names = None if job.lane == _MAIN else _named(job.spec)
    return msgspec.json.encode(found.of(_owners(job, place), names=names))


def _owners(job: ReadyJob, place: JobPlace) -> tuple[Owner, ...]:
    """Account, group if any, check; later ones win."""
    account, check = Owner.account(place.account_id), Owner.check(place.account_id, job.check_id)
    if job.group_id is None:
        return account, check
    return account, Owner.group(place.account_id, job.group_id), check


def _named(spec: bytes) -> frozenset[str]:
    """Every word in a place of the spec: names, and what helpers are told."""
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


class _LadenJobOut(_JobOut, frozen=True, kw_only=True):
    """The same with what it carries; most jobs carry nothing, and these fields would be 2 %."""

    variables: msgspec.Raw | msgspec.UnsetType
    client_certificates: msgspec.Raw | msgspec.UnsetType


def encode_job(
    job: ReadyJob, *, place: JobPlace, now_ms: int, enclosed: JobSecrets | None = None
) -> bytes:
    """A job that was just dealt, as JSON. Nothing enclosed: it carries nothing."""
    bare = _job(job, place, now_ms=now_ms)
    if enclosed is None:
        return encode(bare)
    return encode(_LadenJobOut(**msgspec.structs.asdict(bare), **enclosed._asdict()))


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

    Of a heartbeat: how long it has been silent; of a suite: whether to install its packages anew.
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
    """The place with its whole proxy. None: it does not open; nothing may go out past it."""
    named = {"account_id": place.account_id, "location_id": location_id}
    try:
        whole = decrypt_proxy(place.proxy_url, place.sealed_proxy_url, vault, **named)
    except DecryptionError as problem:
        log.exception("locations.unreadable", location_id=location_id, reason=str(problem))
        return None
    return place._replace(proxy_url=whole, sealed_proxy_url=None)


def past_proxy(jobs: Iterable[ReadyJob]) -> list[ReadyJob]:
    """The jobs that go by no proxy anyway."""
    return [job for job in jobs if job.check_type not in HTTP_TYPES]


def are_open(jobs: Iterable[ReadyJob]) -> bool:
    """Whether no spec is sealed; said in 0.07 µs a job."""
    return not any(is_encrypted(job.spec) for job in jobs)


def decrypt_jobs(jobs: Iterable[ReadyJob], account_id: str, vault: Vault) -> list[ReadyJob]:
    """The jobs with their specs opened; one that does not open is left out."""
    found = (_decrypt(job, account_id, vault) for job in jobs)
    return [job for job in found if job is not None]


def _decrypt(job: ReadyJob, account_id: str, vault: Vault) -> ReadyJob | None:
    try:
        spec = decrypt_spec(job.spec, vault, account_id=account_id, check_id=job.check_id)
    except DecryptionError as problem:
        log.exception("checks.unreadable", check_id=job.check_id, reason=str(problem))
        return None
    return job._replace(spec=spec)
