"""What jobs carry beside their spec, once they are handed to an agent."""

from collections.abc import Mapping, Sequence

import structlog
from sqlalchemy import update

from contract.checks import (
    BrowserSpec,
    CheckSpec,
    CheckType,
    DnsSpec,
    Lane,
    MultiStepSpec,
    PlaywrightSpec,
    TcpSpec,
)
from contract.job import Job
from service.db.tables.job_inputs import client_certificate, variable
from service.db.tables.locations import private_location
from service.variables import actions
from service.variables.model import Owner
from service.variables.schemas import EnvironmentVariable, VariableWrite
from service.variables.secrets import variables_for_jobs
from service.vault.encryption import Scope
from tests.builders.certificates import a_client_certificate
from tests.builders.specs import (
    a_dns_spec,
    a_heartbeat_spec,
    a_tcp_spec,
    a_url_spec,
    an_api_spec,
    an_icmp_spec,
)
from tests.builders.world import World, a_strangers_location

SECRET = "s3cr3t/of+nobody"
SCRIPTED: Sequence[CheckSpec] = (
    BrowserSpec(script="1"),
    MultiStepSpec(script="1"),
    PlaywrightSpec(bundle_sha256="0" * 64),
    an_api_spec(setup_script="1"),
)


async def account_has(world: World, key: str, value: str, **marks: bool) -> None:
    body = VariableWrite(key=key, value=value, **marks)
    await world.database.write(
        lambda c: actions.create(c, Scope(world.account_id, 1, world.vault), body)
    )


async def check_has(world: World, check_id: str, values: Mapping[str, str]) -> None:
    wanted = [EnvironmentVariable(key=key, value=value) for key, value in values.items()]
    owner = Owner.check(world.account_id, check_id)
    await world.database.write(lambda c: actions.replace(c, owner, wanted, vault=world.vault))


async def jobs_of(world: World, *specs: CheckSpec) -> list[Job]:
    """A job of a check of each."""
    for spec in specs:
        await world.queue(await world.check(spec))
    return await claimed(world)


async def claimed(world: World, claim_id: str = "claim-1", **changes: object) -> list[Job]:
    slots = {Lane.UPTIME: 50, Lane.MAIN: 50}
    jobs = await world.claim(claim_id, slots=slots, check_types=frozenset(CheckType), **changes)
    return sorted(jobs, key=lambda job: int(job.job_id))


def values(job: Job) -> dict[str, str]:
    return {one.key: one.value for one in job.variables}


async def test_a_script_has_all_variables_and_a_request_those_that_it_names(world: World) -> None:
    await account_has(world, "HOST", "shop.test")
    await account_has(world, "TOKEN", SECRET, secret=True)
    *scripted, api, url = await jobs_of(
        world,
        *SCRIPTED,
        an_api_spec("https://shop.test/?key={{{TOKEN}}}"),
        a_url_spec("https://{{ HOST }}/"),
    )
    assert [values(job) for job in scripted] == [{"HOST": "shop.test", "TOKEN": SECRET}] * 4
    assert values(api) == {"TOKEN": SECRET}
    assert api.variables[0].secret
    assert values(url) == {"HOST": "shop.test"}


async def test_what_has_no_place_for_variables_gets_none(world: World) -> None:
    await account_has(world, "TOKEN", SECRET, secret=True)
    specs = (
        a_url_spec(),
        an_api_spec(),
        a_tcp_spec("{{TOKEN}}"),
        a_dns_spec("{{TOKEN}}"),
        an_icmp_spec("{{TOKEN}}"),
        a_heartbeat_spec(),
    )
    assert [job.variables for job in await jobs_of(world, *specs)] == [()] * len(specs)


async def test_a_check_wins_over_its_account(world: World) -> None:
    await account_has(world, "HOST", "account")
    await account_has(world, "PATH_A", "a")
    own, others = await world.check(BrowserSpec(script="1")), await world.check(SCRIPTED[1])
    await check_has(world, own, {"HOST": "check", "MORE": "m"})
    await world.queue(own)
    await world.queue(others)
    first, second = await claimed(world)
    assert values(first) == {"HOST": "check", "PATH_A": "a", "MORE": "m"}
    assert values(second) == {"HOST": "account", "PATH_A": "a"}


async def test_a_group_stands_between_its_checks_and_the_account(world: World) -> None:
    await account_has(world, "A", "account")
    await account_has(world, "B", "account")
    group = Owner.group(world.account_id, 7)
    wanted = [EnvironmentVariable(key=key, value="group") for key in "BC"]
    await world.database.write(lambda c: actions.replace(c, group, wanted, vault=world.vault))
    check = Owner.check(world.account_id, "check-1")
    own = [EnvironmentVariable(key="C", value="check")]
    await world.database.write(lambda c: actions.replace(c, check, own, vault=world.vault))
    found = await world.database.read(
        lambda c: variables_for_jobs(c, world.vault, world.account_id, owners=[group, check])
    )
    merged = found.of([Owner.account(world.account_id), group, check])
    assert {one.key: one.value for one in merged} == {"A": "account", "B": "group", "C": "check"}


async def test_a_changed_variable_is_in_the_next_job_that_is_handed_out(world: World) -> None:
    check = await world.check(SCRIPTED[0])
    await check_has(world, check, {"HOST": "before"})
    await world.queue(check)
    await check_has(world, check, {"HOST": "after"})
    (job,) = await claimed(world)
    assert values(job) == {"HOST": "after"}


async def test_a_repeated_claim_has_them_again(world: World) -> None:
    await account_has(world, "HOST", "shop.test")
    await world.queue(await world.check(SCRIPTED[0]))
    first, again = await claimed(world), await claimed(world, repeated=True)
    assert first == again
    assert values(again[0]) == {"HOST": "shop.test"}


async def test_nobody_gets_anothers_variables_and_certificates(world: World) -> None:
    await account_has(world, "HOST", "ours")
    await world.database.write(lambda c: a_client_certificate(c, world.account_id, world.vault))
    place = await a_strangers_location(world)
    rows = await world.rows(private_location.select().where(private_location.c.id == place))
    check = await world.check(SCRIPTED[0], locations=(place,), account_id=rows[0].account_id)
    await world.queue(check, place)
    (job,) = await claimed(world, location=place)
    assert (job.variables, job.client_certificates) == ((), ())


async def test_certificates_reach_what_speaks_tls_with_hosts_newest_first(world: World) -> None:
    for host in ("old.test", "new.test"):
        await world.database.write(
            lambda c, host=host: a_client_certificate(c, world.account_id, world.vault, host=host)
        )
    jobs = await jobs_of(world, *SCRIPTED, a_url_spec(), an_api_spec(), a_tcp_spec(), a_dns_spec())
    for job in jobs:
        hosts = [one.host for one in job.client_certificates]
        bare = isinstance(job.spec, TcpSpec | DnsSpec)
        assert hosts == ([] if bare else ["new.test", "old.test"])
    shown = jobs[0].client_certificates[0]
    assert shown.passphrase == "open sesame"
    assert "ENCRYPTED PRIVATE KEY" in shown.key


async def test_an_unreadable_value_keeps_no_other_job_back(world: World) -> None:
    await account_has(world, "HOST", "shop.test")
    await account_has(world, "TOKEN", SECRET, secret=True)
    row = await world.database.write(
        lambda c: a_client_certificate(c, world.account_id, world.vault)
    )
    broken = update(variable).where(variable.c.key == "TOKEN").values(value=b"\1 not sealed")
    moved = update(client_certificate).values(host="evil.test")
    await world.database.write(lambda c: (c.execute(broken), c.execute(moved)))
    with structlog.testing.capture_logs() as logs:
        (job,) = await jobs_of(world, SCRIPTED[0])
    assert values(job) == {"HOST": "shop.test"}
    assert job.client_certificates == ()
    told = {one["event"]: one for one in logs}
    assert told["variables.unreadable"]["key"] == "TOKEN"
    assert told["certificates.unreadable"]["certificate_id"] == row.id


async def test_specs_are_handed_out_as_they_are(world: World) -> None:
    spec = an_api_spec("https://{{HOST}}/")
    await account_has(world, "HOST", "shop.test")
    (job,) = await jobs_of(world, spec)
    assert job.spec == spec
