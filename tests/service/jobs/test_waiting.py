import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection
from starlette.types import Message

from contract.checks import CheckType, Lane
from contract.job import Job, RunSource
from contract.result import Status
from contract.wire import decode
from service.clock import GapWatch
from service.db.engine import Database, DatabaseBusyError, Line, announce
from service.jobs import claims
from service.jobs.actions import WantedRuns, enqueue
from service.jobs.long_poll import (
    MOST_IN_ROUND,
    Caller,
    ClaimQueue,
    LocationWaiters,
    PendingClaim,
    open_claim_queue,
)
from service.locations.model import LocationKeyEnded
from tests.builders.patience import LONG_S
from tests.builders.world import World, a_claimant, a_result

T = TypeVar("T")


class CountingDatabase:
    """A real database that counts the changes that pass through."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.writes = 0
        self.brief: list[Line | None] = []
        """Of each change, whether it is to be made on the loop."""
        self.busy = 0
        """So many of the next changes are refused."""
        self.hold: asyncio.Event | None = None
        """Changes wait for this. None: they do not."""

    async def write(self, change: Callable[[Connection], T], *, brief: Line | None = None) -> T:
        self.writes += 1
        self.brief.append(brief)
        if self.hold is not None:
            await self.hold.wait()
        if self.busy:
            self.busy -= 1
            raise DatabaseBusyError("busy")
        return await self._database.write(change, brief=brief)

    async def read(self, query: Callable[[Connection], T]) -> T:
        return await self._database.read(query)

    def listen(self, kind: type[T], listener: Callable[[T], None]) -> None:
        self._database.listen(kind, listener)


class LosableCaller(Caller):
    """A client that hangs up when the test says so."""

    def __init__(self) -> None:
        self.hung_up = asyncio.Event()
        super().__init__(self._disconnect)

    async def _disconnect(self) -> Message:
        await self.hung_up.wait()
        return {"type": "http.disconnect"}


@pytest.fixture
async def database(world: World) -> CountingDatabase:
    return CountingDatabase(world.database)


@pytest.fixture
async def claim_queue(world: World, database: CountingDatabase) -> AsyncIterator[ClaimQueue]:
    made = await open_claim_queue(database, world.clock, world.vault, GapWatch())  # type: ignore[arg-type]  # as much as it uses
    yield made
    await made.close()


def wait(
    claim_queue: ClaimQueue,
    world: World,
    claim_id: str = "claim-1",
    *,
    wait_s: float = LONG_S,
    **changes: Any,
) -> asyncio.Task[Sequence[bytes]]:
    claimant = a_claimant(claim_id, **changes)
    return asyncio.create_task(claim_queue.claim(world.location_id, claimant, wait_s=wait_s))


async def settle(times: int = 5) -> None:
    """Let everything happen that can happen now."""
    for _ in range(times):
        await asyncio.sleep(0.01)


async def test_a_job_that_is_there_is_dealt_at_once(claim_queue: ClaimQueue, world: World) -> None:
    await world.queue(await world.check())
    assert len(await wait(claim_queue, world)) == 1


async def test_a_waiting_claim_gets_a_job_as_soon_as_it_is_due(
    claim_queue: ClaimQueue, world: World
) -> None:
    check_id = await world.check()
    waiting = wait(claim_queue, world)
    await settle()
    await world.queue(check_id)
    assert len(await waiting) == 1


async def test_a_job_that_was_due_before_others_that_were_dealt_is_dealt_at_once(
    claim_queue: ClaimQueue, world: World
) -> None:
    check_id = await world.check()
    for number in range(3):
        world.time.pass_s(1)
        await world.queue(check_id)
        assert len(await wait(claim_queue, world, f"claim-{number}")) == 1
    waiting = wait(claim_queue, world, "claim-3")
    await settle()
    late = WantedRuns(
        check_id=check_id,
        location_ids=(world.location_id,),
        source=RunSource.SCHEDULE_NOW,
        session_id=None,
    )
    await world.change(lambda c, now: enqueue(c, late, now_ms=now - 10_000))
    assert len(await waiting) == 1


async def test_a_claim_that_waited_in_vain_gets_an_empty_answer(
    claim_queue: ClaimQueue, world: World
) -> None:
    assert not await wait(claim_queue, world, wait_s=0.05)
    assert claim_queue.waiting_agents() == set()


async def test_idle_claims_cost_no_sql(
    claim_queue: ClaimQueue, world: World, database: CountingDatabase
) -> None:
    await wait(claim_queue, world, "first", wait_s=0.05)
    database.writes = 0
    waits = [wait(claim_queue, world, f"claim-{n}", wait_s=0.1) for n in range(500)]
    assert await asyncio.gather(*waits) == [()] * 500
    assert database.writes == 0


async def test_claims_that_arrive_together_are_served_by_one_transaction(
    claim_queue: ClaimQueue, world: World, database: CountingDatabase
) -> None:
    check_id = await world.check()
    waits = [wait(claim_queue, world, f"claim-{n}", slots={Lane.UPTIME: 1}) for n in range(40)]
    await settle()
    database.writes = 0
    database.hold = asyncio.Event()
    for _ in range(40):
        await world.queue(check_id)
    database.hold.set()
    jobs = [decode(job, Job).job_id for dealt in await asyncio.gather(*waits) for job in dealt]
    assert len(set(jobs)) == 40
    assert database.writes < 20


async def test_who_waits_longest_is_served_first(claim_queue: ClaimQueue, world: World) -> None:
    check_id = await world.check()
    first, second = (
        wait(claim_queue, world, "claim-1", slots={Lane.UPTIME: 1}),
        wait(claim_queue, world, "claim-2", slots={Lane.UPTIME: 1}),
    )
    await settle()
    await world.queue(check_id)
    assert len(await first) == 1
    assert not second.done()
    await world.queue(check_id)
    assert len(await second) == 1


async def test_what_the_first_in_line_cannot_run_goes_to_the_next(
    claim_queue: ClaimQueue, world: World
) -> None:
    check_id = await world.check()
    picky = wait(claim_queue, world, "claim-1", check_types=frozenset({CheckType.DNS}))
    other = wait(claim_queue, world, "claim-2")
    await settle()
    await world.queue(check_id)
    assert len(await other) == 1
    assert not picky.done()


async def test_thousands_of_idle_claims_do_not_hide_one_with_other_types(
    claim_queue: ClaimQueue, world: World
) -> None:
    check_id = await world.check()
    dns = frozenset({CheckType.DNS})
    for n in range(300):
        wait(claim_queue, world, f"idle-{n}", check_types=dns)
    other = wait(claim_queue, world, "claim-1")
    await settle()
    await world.queue(check_id)
    assert len(await other) == 1


async def test_a_claim_that_takes_part_of_what_is_there_leaves_the_rest_to_the_next(
    claim_queue: ClaimQueue, world: World
) -> None:
    check_id = await world.check()
    for _ in range(3):
        await world.queue(check_id)
    assert len(await wait(claim_queue, world, "claim-1", slots={Lane.UPTIME: 1})) == 1
    assert len(await wait(claim_queue, world, "claim-2", slots={Lane.UPTIME: 1})) == 1
    assert len(await wait(claim_queue, world, "claim-3", slots={Lane.UPTIME: 1})) == 1


async def test_a_retry_wakes_a_claim_when_its_backoff_is_over(
    claim_queue: ClaimQueue, world: World
) -> None:
    doc = {"retryStrategy": {"type": "FIXED", "baseBackoffSeconds": 0.2, "maxRetries": 1}}
    check_id = await world.check(doc=doc)
    await world.queue(check_id)
    [job] = [decode(job, Job) for job in await wait(claim_queue, world, "claim-1")]
    waiting = wait(claim_queue, world, "claim-2")
    await world.submit(a_result(job, Status.FAILED))
    await settle()
    assert not waiting.done()
    world.time.pass_s(0.2)
    [again] = await waiting
    assert decode(again, Job).attempt == 2


async def test_a_repeated_claim_gets_its_jobs_again_and_no_others(
    claim_queue: ClaimQueue, world: World
) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    first = await wait(claim_queue, world, "claim-1", slots={Lane.UPTIME: 1})
    await world.queue(check_id)
    assert await wait(claim_queue, world, "claim-1", slots={Lane.UPTIME: 1}) == first


@pytest.mark.parametrize("wait_s", [0, LONG_S])
async def test_a_claim_is_known_again_after_a_restart_of_the_service(
    claim_queue: ClaimQueue, world: World, database: CountingDatabase, wait_s: float
) -> None:
    await world.queue(await world.check())
    first = await wait(claim_queue, world, "claim-1")
    await claim_queue.close()
    restarted = await open_claim_queue(database, world.clock, world.vault, GapWatch())  # type: ignore[arg-type]  # as above
    assert await wait(restarted, world, "claim-1", wait_s=wait_s) == first
    assert await wait(restarted, world, "claim-1", wait_s=wait_s) == first
    await restarted.close()


async def test_a_round_has_no_more_claims_than_can_be_served_briefly() -> None:
    location, loop = LocationWaiters(), asyncio.get_running_loop()
    for number, slots in enumerate((MOST_IN_ROUND - 1, 1, 1, MOST_IN_ROUND + 1)):
        claimant = a_claimant(f"claim-{number}", slots={Lane.UPTIME: slots})
        location.add(PendingClaim(claimant, loop.create_future(), repeated=False))
    rounds = []
    while found := location.next_in_line():
        rounds.append([waiter.slots for waiter in found])
        for waiter in found:
            waiter.end_round((b"{}",))
    assert rounds == [[MOST_IN_ROUND - 1, 1], [1], [MOST_IN_ROUND + 1]]


async def test_a_claim_made_anew_is_repeated_only_where_the_one_before_may_have_jobs() -> None:
    location, loop = LocationWaiters(), asyncio.get_running_loop()

    def add(*, repeated: bool = False) -> PendingClaim:
        return location.add(PendingClaim(a_claimant(), loop.create_future(), repeated=repeated))

    add()
    idle_again = add()
    assert not idle_again.repeated
    idle_again.begin_round()
    assert add().repeated
    assert add().repeated


async def test_a_round_of_idle_claims_is_made_on_the_loop_and_one_of_repeated_ones_is_not(
    claim_queue: ClaimQueue, world: World, database: CountingDatabase
) -> None:
    await world.queue(await world.check())
    await wait(claim_queue, world, "claim-1")
    await wait(claim_queue, world, "claim-2", wait_s=0)
    await wait(claim_queue, world, "claim-1")
    assert database.brief == [Line.CLAIMS, Line.CLAIMS, None]


async def test_a_claim_that_hung_up_is_dealt_nothing(claim_queue: ClaimQueue, world: World) -> None:
    check_id = await world.check()
    caller = LosableCaller()
    claimant = a_claimant("claim-1")
    lost = asyncio.create_task(
        claim_queue.claim(world.location_id, claimant, wait_s=LONG_S, caller=caller)
    )
    await settle()
    caller.hung_up.set()
    assert not await lost
    await world.queue(check_id)
    assert len(await wait(claim_queue, world, "claim-2")) == 1


async def test_jobs_dealt_to_a_claim_that_hung_up_meanwhile_stay_under_its_name(
    claim_queue: ClaimQueue, world: World, database: CountingDatabase
) -> None:
    await world.queue(await world.check())
    database.hold = asyncio.Event()
    lost = wait(claim_queue, world, "claim-1")
    await settle()
    lost.cancel()
    await settle()
    again = wait(claim_queue, world, "claim-1")
    database.hold.set()
    assert len(await again) == 1
    assert not await wait(claim_queue, world, "claim-2", wait_s=0)


async def test_a_claim_whose_time_ends_within_a_round_still_gets_what_it_was_dealt(
    claim_queue: ClaimQueue, world: World, database: CountingDatabase
) -> None:
    await world.queue(await world.check())
    database.hold = asyncio.Event()
    waiting = wait(claim_queue, world, "claim-1", wait_s=0.02)
    await asyncio.sleep(0.1)
    assert not waiting.done()
    database.hold.set()
    assert len(await waiting) == 1


async def test_a_busy_database_delays_claims_and_loses_none(
    claim_queue: ClaimQueue, world: World, database: CountingDatabase
) -> None:
    await world.queue(await world.check())
    database.busy = 1
    assert len(await wait(claim_queue, world)) == 1


async def test_closing_sends_everyone_home_at_once(claim_queue: ClaimQueue, world: World) -> None:
    waits = [wait(claim_queue, world, f"claim-{n}") for n in range(100)]
    await settle()
    await claim_queue.close()
    assert await asyncio.gather(*waits) == [()] * 100


async def test_a_closed_desk_deals_nothing(claim_queue: ClaimQueue, world: World) -> None:
    await world.queue(await world.check())
    await claim_queue.close()
    assert await wait(claim_queue, world) == ()


async def test_a_fault_of_ours_reaches_the_claims_instead_of_hanging_them(
    claim_queue: ClaimQueue, world: World
) -> None:
    await world.queue(await world.check())

    def broken(_connection: object) -> int:
        raise ZeroDivisionError

    claim_queue._clock.now_ms = broken  # type: ignore[method-assign]  # the fault
    with pytest.raises(ZeroDivisionError):
        await wait(claim_queue, world)


async def test_a_claim_that_is_made_anew_takes_the_place_of_its_lost_connection(
    claim_queue: ClaimQueue, world: World
) -> None:
    check_id = await world.check()
    lost = wait(claim_queue, world, "claim-1")
    await settle()
    again = wait(claim_queue, world, "claim-1")
    assert not await lost
    await world.queue(check_id)
    assert len(await again) == 1


async def test_more_jobs_than_fit_into_one_round_are_dealt_in_the_next(
    claim_queue: ClaimQueue, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_MOST_AT_ONCE", 2)
    check_id = await world.check()
    for _ in range(5):
        await world.queue(check_id)
    waits = [wait(claim_queue, world, f"claim-{n}", slots={Lane.UPTIME: 1}) for n in range(5)]
    assert [len(jobs) for jobs in await asyncio.gather(*waits)] == [1] * 5


async def test_jobs_dealt_to_a_claim_that_hung_up_meanwhile_go_to_the_next_at_once(
    claim_queue: ClaimQueue, world: World, database: CountingDatabase
) -> None:
    await world.queue(await world.check())
    database.hold = asyncio.Event()
    caller = LosableCaller()
    claimant = a_claimant("claim-1")
    lost = asyncio.create_task(
        claim_queue.claim(world.location_id, claimant, wait_s=LONG_S, caller=caller)
    )
    await settle()
    caller.hung_up.set()
    await settle()
    database.hold.set()
    assert await lost == ()
    [one] = await wait(claim_queue, world, "claim-2")
    assert decode(one, Job).job_id == "1"


async def test_a_claim_whose_key_has_ended_is_sent_home_without_jobs(
    claim_queue: ClaimQueue, world: World, database: CountingDatabase
) -> None:
    idle = wait(claim_queue, world, "claim-1")
    await settle()
    ended = LocationKeyEnded(key_id="k", location_id=world.location_id)
    await world.database.write(lambda c: announce(c, ended))
    assert await idle == ()
    await world.queue(await world.check())
    database.hold = asyncio.Event()
    busy = wait(claim_queue, world, "claim-2")
    await settle()
    await world.database.write(lambda c: announce(c, ended))
    database.hold.set()
    assert await busy == ()
    assert len(await wait(claim_queue, world, "claim-3")) == 1
