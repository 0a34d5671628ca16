"""Jobs as agents read them, with the stored bytes of each spec put in as they are."""

from datetime import UTC, datetime
from typing import Final

import msgspec

from contract.checks import CheckType, HeartbeatSpec, Lane
from contract.scripted import PlaywrightSpec
from contract.wire import Seconds, Wire, decode, encode
from service.jobs.enclosures import Enclosed
from service.jobs.model import LEASE_MS, JobPlace, ReadyJob

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


def render(
    job: ReadyJob, *, place: JobPlace, now_ms: int, enclosed: Enclosed | None = None
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
