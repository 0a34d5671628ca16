"""`/v1/test-sessions`: a check that is not stored runs once, and nothing else comes of it."""

from typing import Any

import pytest
from sqlalchemy import select

from contract.result import Failure, FailureKind, Outcome, Status
from contract.wire import encode
from service.db.tables.alerting import alert_state, check_alert
from service.db.tables.analytics import rollup_dirty
from service.db.tables.checks import check_, check_state
from service.db.tables.error_groups import error_group
from service.db.tables.job_inputs import variable
from service.db.tables.runs import session
from service.sessions import actions
from tests.builders.check_bodies import check_body
from tests.builders.claimed_jobs import claim, location_of, submit
from tests.builders.code_bundles import a_bundle, suite_body
from tests.servers.public_api import ApiUser, PublicApi

RUN = "/v1/test-sessions/run"
HERE = {"type": "PRIVATE", "slugName": "default"}
FAILED = Outcome(status=Status.FAILED, failure=Failure(kind=FailureKind.TLS, message="expired"))


def a_run(kind: str = "url", /, **fields: Any) -> dict[str, Any]:
    job = {**check_body(kind, **fields), "checkType": kind.upper()}
    return {"checkRunJobs": [job], "runLocation": HERE}


async def count(api: PublicApi, table: Any) -> int:
    return len(await api.database.read(lambda c: c.execute(select(table)).all()))


async def test_a_run_of_a_check_that_is_not_stored_ends_with_its_result_and_nothing_else(
    api: PublicApi, alice: ApiUser
) -> None:
    started = await alice.post(RUN, a_run(name="Typed"))
    assert started.status == 202, started.body
    path = f"/v1/test-sessions/{started.body['testSessionId']}"
    waiting = (await alice.get(path)).body
    (job,) = await claim(api)
    await submit(api, job, FAILED)
    ended = (await alice.get(f"{path}/completion")).body
    (listed,) = ended["results"]
    result = (await alice.get(f"{path}/results/{listed['testSessionResultId']}")).body

    assert (waiting["status"], waiting["results"]) == ("RUNNING", [])
    assert (job.check_name, job.run_source) == ("Typed", "TEST_RECORD")
    assert (ended["status"], listed["hasFailures"]) == ("FAILED", True)
    assert (result["name"], result["runLocation"]) == ("Typed", "default")
    for table in (
        check_,
        check_state,
        check_alert,
        alert_state,
        error_group,
        rollup_dirty,
        variable,
    ):
        assert await count(api, table) == 0, table.name
    assert (await alice.get("/v1/check-alerts")).body == []
    assert (await alice.get(path.replace("test-", "check-"))).status == 404


async def test_its_secrets_are_gone_once_it_has_run(api: PublicApi, alice: ApiUser) -> None:
    secret = {"key": "TOKEN", "value": "very-secret", "secret": True}
    request = {"method": "GET", "url": "https://shop.example/{{TOKEN}}"}
    login = {"username": "u", "password": "also-secret"}
    body = a_run("api", request={**request, "basicAuth": login}, environmentVariables=[secret])
    assert (await alice.post(RUN, body)).status == 202
    (stored,) = await api.database.read(lambda c: c.execute(select(session.c.spec)).scalars().all())
    (job,) = await claim(api)
    await submit(api, job, Outcome(status=Status.PASSED))

    assert b"also-secret" not in stored
    assert [(one.key, one.value) for one in job.variables] == [("TOKEN", "very-secret")]
    assert b"also-secret" in encode(job.spec)
    assert await count(api, variable) == 0
    left = await api.database.read(lambda c: c.execute(select(session.c.spec)).scalars().all())
    assert left == [None]


async def test_hidden_values_are_those_of_the_stored_check_that_is_named(
    api: PublicApi, alice: ApiUser
) -> None:
    secret = {"key": "TOKEN", "value": "very-secret", "secret": True}
    request = {
        "method": "GET",
        "url": "https://shop.example/{{TOKEN}}",
        "basicAuth": {"username": "u", "password": "also-secret"},
    }
    body = check_body("api", request=request, environmentVariables=[secret], activated=False)
    made = (await alice.post("/v1/checks/api", body)).body
    hidden = {**request, "basicAuth": {"username": "u", "password": "*********"}}
    run = a_run("api", request=hidden, environmentVariables=[{**secret, "value": ""}])

    refused = await alice.post(RUN, run)
    started = await alice.post(RUN, {**run, "hiddenValuesOf": made["id"]})
    (job,) = await claim(api)

    assert refused.status == 400
    assert started.status == 202, started.body
    assert b"also-secret" in encode(job.spec)
    assert [one.value for one in job.variables] == ["very-secret"]
    stored = (await alice.get(f"/v1/checks/{made['id']}")).body
    assert stored == made


async def test_an_agent_gets_the_bundle_of_a_suite_that_is_only_tried(
    api: PublicApi, alice: ApiUser
) -> None:
    sha256 = await a_bundle(alice)
    location_id = await location_of(api)
    run = {
        "checkRunJobs": [{**suite_body(sha256), "checkType": "PLAYWRIGHT"}],
        "runLocation": HERE,
    }
    assert (await alice.post(RUN, run)).status == 202

    def find(connection: Any) -> str | None:
        return actions.find_bundle_owner(connection, location_id, sha256)

    assert await api.database.read(find) == alice.secrets.account_id
    (job,) = await claim(api)
    await submit(api, job, Outcome(status=Status.PASSED))
    assert await api.database.read(find) is None


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"runLocation": {"type": "PUBLIC", "region": "mars"}}, "runLocation.region", "default"),
        ({"runLocation": {"type": "PRIVATE"}}, "runLocation.slugName", "default"),
        (a_run("heartbeat"), "checkRunJobs[0].checkType", "waits for pings"),
        (a_run(groupId=7), "checkRunJobs[0].groupId", "7"),
        (a_run(request={"url": "ftp://x"}), "checkRunJobs[0].request.url", "http"),
    ],
)
async def test_what_cannot_run_is_refused_by_the_name_of_its_field(
    api: PublicApi, alice: ApiUser, change: dict[str, Any], field: str, said: str
) -> None:
    answer = await alice.post(RUN, {**a_run(), **change})

    assert answer.status == 400, answer.body
    assert answer.body["validation"]["keys"] == [field]
    assert said in answer.body["message"]
    assert await count(api, session) == 0
