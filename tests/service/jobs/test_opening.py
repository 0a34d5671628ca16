"""Jobs of checks with secrets, and of locations whose proxy has credentials."""

from collections.abc import Sequence

import pytest
from sqlalchemy import update
from structlog.testing import capture_logs

from contract.checks import ApiSpec
from contract.job import Job
from contract.requests import BasicAuth, HttpRequest
from contract.wire import encode
from service.checks.secrets import encrypt_spec
from service.db.tables.checks import check_
from service.db.tables.locations import private_location
from service.jobs.claims import assign_jobs
from service.locations.secrets import encrypt
from tests.builders.specs import a_tcp_spec, a_url_spec, an_api_spec
from tests.builders.world import World, a_claimant

SECRET = "s3cr3t/of+nobody"
PROXY = f"http://probe:{SECRET}@proxy.test:3128"


def a_secret_spec() -> ApiSpec:
    credentials = BasicAuth(username="u", password=SECRET)
    return an_api_spec(request=HttpRequest(url="http://shop.test/", basic_auth=credentials))


async def a_sealed_check(world: World, *, as_of: str | None = None) -> str:
    """A check with a secret; its spec may be the one of another check."""
    spec = a_secret_spec()
    check_id = await world.check(spec)
    named = {"account_id": world.account_id, "check_id": as_of or check_id}
    change = update(check_).where(check_.c.id == check_id)
    sealed_ = encrypt_spec(encode(spec), world.vault, **named)
    await world.database.write(lambda c: c.execute(change.values(spec=sealed_)))
    return check_id


async def has_proxy(world: World, *, as_of: str | None = None) -> None:
    named = {"account_id": world.account_id, "location_id": as_of or world.location_id}
    columns = encrypt(PROXY, world.vault, **named)
    await world.database.write(lambda c: c.execute(update(private_location).values(**columns)))


async def dealt(world: World, *check_ids: str) -> list[Job]:
    for check_id in check_ids:
        await world.queue(check_id)
    return await world.claim()


async def ends_of(world: World, check_ids: Sequence[str]) -> list[tuple[str, str | None]]:
    rows = [row for one in check_ids for row in await world.results(one)]
    return [(row.status, row.cause) for row in rows]


async def test_a_sealed_spec_is_opened_as_its_job_is_dealt(world: World) -> None:
    plain, secret = await world.check(a_url_spec()), await a_sealed_check(world)
    first, second = await dealt(world, plain, secret)
    assert (first.spec, second.spec) == (a_url_spec(), a_secret_spec())
    assert await world.claim(repeated=True) == [first, second]


async def test_jobs_carry_the_whole_address_of_the_proxy(world: World) -> None:
    await has_proxy(world)
    [job] = await dealt(world, await world.check())
    assert job.proxy_url == PROXY


async def test_a_run_whose_secrets_do_not_open_ends_as_our_fault_and_holds_no_other_back(
    world: World,
) -> None:
    plain, broken = await world.check(), await a_sealed_check(world, as_of="another")
    with capture_logs() as logs:
        [job] = await dealt(world, broken, plain)
    assert job.check_id == plain
    assert await ends_of(world, [plain, broken]) == [("ERROR", "unreadable")]
    [told] = [one for one in logs if one["event"] == "checks.unreadable"]
    assert told["check_id"] == broken


@pytest.mark.parametrize("damage", [b"", b"\1", b"garbage"])
async def test_a_spec_that_is_none_ends_its_own_run_alone(world: World, damage: bytes) -> None:
    plain, broken = await world.check(), await world.check()
    change = update(check_).where(check_.c.id == broken).values(spec=damage)
    await world.database.write(lambda c: c.execute(change))
    assert [job.check_id for job in await dealt(world, broken, plain)] == [plain]
    assert await ends_of(world, [plain, broken]) == [("ERROR", "unreadable")]


async def test_a_slot_that_such_a_run_had_is_dealt_anew_at_once(world: World) -> None:
    await world.queue(await a_sealed_check(world, as_of="another"))
    claimant = a_claimant()
    found = await world.change(lambda c, now: assign_jobs(c, world.table(), [claimant], now_ms=now))
    assert (found.jobs, found.next_due_ms) == ([[]], world.time.now)


async def test_nothing_goes_out_past_a_proxy_whose_address_does_not_open(world: World) -> None:
    await has_proxy(world, as_of="another")
    check_id = await world.check()
    with capture_logs() as logs:
        assert await dealt(world, check_id) == []
    assert await ends_of(world, [check_id]) == [("ERROR", "unreadable")]
    assert "locations.unreadable" in {one["event"] for one in logs}


async def test_what_goes_by_no_proxy_runs_on_where_its_address_does_not_open(world: World) -> None:
    await has_proxy(world, as_of="another")
    port, beat, page = await world.check(a_tcp_spec()), await world.heartbeat(), await world.check()
    jobs = await dealt(world, port, beat, page)
    assert [job.check_id for job in jobs] == [port, beat]
    assert await ends_of(world, [port, beat, page]) == [("ERROR", "unreadable")]
