"""What the checks of a group run with that is the group's: scripts, defaults, variables."""

from typing import Any

import pytest

from contract.checks import ApiSpec, CheckType, Lane
from contract.job import Job, RunSource
from contract.wire import decode
from service.jobs import actions as jobs
from service.jobs.claims import ClaimScope, assign_jobs
from tests.builders.check_bodies import script_body
from tests.builders.made_groups import PATHS, SECRET, TOKEN, a_check, a_group, changed, row_of
from tests.builders.world import a_claimant
from tests.servers.public_api import ApiUser, PublicApi


async def job_of(api: PublicApi, check: dict[str, Any]) -> Job:
    """A run of the check, as an agent at its location is handed it."""
    location_id = api.alice.secrets.location_id
    claimant = a_claimant(
        slots=dict.fromkeys(Lane, 10), check_types=frozenset({CheckType(check["checkType"])})
    )

    def run(connection: Any) -> bytes:
        now_ms = api.backend.clock.now_ms(connection)
        wanted = jobs.WantedRuns(
            check_id=check["id"],
            location_ids=[location_id],
            source=RunSource.SCHEDULE_NOW,
            session_id=None,
        )
        jobs.enqueue(connection, wanted, now_ms=now_ms)
        table = ClaimScope(location_id, api.backend.vault)
        (job,) = assign_jobs(connection, table, [claimant], now_ms=now_ms).jobs[0]
        return job

    return decode(await api.database.write(run), Job)


async def test_the_scripts_and_defaults_of_a_group_reach_the_runs_of_its_api_checks(
    api: PublicApi, alice: ApiUser
) -> None:
    snippet = (await alice.post("/v1/snippets", {"name": "sign", "script": "1"})).body
    group = await a_group(
        alice,
        setupSnippetId=snippet["id"],
        localTearDownScript="require('./snippets/sign.js')",
        apiCheckDefaults={
            "url": "https://shop.test",
            "headers": [{"key": "x-team", "value": "blue"}],
            "assertions": [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}],
        },
        environmentVariables=[{"key": "TENANT", "value": "of the group"}, TOKEN],
    )
    request = {"url": "{{GROUP_BASE_URL}}/orders/{{TENANT}}"}
    check = await a_check(alice, group, "api", request=request, localSetupScript="own")
    spec: ApiSpec = decode((await row_of(api, check)).spec, ApiSpec)
    assert (spec.group_setup_script, spec.setup_script) == ("1", "own")
    assert spec.group_teardown_script == "require('./snippets/sign.js')"
    assert [file.path for file in spec.snippets] == ["snippets/sign.js"]
    assert [header.key for header in spec.request.headers] == ["x-team"]
    assert len(spec.assertions) == 1
    carried = {one.key: one.value for one in (await job_of(api, check)).variables}
    assert carried == {
        "GROUP_BASE_URL": "https://shop.test",
        "TENANT": "of the group",
        "TOKEN": SECRET,
    }
    await alice.put(f"/v1/snippets/{snippet['id']}", {"name": "sign", "script": "2"})
    spec = decode((await row_of(api, check)).spec, ApiSpec)
    assert (spec.group_setup_script, spec.snippets[0].content) == ("2", "2")


@pytest.mark.parametrize(
    ("url", "is_hidden"),
    [("https://shop.test/a@b", False), (f"https://shop:{SECRET}@shop.test", True)],
)
async def test_an_address_with_a_password_is_hidden_from_what_scripts_tell(
    api: PublicApi, alice: ApiUser, url: str, *, is_hidden: bool
) -> None:
    group = await a_group(alice, apiCheckDefaults={"url": url})
    check = await a_check(alice, group, "browser", **script_body())
    (one,) = (await job_of(api, check)).variables
    assert (one.key, one.value, one.locked) == ("GROUP_BASE_URL", url, is_hidden)
    assert (await alice.get(f"{PATHS[0]}/{group['id']}")).body["environmentVariables"] == []


async def test_a_request_is_given_what_it_names_of_check_group_and_account(
    api: PublicApi, alice: ApiUser
) -> None:
    for key in ("A", "B", "C"):
        await alice.post("/v1/variables", {"key": key, "value": "account"})
    group = await a_group(
        alice,
        environmentVariables=[{"key": key, "value": "group"} for key in ("B", "C", "UNNAMED")],
    )
    request = {"url": "https://shop.test/{{A}}/{{B}}/{{C}}"}
    own = [{"key": "C", "value": "check"}]
    check = await a_check(alice, group, "api", request=request, environmentVariables=own)
    carried = {one.key: one.value for one in (await job_of(api, check)).variables}
    assert carried == {"A": "account", "B": "group", "C": "check"}


async def test_the_scripts_of_a_group_make_a_plain_api_check_one_of_the_other_lane_and_back(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice)
    check = await a_check(alice, group, "api")
    assert (await row_of(api, check)).lane == Lane.UPTIME
    group = await changed(alice, group, localSetupScript="1")
    assert (await row_of(api, check)).lane == Lane.MAIN
    await changed(alice, group, localSetupScript=None)
    assert (await row_of(api, check)).lane == Lane.UPTIME
