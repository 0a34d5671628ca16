"""Jobs that an agent of a served API claims, and what it sends of them."""

from contract.checks import CheckType, Lane
from contract.job import Job
from contract.result import Outcome
from contract.wire import decode, encode
from service.jobs.claims import ClaimScope, assign_jobs
from service.results.ingest import Arrived, take_results
from tests.builders.world import a_claimant, a_result
from tests.servers.public_api import PublicApi

EVERY_TYPE = frozenset(CheckType)


async def location_of(api: PublicApi) -> str:
    """The location that every account has."""
    found = (await api.alice.get("/v1/private-locations")).body
    return next(str(one["id"]) for one in found if one["slugName"] == "default")


async def claim(api: PublicApi) -> list[Job]:
    scope = ClaimScope(await location_of(api), api.backend.vault)
    slots = {Lane.UPTIME: 9, Lane.MAIN: 9}
    claimant = a_claimant(slots=slots, check_types=EVERY_TYPE)
    dealt = await api.database.write(
        lambda c: assign_jobs(c, scope, [claimant], now_ms=api.backend.clock.now_ms(c))
    )
    return [decode(one, Job) for one in dealt.jobs[0]]


async def submit(api: PublicApi, job: Job, outcome: Outcome) -> None:
    result = a_result(job, outcome=outcome)
    arrived = Arrived(result, encode(result), int(job.job_id))
    location_id = await location_of(api)
    await api.database.write(
        lambda c: take_results(
            c, [arrived], location_id=location_id, now_ms=api.backend.clock.now_ms(c)
        )
    )
