import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from service.checks.environment_urls import NO_HOSTS, move_url, parse_hosts
from service.http.errors import InvalidError
from service.sessions.ad_hoc import starting
from tests.builders.check_bodies import check_body, script_body
from tests.servers.public_api import Answer
from tests.servers.service import RunningService, a_result_body, serve_service

PREVIEW = "https://pr-7.preview.test"
BROWSER = {"checkTypes": ["URL", "API", "BROWSER"], "slots": {"uptime": 8, "main": 2}}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    async with serve_service(
        tmp_path, environment_hosts=parse_hosts("*.preview.test"), public_url="http://picket.test"
    ) as running:
        yield running


async def a_link(service: RunningService, kind: str, **fields: Any) -> tuple[str, str]:
    """A check that is due much later, and its link."""
    make = script_body if kind == "browser" else check_body
    body = make(kind, doubleCheck=False, frequency=1440, **fields)
    check_id = (await service.alice.post(f"/v1/checks/{kind}", body)).body["id"]
    made = (await service.alice.post(f"/v1/triggers/checks/{check_id}")).body
    return check_id, f"/checks/{check_id}/trigger/{made['token']}"


async def claimed_by(service: RunningService, url: str, *, not_of: str) -> tuple[Any, Any]:
    """The call of a link, and the job that it brought about."""
    await service.hello(**BROWSER)
    call = asyncio.create_task(service.alice.get(url))
    for number in range(4):
        answer = await service.claim(f"claim-{number}", **BROWSER)
        for job in answer.body["jobs"]:
            if job["checkId"] != not_of:
                return call, job
    raise AssertionError("no job came of it")


async def sent_results(service: RunningService, job: Any, status: str) -> None:
    result = a_result_body(job, status)
    answer: Answer = await service.agent("POST", "/agent/v1/results", {"results": [result]})
    assert len(answer.body["accepted"]) == 1, answer.body


async def test_a_link_runs_a_copy_of_an_api_check_at_the_other_address(
    service: RunningService,
) -> None:
    request = {"method": "GET", "url": "https://shop.test/health?deep=1"}
    check_id, link = await a_link(service, "api", request=request)
    before = (await service.alice.get("/v1/check-statuses")).body

    call, job = await claimed_by(service, f"{link}?environmentUrl={PREVIEW}", not_of=check_id)
    assert job["spec"]["request"]["url"] == f"{PREVIEW}/health?deep=1"
    await sent_results(service, job, "FAILED")

    answer = await call
    assert (answer.status, answer.body.get("hasFailures")) == (503, True), answer.body
    test_id = answer.body["attributes"]["testSessionId"]
    assert (await service.alice.get(f"/v1/test-sessions/{test_id}")).body["status"] == "FAILED"
    stored = (await service.alice.get(f"/v1/checks/{check_id}")).body
    assert stored["request"]["url"] == request["url"]
    assert (await service.alice.get("/v1/check-statuses")).body == before


async def test_a_script_has_the_other_address_as_a_variable(service: RunningService) -> None:
    check_id, link = await a_link(service, "browser")
    url = f"{link}?environmentUrl={PREVIEW}/shop"
    call, job = await claimed_by(service, url, not_of=check_id)
    (given,) = [one for one in job["variables"] if one["key"] == "ENVIRONMENT_URL"]
    assert given["value"] == f"{PREVIEW}/shop"
    await sent_results(service, job, "PASSED")
    assert (await call).status == 200


async def test_a_group_runs_at_the_other_address_too(service: RunningService) -> None:
    group = (await service.alice.post("/v1/check-groups", {"name": "Shop"})).body
    check_id, _ = await a_link(service, "url", groupId=group["id"])
    made = (await service.alice.post(f"/v1/triggers/check-groups/{group['id']}")).body
    link = f"/check-groups/{group['id']}/trigger/{made['token']}?environmentUrl={PREVIEW}"
    call, job = await claimed_by(service, link, not_of=check_id)
    assert job["spec"]["request"]["url"].startswith(PREVIEW)
    await sent_results(service, job, "PASSED")
    assert (await call).status == 200


async def test_a_group_with_more_checks_than_a_test_session_may_have_runs_none(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "MOST_JOBS", 1)
    group = (await service.alice.post("/v1/check-groups", {"name": "Shop"})).body
    for _ in range(2):
        await a_link(service, "url", groupId=group["id"])
    made = (await service.alice.post(f"/v1/triggers/check-groups/{group['id']}")).body
    link = f"/check-groups/{group['id']}/trigger/{made['token']}?environmentUrl={PREVIEW}"
    answer = await service.alice.get(link)
    assert answer.status == 400
    assert "2 checks, and a test session runs 1 at most" in answer.body["message"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://elsewhere.test", "has *.preview.test."),
        ("https://preview.test", "must not lead to preview.test"),
        ("ftp://a.preview.test", "must be an http or https URL"),
        ("https://u:p@a.preview.test", "must not have a user name or password in it."),
        ("https://a.preview.test:x/", "must be an http or https URL"),
    ],
)
async def test_an_address_that_is_not_allowed_runs_nothing(
    service: RunningService, url: str, reason: str
) -> None:
    _, link = await a_link(service, "api")
    answer = await service.alice.get(f"{link}?environmentUrl={url}")
    assert answer.status == 400
    assert answer.body["validation"] == {"source": "query", "keys": ["environmentUrl"]}
    assert reason in answer.body["message"]


@pytest.mark.parametrize(
    "url",
    [
        "http://elsewhere.test\\.preview.test/",  # for browsers the backslash begins the path
        "http://elsewhere.test%5C.preview.test",
        "http://.preview.test",
        "https://a.preview.test/?key={{KEY}}",
        "https://{{KEY}}.preview.test",
    ],
)
def test_an_address_that_browsers_or_variables_would_make_another_one_is_refused(url: str) -> None:
    with pytest.raises(InvalidError, match="must be an http or https URL"):
        parse_hosts("*.preview.test").read_url(url)


@pytest.mark.parametrize("url", [f"{PREVIEW}:8443/a?b=c#d", "http://10.0.0.7", "http://[::1]:80/"])
def test_where_all_hosts_are_allowed_addresses_are_too(url: str) -> None:
    assert parse_hosts("*").read_url(url) == url


async def test_whoever_has_no_link_is_not_told_which_hosts_are_allowed(
    service: RunningService,
) -> None:
    check_id, _ = await a_link(service, "api")
    answer = await service.alice.get(
        f"/checks/{check_id}/trigger/guessed?environmentUrl=https://elsewhere.test"
    )
    assert answer.status == 404
    assert "preview.test" not in str(answer.body)


def test_without_the_setting_no_address_is_allowed() -> None:
    with pytest.raises(InvalidError, match="ENVIRONMENT_URL_HOSTS names no host"):
        NO_HOSTS.read_url(PREVIEW)


@pytest.mark.parametrize("text", ["https://preview.test", "preview.test:8080", "*preview.test"])
def test_a_setting_that_names_no_host_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="write a host without a port"):
        parse_hosts(text)


@pytest.mark.parametrize(
    ("url", "wanted", "moved"),
    [
        ("https://shop.test/a?b=c#d", "http://p.test:81", "http://p.test:81/a?b=c#d"),
        ("https://shop.test", "http://p.test/", "http://p.test"),
        ("{{BASE}}/a/{{ID}}", "http://p.test", "http://p.test/a/{{ID}}"),
        ("https://{{HOST}}:{{PORT}}/a", "http://p.test", "http://p.test/a"),
        ("https://x.test{{PATH}}", "http://p.test", "http://p.test{{PATH}}"),
        ("https://x.test:81{{PATH}}?q", "http://p.test", "http://p.test{{PATH}}?q"),
        ("https://shop.{{DOMAIN}}/a", "http://p.test", "http://p.test/a"),
        ("{{SCHEME}}://{{HOST}}/p", "http://p.test", "http://p.test/p"),
        ("https://shop.test/a", "http://p.test/b", "http://p.test/b"),
        ("https://shop.test/a", "http://p.test?b=c", "http://p.test?b=c"),
    ],
)
def test_a_path_is_kept_where_the_other_address_has_none(url: str, wanted: str, moved: str) -> None:
    assert move_url(url, wanted) == moved
