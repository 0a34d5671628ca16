"""A group that is run as a whole: in its order, so many checks at a time, and none held up."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select, update

from contract.checks import Lane
from contract.result import Status
from service.checks import changes
from service.db.tables.checks import check_
from service.db.tables.locations import private_location
from service.db.tables.runs import session
from service.groups import store as groups
from service.groups.model import Form
from service.http.errors import ConflictError, InvalidError, NotFoundError
from service.jobs.settle import expire_jobs
from service.sessions import actions
from service.sessions.model import Session
from service.sessions.triggers import GroupRun, require_no_open_run, run_group
from service.vault.encryption import Scope
from tests.builders.groups import a_group
from tests.builders.specs import a_heartbeat_spec
from tests.builders.world import World, a_result


async def group(world: World, *, concurrency: int = 3) -> int:
    doc = a_group(concurrency=concurrency).doc

    def add(connection: Any, now_ms: int) -> int:
        row = {"account_id": world.account_id, "name": "Shop", "form": Form.V1, "doc": doc}
        return groups.add(connection, {**row, "created_ms": now_ms, "updated_ms": None})

    return await world.change(add)


async def member(
    world: World, group_id: int, name: str, order: float | None = None, **fields: Any
) -> str:
    doc = {"groupOrder": order, **fields.pop("doc", {})}
    return await world.check(name=name, group_id=group_id, doc=doc, **fields)


async def started(
    world: World, group_id: int, *, location: str | None = None
) -> tuple[Session, ...]:
    wanted = GroupRun(group_id=group_id, location=location)
    return await world.change(lambda c, now: run_group(c, world.account_id, wanted, now_ms=now))


async def names(world: World, claim_id: str, **changes: Any) -> list[str]:
    """The checks whose runs a claim is dealt, which are left to their agent."""
    return [job.check_name for job in await world.claim(claim_id, **changes)]


async def pass_jobs(world: World, claim_id: str, status: Status = Status.PASSED) -> list[str]:
    jobs = await world.claim(claim_id)
    await world.submit(*(a_result(job, status) for job in jobs))
    return [job.check_name for job in jobs]


async def open_sessions(world: World) -> int:
    return len(await world.rows(select(session).where(session.c.stopped_ms.is_(None))))


async def test_checks_run_in_the_order_of_the_group_and_those_without_one_last(
    world: World,
) -> None:
    group_id = await group(world, concurrency=1)
    for name, order in (("d", None), ("c", 10), ("a", 0), ("b", 2), ("e", None)):
        await member(world, group_id, name, order)
        world.time.pass_s(1)
    assert [one.name for one in await started(world, group_id)] == ["a", "b", "c", "d", "e"]
    seen = [await pass_jobs(world, f"claim-{number}") for number in range(6)]
    assert seen == [["a"], ["b"], ["c"], ["d"], ["e"], []]
    assert await open_sessions(world) == 0


async def test_so_many_checks_run_at_once_and_the_next_begins_when_one_ends(world: World) -> None:
    group_id = await group(world, concurrency=2)
    for order in range(5):
        await member(world, group_id, f"check-{order}", order)
    sessions = await started(world, group_id)
    assert [one.turn for one in sessions] == [None, None, 2, 3, 4]
    first, second = await world.claim("claim-1")
    assert await world.claim("claim-2") == []
    await world.submit(a_result(second))
    assert await names(world, "claim-3") == ["check-2"]
    await world.submit(a_result(first, Status.FAILED))
    assert await names(world, "claim-4") == ["check-3"]
    assert await world.claim("claim-5") == []


async def test_a_check_holds_its_place_until_its_last_location_and_its_last_retry(
    world: World,
) -> None:
    attic = await world.location("attic")
    group_id = await group(world, concurrency=1)
    retry = {"retryStrategy": {"type": "SINGLE_RETRY", "baseBackoffSeconds": 5}}
    places = (world.location_id, attic)
    await member(world, group_id, "wide", 0, locations=places, doc=retry)
    await member(world, group_id, "next", 1)
    await started(world, group_id)
    assert await pass_jobs(world, "claim-1", Status.FAILED) == ["wide"]
    [elsewhere] = await world.claim("claim-2", location=attic)
    await world.submit(a_result(elsewhere), location=attic)
    assert await world.claim("claim-3") == []
    world.time.pass_s(5)
    assert await pass_jobs(world, "claim-4", Status.FAILED) == ["wide"]
    assert await names(world, "claim-5") == ["next"]


async def test_a_run_that_nobody_takes_holds_nobody_up(world: World) -> None:
    group_id = await group(world, concurrency=1)
    for order in range(2):
        await member(world, group_id, f"check-{order}", order)
    await started(world, group_id)
    world.time.pass_s(361)
    await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    assert await names(world, "claim-1") == ["check-1"]


async def test_a_check_that_is_deleted_holds_nobody_up_while_it_runs_or_waits(
    world: World,
) -> None:
    group_id = await group(world, concurrency=1)
    ids = [await member(world, group_id, f"check-{order}", order) for order in range(3)]
    await started(world, group_id)
    for gone in (ids[1], ids[0]):
        await world.change(
            lambda c, now, gone=gone: changes.delete(
                c, Scope(world.account_id, now, world.vault), gone
            )
        )
    assert await names(world, "claim-1") == ["check-2"]
    assert await open_sessions(world) == 1


async def test_a_check_whose_location_has_gone_while_it_waited_is_passed_over(
    world: World,
) -> None:
    attic = await world.location("attic")
    group_id = await group(world, concurrency=1)
    await member(world, group_id, "first", 0)
    for order in (1, 2):
        await member(world, group_id, f"gone-{order}", order, locations=(attic,))
    await member(world, group_id, "last", 3)
    await started(world, group_id)
    moved = delete(private_location).where(private_location.c.id == attic)
    await world.database.write(lambda c: c.execute(moved))
    assert await pass_jobs(world, "claim-1") == ["first"]
    assert await names(world, "claim-2") == ["last"]


async def test_a_check_that_is_paused_while_it_waits_does_not_run(world: World) -> None:
    group_id = await group(world, concurrency=1)
    ids = [await member(world, group_id, f"check-{order}", order) for order in range(3)]
    await started(world, group_id)
    pause = update(check_).where(check_.c.id == ids[1]).values(activated=False)
    await world.database.write(lambda c: c.execute(pause))
    assert await pass_jobs(world, "claim-1") == ["check-0"]
    assert await names(world, "claim-2") == ["check-2"]
    assert await open_sessions(world) == 1


async def test_a_session_that_never_ends_is_ended_at_its_deadline_so_that_others_begin(
    world: World,
) -> None:
    group_id = await group(world, concurrency=1)
    retry = {"retryStrategy": {"type": "SINGLE_RETRY", "baseBackoffSeconds": 80_000}}
    await member(world, group_id, "slow", 0, doc=retry)
    await member(world, group_id, "next", 1)
    await started(world, group_id)
    assert await pass_jobs(world, "claim-1", Status.FAILED) == ["slow"]
    world.time.pass_s(20 * 60 - 1)
    assert await world.change(lambda c, now: actions.end_overdue_of_groups(c, now_ms=now)) == 0
    world.time.pass_s(1)
    assert await world.change(lambda c, now: actions.end_overdue_of_groups(c, now_ms=now)) == 1
    [job] = await world.claim("claim-2")
    assert job.check_name == "next"
    world.time.pass_s(80_000)
    [late] = await world.claim("claim-3")
    await world.submit(a_result(late), a_result(job))
    assert await open_sessions(world) == 0


async def test_a_sessions_time_counts_from_its_turn(world: World) -> None:
    group_id = await group(world, concurrency=1)
    for order in range(2):
        await member(world, group_id, f"check-{order}", order)
    _, waiting = await started(world, group_id)
    world.time.pass_s(300)
    await pass_jobs(world, "claim-1")
    seen = await world.change(lambda c, _now: actions.find(c, world.account_id, waiting.id))
    assert seen.started_ms == waiting.started_ms + 300_000
    assert seen.turn is None


async def test_two_runs_of_one_group_go_on_side_by_side(world: World) -> None:
    group_id = await group(world, concurrency=1)
    for order in range(2):
        await member(world, group_id, f"check-{order}", order)
    await started(world, group_id)
    await started(world, group_id)
    assert await pass_jobs(world, "claim-1") == ["check-0", "check-0"]
    assert await pass_jobs(world, "claim-2") == ["check-1", "check-1"]
    assert await open_sessions(world) == 0


async def test_only_activated_checks_of_the_group_run_and_no_heartbeat(world: World) -> None:
    group_id = await group(world)
    other = await group(world)
    await member(world, group_id, "runs")
    await member(world, group_id, "paused", activated=False)
    await member(world, group_id, "beats", spec=a_heartbeat_spec())
    await member(world, other, "elsewhere")
    assert [one.name for one in await started(world, group_id)] == ["runs"]


async def test_a_group_is_run_at_one_location_if_that_is_wanted(world: World) -> None:
    attic = await world.location("attic")
    group_id = await group(world)
    await member(world, group_id, "both", locations=(world.location_id, attic))
    await member(world, group_id, "cellar only")
    [only] = await started(world, group_id, location="attic")
    assert (only.name, only.locations) == ("both", ("attic",))
    with pytest.raises(InvalidError, match="runLocation"):
        await started(world, group_id, location="moon")


async def test_a_group_that_is_not_there_or_has_nothing_to_run_is_told(world: World) -> None:
    with pytest.raises(NotFoundError, match="There is no check group 99"):
        await started(world, 99)
    empty = await group(world)
    with pytest.raises(NotFoundError, match="No check of the group Shop can be run"):
        await started(world, empty)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    count=st.integers(1, 12),
    concurrency=st.integers(1, 14),
    picks=st.lists(st.integers(0, 11), min_size=12, max_size=12),
)
async def test_never_more_than_wanted_run_at_once_and_every_check_runs_once(
    world: World, count: int, concurrency: int, picks: list[int]
) -> None:
    group_id = await group(world, concurrency=concurrency)
    for number in range(count):
        await member(world, group_id, f"check-{number}", number)
    await started(world, group_id)
    held, ran = [], []
    while jobs := [
        *held,
        *await world.claim(f"claim-{group_id}-{len(ran)}", slots={Lane.UPTIME: 99}),
    ]:
        assert len(jobs) == min(concurrency, count - len(ran))
        done = jobs.pop(picks[len(ran)] % len(jobs))
        await world.submit(a_result(done))
        ran.append(done.check_name)
        held = jobs
    assert sorted(ran) == sorted(f"check-{number}" for number in range(count))
    assert await open_sessions(world) == 0


async def test_a_group_of_another_account_is_not_there(world: World) -> None:
    group_id = await group(world)
    await member(world, group_id, "runs")
    wanted = GroupRun(group_id=group_id)
    with pytest.raises(NotFoundError):
        await world.change(lambda c, now: run_group(c, "a stranger", wanted, now_ms=now))


async def test_a_link_starts_no_run_of_a_group_while_one_goes_on(world: World) -> None:
    first, other = await group(world, concurrency=1), await group(world)
    await member(world, first, "waits", 0)
    await member(world, first, "waits for the other", 1)

    async def hold(group_id: int) -> None:
        await world.change(lambda c, _: require_no_open_run(c, world.account_id, group_id))

    await hold(first)
    await started(world, first)
    with pytest.raises(ConflictError, match="A run of the group Shop has not ended"):
        await hold(first)
    await hold(other)
    await pass_jobs(world, "claim-1")
    with pytest.raises(ConflictError):
        await hold(first)
    await pass_jobs(world, "claim-2")
    await hold(first)
