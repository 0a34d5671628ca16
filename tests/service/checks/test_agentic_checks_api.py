from typing import Any

import pytest
from sqlalchemy import Connection, select

from contract.checks import AgenticSpec, CheckType
from contract.wire import decode
from service.db.tables.checks import check_
from service.db.tables.locations import agent
from service.jobs.settle import expire_jobs
from service.scheduling.tick import tick
from tests.builders.check_bodies import AGENTIC
from tests.servers.public_api import ApiUser, PublicApi

REGION = {"name": "Virginia", "slugName": "us-east-1"}
PATH = "/v1/checks/agentic"
NOBODY = (
    "No agent that runs AGENTIC checks is connected at the location us-east-1: no agent can run"
    " them yet."
)


@pytest.fixture
async def virginia(alice: ApiUser) -> str:
    """The id of a location that stands in for the region."""
    made = await alice.post("/v1/private-locations", REGION)
    assert made.status == 201, made.body
    location_id: str = made.body["id"]
    return location_id


async def made(user: ApiUser, **fields: Any) -> dict[str, Any]:
    answer = await user.post(PATH, {**AGENTIC, **fields})
    assert answer.status == 201, answer.body
    check: dict[str, Any] = answer.body
    return check


async def time_passes(api: PublicApi) -> None:
    """The scheduler and the reaper have their turns."""

    def turn(connection: Connection) -> None:
        now_ms = api.backend.clock.now_ms(connection)
        tick(connection, now_ms=now_ms)
        expire_jobs(connection, watched_since_ms=0, now_ms=now_ms)

    await api.database.write(turn)


@pytest.mark.usefixtures("virginia")
async def test_an_agentic_check_is_made_read_listed_changed_and_deleted(alice: ApiUser) -> None:
    check = await made(alice)
    assert check["checkType"] == "AGENTIC"
    path = f"/v1/checks/{check['id']}"
    assert (await alice.get(path)).body == check
    changed = await alice.put(f"{PATH}/{check['id']}", {**AGENTIC, "prompt": "Log in."})
    assert (changed.status, changed.body["prompt"]) == (200, "Log in.")
    assert (await alice.get("/v1/checks?checkType=AGENTIC")).body == [changed.body]
    assert (await alice.delete(path)).status == 204
    assert (await alice.get(path)).status == 404


@pytest.mark.usefixtures("virginia")
async def test_what_is_left_out_takes_the_defaults_of_the_type(alice: ApiUser) -> None:
    least = {"frequency": 30, "locations": ["us-east-1"], "agentRuntime": {"skills": []}}
    for fields in ({}, {"locations": [], "agentRuntime": None}, {"locations": None}):
        assert least.items() <= (await made(alice, **fields)).items()


@pytest.mark.usefixtures("virginia")
async def test_what_is_written_is_stored_whole(api: PublicApi, alice: ApiUser) -> None:
    body = {"prompt": "Log in as {{USER}}.", "agentRuntime": {"skills": ["browser", "mail"]}}
    check = await made(alice, **body, frequency=60, tags=["shop"])
    assert body.items() <= check.items()
    row = await api.database.read(lambda c: c.execute(select(check_)).one())
    spec = AgenticSpec(prompt="Log in as {{USER}}.", skills=("browser", "mail"))
    assert (decode(row.spec, AgenticSpec), row.lane) == (spec, "main")
    again = await alice.put(f"{PATH}/{check['id']}", check)
    assert "x-ignored-fields" not in again.headers
    assert again.body == {**check, "updated_at": again.body["updated_at"]}


@pytest.mark.usefixtures("virginia")
@pytest.mark.parametrize("prompt", ["x", "x" * 10_000])
async def test_a_prompt_has_one_to_ten_thousand_characters(alice: ApiUser, prompt: str) -> None:
    assert (await made(alice, prompt=prompt))["prompt"] == prompt


@pytest.mark.usefixtures("virginia")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"prompt": ""}, '"prompt" must not be empty.'),
        ({"prompt": None}, '"prompt" is null; use a string.'),
        ({"prompt": "x" * 10_001}, '"prompt" has 10001 characters; use at most 10000.'),
        ({"frequency": 0, "frequencyOffset": 10}, '"frequency" is 0, which only API and TCP'),
        ({"privateLocations": ["default"]}, '"privateLocations" would not be used'),
        ({"groupId": 7}, '"groupId" would have no effect: AGENTIC checks are in no group'),
        ({"retryStrategy": {"type": "FIXED"}}, '"retryStrategy" would have no effect'),
        ({"runParallel": True}, '"runParallel" would have no effect'),
        ({"shouldFail": True}, '"shouldFail" would have no effect'),
        ({"triggerIncident": {"serviceId": "1"}}, '"triggerIncident" would have no effect'),
        ({"script": "x", "localSetupScript": "1"}, '"localSetupScript" would not run'),
        ({"agentRuntime": {"skills": [7]}}, '"agentRuntime.skills[0]" is 7; use a string.'),
    ],
)
async def test_what_the_type_does_not_have_is_refused_in_a_sentence(
    alice: ApiUser, fields: dict[str, Any], said: str
) -> None:
    answer = await alice.post(PATH, {**AGENTIC, **fields})
    assert answer.status == 400, answer.body
    assert answer.body["message"].startswith(said)
    assert answer.body["validation"]["keys"] == [said.split('"')[1]]


async def test_a_region_without_a_location_is_refused(alice: ApiUser) -> None:
    answer = await alice.post(PATH, AGENTIC)
    assert answer.status == 400
    assert answer.body["message"].startswith('"locations[0]" is us-east-1, and nothing runs there')


async def test_its_scheduled_runs_are_missed_at_once_although_agents_are_there(
    api: PublicApi, alice: ApiUser, virginia: str
) -> None:
    await an_agent(api, virginia)
    check = await made(alice)
    await time_passes(api)
    (result,) = (await alice.get(f"/v1/check-results/{check['id']}")).body
    assert (result["status"], result["cause"], result["error"]) == ("MISSED", "no_agent", NOBODY)
    assert (result["hasErrors"], result["hasFailures"]) == (True, False)
    assert (result["runLocation"], result["attempts"]) == ("us-east-1", 1)
    status = (await alice.get(f"/v1/check-statuses/{check['id']}")).body
    assert (status["hasErrors"], status["hasFailures"]) == (True, False)


async def test_a_run_that_is_triggered_says_that_nobody_runs_it(
    api: PublicApi, alice: ApiUser, virginia: str
) -> None:
    await an_agent(api, virginia)
    check = await made(alice, activated=True)
    target = {"target": {"checkId": [check["id"]]}}
    (session,) = (await alice.post("/v1/check-sessions/trigger", target)).body["sessions"]
    assert session["checkType"] == "AGENTIC"
    await time_passes(api)
    path = f"/v1/check-sessions/{session['checkSessionId']}/completion?maxWaitSeconds=1"
    ended = await alice.get(path)
    assert (ended.status, ended.body["status"]) == (200, "FAILED")
    (result,) = ended.body["results"]
    read = await alice.get(f"/v1/check-results/{check['id']}/{result['checkResultId']}")
    assert (read.body["cause"], read.body["error"]) == ("no_agent", NOBODY)


async def an_agent(api: PublicApi, location_id: str) -> None:
    """An agent of this release, which runs all other types, said hello now."""

    def add(connection: Connection) -> None:
        now_ms = api.backend.clock.now_ms(connection)
        row = {
            "location_id": location_id,
            "id": "agent-1",
            "version": "1.0.0",
            "platform": "linux-x86_64",
            "runtimes": {},
            "check_types": [one.value for one in CheckType if one is not CheckType.AGENTIC],
            "slots": {},
            "key_id": None,
            "started_ms": now_ms,
            "last_seen_ms": now_ms,
        }
        connection.execute(agent.insert(), row)

    await api.database.write(add)
