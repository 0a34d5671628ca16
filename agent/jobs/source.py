"""Where jobs come from: claims that survive a broken connection, each job read by itself."""

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec
import structlog

from agent.api_client.client import ServiceClient
from agent.api_client.errors import RequestRefusedError, ServiceError
from agent.api_client.hello import Handshake
from agent.api_client.retry import LONGEST_RETRY_AFTER_S, Backoff, Pace
from agent.jobs.releases import Releases
from contract.agent_api import Claim, ClaimAnswer, Released, ReleaseReason
from contract.checks import Lane
from contract.job import Job, JobHead
from contract.wire import UnreadableMessageError, decode

UNREAD_LEASE_S: Final = 60.0
"""How long a job that could not be read is taken to be ours."""
SAME_CLAIM_S: Final = 300.0
"""How long a claim is repeated under its id: no lease of a job that it may have got is longer."""
_REPEAT_LIMIT_S: Final = 5.0
_LONGEST_MESSAGE: Final = 500

log = structlog.get_logger(__name__)


class ServiceSource:
    """Claims jobs from the service and gives them back to it."""

    def __init__(
        self,
        client: ServiceClient,
        releases: Releases,
        handshake: Handshake,
        *,
        pace: Pace,
        oldest_ping_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._client = client
        self._releases = releases
        self._handshake = handshake
        self._pace = pace
        self._oldest_ping_s = oldest_ping_s
        self._not_before: dict[Lane, float] = {}
        """When the lane may claim again, as the service asked. Monotonic."""
        self._abandoned: list[Claim] = []
        """Claims that were cut off by us, and may have got jobs."""

    async def claim(self, slots: Mapping[Lane, int]) -> tuple[Job, ...]:
        """At most as many jobs as there are free slots; none when none came in time."""
        backoff = Backoff(self._pace, self._client.outage)
        await self._wait_for_next_poll(slots)
        claim = self._build_claim(slots)
        since = time.monotonic()
        try:
            while (answer := await self._try(claim, backoff)) is None:
                if time.monotonic() - since > SAME_CLAIM_S:
                    claim, since = self._build_claim(slots), time.monotonic()
        except asyncio.CancelledError:
            # Even one that failed may have got jobs: the answer may be all that was lost.
            self._abandoned.append(claim)
            raise
        return self._read_jobs(answer, slots)

    def release(self, job: Job, reason: ReleaseReason, *, message: str = "") -> None:
        """Give a job back soon."""
        released = Released(
            job_id=job.job_id, fence=job.fence, reason=reason, message=message[:_LONGEST_MESSAGE]
        )
        self._releases.put(released, lease_s=job.lease_s)

    async def give_back_abandoned(self) -> None:
        """Ask again for what cut-off claims may have got, and release it."""
        abandoned, self._abandoned = self._abandoned, []
        for claim in abandoned:
            again = msgspec.structs.replace(claim, wait_s=0)
            try:
                async with asyncio.timeout(_REPEAT_LIMIT_S):
                    answer = await self._send(again)
            except (ServiceError, TimeoutError) as problem:
                log.warning("claim.not_settled", because=str(problem) or "no answer in time")
                continue
            for raw in answer.jobs:
                self._give_back(bytes(raw), ReleaseReason.DRAINING, "The agent is stopping.")

    async def _try(self, claim: Claim, backoff: Backoff) -> ClaimAnswer | None:
        """The answer. None: there was none, and the wait before the next try is over."""
        try:
            if backoff.has_failed:  # a service that was away may be another one now
                await self._handshake.say_hello()
            answer = await self._send(claim)
            if answer.say_hello:
                await self._handshake.say_hello()
        except ServiceError as problem:
            await backoff.wait(problem, _log_failed_claim(problem, backoff))
            return None
        return answer

    async def _send(self, claim: Claim) -> ClaimAnswer:
        """Send a claim, however old it is, with the age of the oldest ping that waits now."""
        oldest_ping_s = self._oldest_ping_s()
        return await self._client.claim(msgspec.structs.replace(claim, oldest_ping_s=oldest_ping_s))

    def _read_jobs(self, answer: ClaimAnswer, slots: Mapping[Lane, int]) -> tuple[Job, ...]:
        next_at = time.monotonic() + min(answer.next_poll_s, LONGEST_RETRY_AFTER_S)
        self._not_before.update(dict.fromkeys(slots, next_at))
        return tuple(self._decode_jobs(answer.jobs))

    def _decode_jobs(self, raws: Iterable[msgspec.Raw]) -> Iterable[Job]:
        for raw in raws:
            try:
                yield decode(raw, Job)
            except UnreadableMessageError as problem:
                self._give_back(bytes(raw), ReleaseReason.MALFORMED, f"{problem}.")

    def _give_back(self, raw: bytes, reason: ReleaseReason, message: str) -> None:
        try:
            head = decode(raw, JobHead)
        except UnreadableMessageError as problem:
            log.exception("job.without_head", because=str(problem), size_bytes=len(raw))
            return
        if reason is ReleaseReason.MALFORMED:
            log.error("job.malformed", job_id=head.job_id, because=message)
        released = Released(
            job_id=head.job_id, fence=head.fence, reason=reason, message=message[:_LONGEST_MESSAGE]
        )
        self._releases.put(released, lease_s=UNREAD_LEASE_S)

    def _build_claim(self, slots: Mapping[Lane, int]) -> Claim:
        return Claim(
            claim_id=uuid.uuid4().hex,
            slots=dict(slots),
            check_types=self._handshake.check_types(slots),
            wait_s=self._pace.claim_wait_s,
        )

    async def _wait_for_next_poll(self, slots: Mapping[Lane, int]) -> None:
        next_at = max((self._not_before.get(lane, 0.0) for lane in slots), default=0.0)
        if (wait_s := next_at - time.monotonic()) > 0:
            await asyncio.sleep(wait_s)


def _log_failed_claim(problem: ServiceError, backoff: Backoff) -> float:
    """Log what went wrong with a claim; the seconds to wait."""
    wait_s = backoff.next_wait_s(problem)
    if isinstance(problem, RequestRefusedError):
        log.error("claim.refused", because=str(problem), wait_s=round(wait_s, 1))
    else:
        log.debug("claim.failed", because=str(problem), wait_s=round(wait_s, 1))
    return wait_s
