"""Many checks that are not stored run together: what clients send, wait for, list and cancel."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from contract.checks import BrowserSpec
from contract.result import Failure, FailureKind, Outcome, Status
from service.db.tables.job_inputs import variable
from service.db.tables.runs import job as job_table
from service.db.tables.runs import session
from service.locations.regions import parse_regions
from service.sessions import actions, store
from service.sessions.model import ProgressKind, RunProgressed, SessionStatus
from tests.builders.check_bodies import check_body
from tests.builders.claimed_jobs import claim, submit
from tests.servers.public_api import Answer, ApiUser, PublicApi, serve_public_api

RUN = "/v1/test-sessions/run"
HERE = {"type": "PRIVATE", "slugName": "default"}
PASSED = Outcome(status=Status.PASSED)
FAILED = Outcome(status=Status.FAILED, failure=Failure(kind=FailureKind.TLS, message="expired"))
SUITE = "3f1c0b7e-suite"
BROWSER = {"script": "require('@playwright/test').test('works', async () => {})"}
AT_ONCE = {"type": "FIXED", "baseBackoffSeconds": 0, "maxRetries": 1}


def a_job(name: str, kind: str = "url", **fields: Any) -> dict[str, Any]:
    source = {"checkRunSuiteId": SUITE, "checkRunId": f"{name}-run", "updateSnapshots": False}
    least = BROWSER if kind == "browser" else check_body(kind)
    body = {**least, "name": name, "checkType": kind.upper()}
    named = {"logicalId": name, "filePath": f"{name}.check.ts", "sourceInfo": source}
    return {**body, **named, "testRetryStrategy": None, **fields}


def a_run(*jobs: dict[str, Any], **fields: Any) -> dict[str, Any]:
    rest = {"shouldRecord": True, "streamLogs": False, "refreshCache": False, "repoInfo": None}
    whole = {"name": "Shop", "project": {"logicalId": "shop"}, "environment": "staging", **rest}
    return {**whole, "checkRunJobs": list(jobs), "runLocation": HERE, **fields}


async def started(user: ApiUser, *jobs: dict[str, Any], **fields: Any) -> Any:
    answer = await user.post(RUN, a_run(*jobs, **fields))
    assert answer.status == 202, answer.body
    return answer.body


async def send_packed(user: ApiUser, path: str, body: Any) -> Answer:
    """Send it as the established service's clients do."""
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    packed = gzip.compress(json.dumps(body).encode())
    return await user.ask("POST", path, headers=headers, data=packed)


async def rows(api: PublicApi, table: Any) -> list[Any]:
    return list(await api.database.read(lambda c: c.execute(select(table)).all()))


async def test_checks_of_several_types_run_and_are_told_by_their_own_names(
    api: PublicApi, alice: ApiUser
) -> None:
    answer = await started(alice, a_job("home"), a_job("api", "api"), a_job("port", "tcp"))
    jobs = {one.check_name: one for one in await claim(api)}
    await submit(api, jobs["home"], PASSED)
    await submit(api, jobs["api"], FAILED)
    going_on = (await alice.get(f"/v1/test-sessions/{answer['testSessionId']}")).body
    await submit(api, jobs["port"], PASSED)
    path = f"/v1/test-sessions/{answer['testSessionId']}"
    ended = (await alice.get(f"{path}/completion")).body

    assert set(answer["sequenceIds"]) == {"home", "api", "port"}
    assert answer["testResultIds"] == answer["sequenceIds"]
    assert (going_on["status"], going_on["stoppedAt"]) == ("RUNNING", None)
    assert (ended["name"], ended["status"]) == ("Shop", "FAILED")
    assert ended["metadata"] == {"project": "shop", "repoInfo": None, "environment": "staging"}
    seen = {one["name"]: (one["status"], one["checkType"]) for one in ended["results"]}
    assert seen == {"home": ("PASSED", "URL"), "api": ("FAILED", "API"), "port": ("PASSED", "TCP")}
    by_session = (await alice.get(f"{path}/results/{answer['sequenceIds']['api']}")).body
    assert (by_session["name"], by_session["hasFailures"]) == ("api", True)


async def test_a_packed_body_is_read_and_next_is_the_same(api: PublicApi, alice: ApiUser) -> None:
    answer = await send_packed(alice, "/next/test-sessions/run", a_run(a_job("home")))
    assert answer.status == 202, answer.body
    assert [one.check_name for one in await claim(api)] == ["home"]


async def test_runs_of_a_project_may_have_megabytes_of_scripts(alice: ApiUser) -> None:
    large = {"path": "large.js", "content": "//" + "x" * 500_000}
    jobs = [a_job(f"browser-{number}", "browser", dependencies=[large]) for number in range(4)]
    answer = await send_packed(alice, RUN, a_run(*jobs))
    assert answer.status == 202, answer.body
    assert set(answer.body["sequenceIds"]) == {one["logicalId"] for one in jobs}


async def test_files_are_named_by_their_numbers(api: PublicApi, alice: ApiUser) -> None:
    files = [{"path": "a.js", "content": "1"}, {"path": "b.js", "content": "2"}]
    job = a_job("login", "browser", dependencies=[1])
    await started(alice, job, sharedFiles=files)
    (claimed,) = await claim(api)
    assert isinstance(claimed.spec, BrowserSpec)
    assert [(one.path, one.content) for one in claimed.spec.dependencies] == [("b.js", "2")]

    refused = await alice.post(RUN, a_run({**job, "dependencies": [2]}, sharedFiles=files))
    assert refused.status == 400
    assert refused.body["validation"]["keys"] == ["checkRunJobs[0].dependencies[0]"]
    assert "sharedFiles has 2 files" in refused.body["message"]


async def test_a_group_that_is_not_stored_gives_its_settings_but_not_its_places(
    api: PublicApi, alice: ApiUser
) -> None:
    group = {
        "name": "Shop",
        "v": 2,
        "locations": ["eu-west-1"],
        "privateLocations": ["nowhere"],
        "environmentVariables": [
            {"key": "TOKEN", "value": "of-group", "locked": True},
            {"key": "OTHER", "value": "of-group"},
        ],
        "apiCheckDefaults": {
            "url": "https://shop.example",
            "headers": [{"key": "x-group", "value": "1"}],
        },
        "localSetupScript": "console.log('group')",
    }
    own = [{"key": "TOKEN", "value": "own", "locked": True}]
    job = a_job(
        "api",
        "api",
        request={"method": "GET", "url": "{{GROUP_BASE_URL}}/{{TOKEN}}/{{OTHER}}"},
        environmentVariables=own,
        group=group,
        groupId={"ref": "shop-group"},
    )
    await started(alice, job)
    (claimed,) = await claim(api)

    assert claimed.location == "default"
    found = {one.key: one.value for one in claimed.variables}
    expected = {"TOKEN": "own", "OTHER": "of-group", "GROUP_BASE_URL": "https://shop.example"}
    assert found == expected
    assert "console.log('group')" in str(claimed.spec)
    assert "x-group" in str(claimed.spec)
    await submit(api, claimed, PASSED)
    assert await rows(api, variable) == []


async def test_a_reference_to_a_group_needs_the_group(alice: ApiUser) -> None:
    refused = await alice.post(RUN, a_run(a_job("home", groupId={"ref": "gone"})))
    assert refused.status == 400
    assert refused.body["validation"]["keys"] == ["checkRunJobs[0].groupId"]


async def test_a_failed_run_is_tried_again_as_the_test_says(api: PublicApi, alice: ApiUser) -> None:
    answer = await started(alice, a_job("home", testRetryStrategy=AT_ONCE))
    (first,) = await claim(api)
    await submit(api, first, FAILED)
    (again,) = await claim(api)
    await submit(api, again, PASSED)
    ended = (await alice.get(f"/v1/test-sessions/{answer['testSessionId']}/completion")).body

    assert (first.attempt, again.attempt) == (1, 2)
    kinds = [(one["resultType"], one["status"]) for one in ended["results"]]
    assert kinds == [("ATTEMPT", "FAILED"), ("FINAL", "PASSED")]
    assert ended["status"] == "PASSED"


async def test_who_follows_a_suite_hears_of_its_runs(api: PublicApi, alice: ApiUser) -> None:
    heard: list[RunProgressed] = []
    api.database.listen(RunProgressed, heard.append)
    answer = await started(alice, a_job("home"), shouldRecord=False)
    (claimed,) = await claim(api)
    await submit(api, claimed, PASSED)

    assert [one.kind for one in heard] == [ProgressKind.STARTED, ProgressKind.RESULT]
    assert {one.sequence_id for one in heard} == set(answer["sequenceIds"].values())
    assert {(one.account_id, one.suite_id, one.run_id) for one in heard} == {
        (alice.secrets.account_id, SUITE, "home-run")
    }
    assert claimed.run_source == "TEST_NO_RECORD"


async def test_a_session_that_is_not_recorded_has_no_id_and_is_not_listed(alice: ApiUser) -> None:
    answer = await started(alice, a_job("home"), shouldRecord=False)
    path = f"/v1/test-sessions/scheduling/{answer['schedulingId']}/completion"
    scheduling = (await alice.get(path)).body

    assert set(answer) == {"schedulingId", "sequenceIds"}
    assert (scheduling["status"], scheduling["testSessionId"]) == ("SUCCEEDED", None)
    assert scheduling["checksTotal"] == 1
    assert (await alice.get("/v1/test-sessions")).body["entries"] == []


async def test_sessions_are_listed_newest_first_by_a_cursor_and_by_status(
    api: PublicApi, alice: ApiUser
) -> None:
    ids = []
    for _ in range(3):
        ids.append((await started(alice, a_job("home")))["testSessionId"])
        await asyncio.sleep(0.002)
    (first, *_) = await claim(api)
    await submit(api, first, PASSED)
    page = (await alice.get("/v1/test-sessions?limit=2")).body
    rest = (await alice.get(f"/v1/test-sessions?limit=2&nextId={page['nextId']}")).body
    passed = (await alice.get("/v1/test-sessions?statuses=PASSED&statuses=CANCELLED")).body

    assert [one["testSessionId"] for one in page["entries"]] == [ids[2], ids[1]]
    assert [one["testSessionId"] for one in rest["entries"]] == [ids[0]]
    assert rest["nextId"] is None
    assert [one["testSessionId"] for one in passed["entries"]] == [ids[0]]
    assert (await alice.get("/v1/test-sessions?nextId=x")).status == 400


async def test_a_list_names_the_runs_that_passed_failed_go_on_and_were_cancelled(
    api: PublicApi, alice: ApiUser
) -> None:
    names = ("home", "api", "cart", "help")
    answer = await started(alice, *map(a_job, names))
    ids = answer["sequenceIds"]
    for job in await claim(api):
        if job.check_name != "cart":
            await submit(api, job, FAILED if job.check_name == "api" else PASSED)
    path = f"/v1/test-sessions/{answer['testSessionId']}"
    (listed,) = (await alice.get("/v1/test-sessions")).body["entries"]
    assert sorted(listed["passed"]) == sorted([ids["home"], ids["help"]])
    assert listed["failed"] == [ids["api"]]
    assert (listed["running"], listed["cancelled"]) == ([ids["cart"]], [])

    await alice.post(f"{path}/cancel", {})
    (listed,) = (await alice.get("/v1/test-sessions")).body["entries"]
    assert (listed["running"], listed["cancelled"]) == ([], [ids["cart"]])


async def test_cancelling_drops_what_waits_and_what_runs(api: PublicApi, alice: ApiUser) -> None:
    heard: list[RunProgressed] = []
    api.database.listen(RunProgressed, heard.append)
    secret = [{"key": "TOKEN", "value": "x", "locked": True}]
    answer = await started(
        alice, a_job("home"), a_job("api", "api", environmentVariables=secret), a_job("cart")
    )
    running, *_ = await claim(api)
    await submit(api, running, FAILED)
    path = f"/v1/test-sessions/{answer['testSessionId']}"
    waiting = asyncio.create_task(alice.get(f"{path}/completion"))
    cancelled = await alice.post(f"{path}/cancel")
    again = await alice.post(f"{path}/cancel", {})

    assert cancelled.status == 200, cancelled.body
    assert cancelled.body["status"] == "CANCELLED"
    assert (await waiting).body["status"] == "CANCELLED"
    assert (again.status, again.body["error"]) == (403, "Forbidden")
    assert [one.kind for one in heard].count(ProgressKind.CANCELLED) == 2
    assert await rows(api, job_table) == []
    assert await rows(api, variable) == []
    assert [one.spec for one in await rows(api, session)] == [None] * 3


async def test_one_check_of_a_session_can_be_cancelled(api: PublicApi, alice: ApiUser) -> None:
    answer = await started(alice, a_job("home"), a_job("cart"))
    path = f"/v1/test-sessions/{answer['testSessionId']}"
    one = await alice.post(f"{path}/cancel", {"sequenceId": answer["sequenceIds"]["cart"]})
    (left,) = await claim(api)
    await submit(api, left, PASSED)

    assert (one.status, one.body["status"]) == (200, "RUNNING")
    assert left.check_name == "home"
    assert (await alice.get(path)).body["status"] == "PASSED"
    assert (await alice.post(f"{path}/cancel", {"sequenceId": "none"})).status == 404


async def test_people_are_led_to_the_page_of_a_session(alice: ApiUser) -> None:
    answer = await started(alice, a_job("home"))
    path = f"/next/test-sessions/{answer['testSessionId']}"
    link = (await alice.get(f"{path}/link")).body["link"]
    assert link.endswith(f"/test-sessions/{answer['testSessionId']}")


async def test_names_and_suites_of_a_session_belong_together(alice: ApiUser) -> None:
    twice = await alice.post(RUN, a_run(a_job("home"), a_job("home")))
    other = a_job("cart", sourceInfo={"checkRunSuiteId": "another", "checkRunId": "1"})
    mixed = await alice.post(RUN, a_run(a_job("home"), other))
    bad = a_job("home", sourceInfo={"checkRunSuiteId": "a/+/#", "checkRunId": "1"})
    topic = await alice.post(RUN, a_run(bad))

    assert twice.body["validation"]["keys"] == ["checkRunJobs[1].logicalId"]
    assert mixed.body["validation"]["keys"] == ["checkRunJobs"]
    assert topic.body["validation"]["keys"] == ["checkRunJobs[0].sourceInfo.checkRunSuiteId"]


async def test_a_wrong_check_among_many_is_named_and_nothing_runs(
    api: PublicApi, alice: ApiUser
) -> None:
    jobs = (a_job("home"), a_job("suite", "url", groupId=7))
    refused = await alice.post(RUN, a_run(*jobs))

    assert refused.status == 400
    assert refused.body["validation"]["keys"] == ["checkRunJobs[1].groupId"]
    assert await rows(api, job_table) == []


async def test_a_location_is_found_by_its_id(api: PublicApi, alice: ApiUser) -> None:
    place = {"type": "PRIVATE", "id": alice.secrets.location_id, "slugName": "default"}
    await started(alice, a_job("home"), runLocation=place)
    assert [one.location for one in await claim(api)] == ["default"]
    strange = {"type": "PRIVATE", "id": "none"}
    refused = await alice.post(RUN, a_run(a_job("home"), runLocation=strange))
    assert refused.body["validation"]["keys"] == ["runLocation.id"]


@pytest.fixture
async def mapped(tmp_path: Path, postgresql_url: str | None) -> AsyncIterator[PublicApi]:
    regions = parse_regions("*=default")
    async with serve_public_api(
        tmp_path / "mapped", regions=regions, postgresql_url=postgresql_url
    ) as api:
        yield api


async def test_a_region_runs_where_it_is_mapped_to(mapped: PublicApi) -> None:
    region = {"type": "PUBLIC", "region": "eu-central-1"}
    await started(mapped.alice, a_job("home"), runLocation=region)
    assert [one.location for one in await claim(mapped)] == ["default"]


async def test_a_region_that_leads_nowhere_is_refused_with_the_locations(alice: ApiUser) -> None:
    region = {"type": "PUBLIC", "region": "eu-central-1"}
    refused = await alice.post(RUN, a_run(a_job("home"), runLocation=region))
    assert refused.status == 400
    assert "REGION_LOCATIONS" in refused.body["message"]
    assert "there are default" in refused.body["message"]


async def test_a_session_whose_checks_an_older_replica_ended_ends_once_it_is_looked_at(
    api: PublicApi, alice: ApiUser
) -> None:
    test_id = (await started(alice, a_job("home"), a_job("cart")))["testSessionId"]

    def end(connection: Connection) -> None:
        ends = (SessionStatus.PASSED, SessionStatus.FAILED)
        for one, status in zip(store.list_members(connection, test_id), ends, strict=True):
            store.settle(connection, one.id, status=status, pending=0, stopped_ms=one.started_ms)

    await api.database.write(end)
    answer = await alice.get(f"/v1/test-sessions/{test_id}/completion?maxWaitSeconds=5")
    assert (answer.status, answer.body["status"]) == (200, "FAILED")


async def test_variables_go_with_a_session_that_never_ended(api: PublicApi, alice: ApiUser) -> None:
    secret = {"key": "TOKEN", "value": "s3cret", "locked": True}
    await started(alice, a_job("home", "api", environmentVariables=[secret]))
    now_ms = await api.database.read(api.backend.clock.now_ms)
    later_ms = now_ms + 40 * 86_400_000
    gone = await api.database.write(lambda c: actions.remove_old(c, before_ms=later_ms, most=100))
    assert (gone, await rows(api, variable)) == (1, [])
