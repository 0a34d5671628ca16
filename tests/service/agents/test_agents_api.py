"""The API of agents: from a hello to a result, its keys, and jobs that change hands."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from service.jobs import unnamed_leases
from service.jobs.unnamed_leases import UnnamedLeases
from tests.servers.service import (
    HELLO,
    RESULTS,
    RunningService,
    a_claimed_job,
    a_result_body,
    serve_service,
)


async def test_from_a_check_to_its_result(service: RunningService) -> None:
    await service.hello()
    waiting = asyncio.create_task(service.claim())
    check_id = await service.a_url_check()
    [job] = (await waiting).body["jobs"]
    assert (job["checkId"], job["spec"]["request"]["url"]) == (check_id, "http://127.0.0.1:9/")
    lease = {"jobId": job["jobId"], "fence": job["fence"]}
    answer = await service.agent("POST", RESULTS, {"results": [a_result_body(job)]})
    assert answer.body == {"accepted": [lease], "duplicates": [], "rejected": []}
    [shown] = (await service.alice.get(f"/v1/check-results/{check_id}")).body
    assert (shown["resultType"], shown["hasFailures"]) == ("FINAL", False)


async def test_hello_tells_the_location_the_leases_and_the_limits(service: RunningService) -> None:
    answer = (await service.hello()).body
    assert answer["location"] == {
        "id": service.secrets.location_id,
        "slugName": "default",
        "proxyUrl": None,
    }
    assert answer["leaseSeconds"] == {"uptime": 60.0, "main": 300.0}
    assert answer["limits"]["results"] == 256


async def test_what_an_agent_cannot_run_is_shown_with_its_cause_and_remedy(
    service: RunningService,
) -> None:
    why = {"type": "ICMP", "cause": "no ping", "remedy": "allow it", "onlyWithScripts": False}
    hello = {**HELLO, "unavailable": [{**why, "cause": "x" * 5_000}, why]}
    assert (await service.agent("POST", "/agent/v1/hello", hello)).status == 200
    [location] = (await service.alice.get("/v1/private-locations?versions=true")).body
    [version] = location["runningAgents"]
    [agent] = version["agents"]
    assert agent["checkTypes"] == HELLO["checkTypes"]
    long, shown = agent["unavailable"]
    assert shown == why
    assert len(long["cause"]) == 1_000


@pytest.mark.parametrize("key", ["", "Bearer", "Bearer pl_wrong", "Basic abc", "Bearer \x80"])
async def test_a_bad_key_is_refused_with_the_one_error_body(
    service: RunningService, key: str
) -> None:
    answer = await service.agent("POST", "/agent/v1/hello", {}, headers={"authorization": key})
    assert answer.status == 401
    assert (answer.body["statusCode"], answer.body["error"]) == (401, "Unauthorized")
    assert answer.body["message"] == (
        "Bad Token: set API_KEY to a key of a private location (pl_…) of this service."
    )


@pytest.mark.parametrize(("first", "status"), [("good", 200), ("bad", 401)])
async def test_of_two_keys_the_first_counts(
    service: RunningService, first: str, status: int
) -> None:
    keys = {"good": service.secrets.location_key, "bad": "pl_wrong"}
    both = sorted(keys, key=lambda name: name != first)
    headers = [("authorization", f"Bearer {keys[name]}") for name in both]
    url = f"{service.url}/agent/v1/hello"
    async with service.http.post(url, json=HELLO, headers=headers) as answer:
        assert answer.status == status


async def test_an_api_key_is_no_location_key(service: RunningService) -> None:
    headers = {"authorization": f"Bearer {service.secrets.api_key}"}
    assert (await service.agent("POST", RESULTS, {}, headers=headers)).status == 401


async def test_a_key_that_was_deleted_is_refused_at_once(service: RunningService) -> None:
    await service.hello()
    path = f"/v1/private-locations/{service.secrets.location_id}"
    [key] = (await service.alice.get(path)).body["keys"]
    await service.alice.post(f"{path}/keys")
    assert (await service.alice.delete(f"{path}/keys/{key['id']}")).status == 204
    assert (await service.hello()).status == 401


async def test_an_agent_below_the_floor_is_told_so(service: RunningService) -> None:
    answer = await service.hello(version="0.0.9")
    assert answer.status == 426
    assert "0.0.9" in answer.body["message"]
    assert answer.body["attributes"] == {"minAgentVersion": "0.1.0"}


async def test_an_agent_that_did_not_say_hello_is_asked_to(service: RunningService) -> None:
    answer = await service.claim()
    assert (answer.status, answer.body["sayHello"], answer.body["jobs"]) == (200, True, [])


async def test_an_agent_is_listed_at_its_location(service: RunningService) -> None:
    await service.hello()
    path = f"/v1/private-locations/{service.secrets.location_id}"
    shown = (await service.alice.get(path)).body
    assert shown["agentCount"] == 1


async def test_a_repeated_claim_gets_the_same_job(service: RunningService) -> None:
    job = await a_claimed_job(service)
    [again] = (await service.claim()).body["jobs"]
    assert (again["jobId"], again["fence"]) == (job["jobId"], job["fence"])


async def test_a_claim_whose_connection_broke_loses_no_job(service: RunningService) -> None:
    await service.hello()
    with pytest.raises(asyncio.TimeoutError):
        async with asyncio.timeout(0.2):
            await service.claim("lost")
    await service.a_url_check()
    claims = {asyncio.create_task(service.claim(name)) for name in ("lost", "other")}
    done, waiting = await asyncio.wait(claims, return_when=asyncio.FIRST_COMPLETED)
    assert [len((await claim).body["jobs"]) for claim in done] == [1]
    for claim in waiting:
        claim.cancel()


async def test_a_renewal_says_which_leases_are_lost(service: RunningService) -> None:
    job = await a_claimed_job(service)
    good = {"jobId": job["jobId"], "fence": job["fence"]}
    bad = [{"jobId": job["jobId"], "fence": 99}, {"jobId": "none", "fence": 1}]
    answer = await service.agent("POST", "/agent/v1/jobs/renew", {"leases": [good, *bad]})
    assert answer.body == {"lost": bad, "cancel": []}


async def test_a_job_that_two_complete_renewals_leave_out_goes_to_the_next_claim(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unnamed_leases, "_APART_S", 0.01)
    job = await a_claimed_job(service)
    lease = {"jobId": job["jobId"], "fence": job["fence"]}
    nothing = {"leases": [], "isComplete": True}
    renewals = [{"leases": []}, nothing, {"leases": [lease], "isComplete": True}, nothing]
    for renewal in renewals:
        await service.agent("POST", "/agent/v1/jobs/renew", renewal)
        await asyncio.sleep(0.02)
    assert (await service.claim("claim-2", waitSeconds=0)).body["jobs"] == []
    await service.agent("POST", "/agent/v1/jobs/renew", nothing)
    [again] = (await service.claim("claim-3", waitSeconds=0)).body["jobs"]
    assert (again["jobId"], again["fence"]) == (job["jobId"], job["fence"] + 1)


def test_a_lease_is_unnamed_once_two_renewals_at_some_distance_left_it_out() -> None:
    now = 0.0
    unnamed = UnnamedLeases(lambda: now)
    who, lease, other = ("cellar", "agent-1"), (1, 7), (2, 9)

    def note(*named: tuple[int, int]) -> list[tuple[int, int]]:
        return list(unnamed.note(who, held=[lease, other], named=named))

    assert note(other) == []
    now = 5.0
    assert note(other) == []
    now = 10.0
    assert note(other) == [lease]
    assert note(lease, other) == []
    now = 20.0
    assert note(other) == []


async def test_a_job_of_a_deleted_check_is_lost(service: RunningService) -> None:
    job = await a_claimed_job(service)
    await service.alice.delete(f"/v1/checks/{job['checkId']}")
    lease = {"jobId": job["jobId"], "fence": job["fence"]}
    renewed = await service.agent("POST", "/agent/v1/jobs/renew", {"leases": [lease]})
    assert renewed.body["lost"] == [lease]
    sent = await service.agent("POST", RESULTS, {"results": [a_result_body(job)]})
    assert sent.body["rejected"][0]["jobId"] == job["jobId"]


async def test_a_released_job_goes_to_the_next_claim(service: RunningService) -> None:
    job = await a_claimed_job(service)
    waiting = asyncio.create_task(service.claim("claim-2"))
    body = {"jobs": [{"jobId": job["jobId"], "fence": job["fence"], "reason": "draining"}]}
    assert (await service.agent("POST", "/agent/v1/jobs/release", body)).status == 200
    [again] = (await waiting).body["jobs"]
    assert (again["jobId"], again["fence"]) == (job["jobId"], job["fence"] + 1)


async def test_an_agent_must_say_who_it_is(service: RunningService) -> None:
    answer = await service.agent(
        "POST",
        "/agent/v1/jobs/claim",
        {"claimId": "c", "slots": {}, "checkTypes": []},
        agent_id="",
    )
    assert answer.status == 400
    assert "1 to 100" in answer.body["message"]


async def test_relayed_pings_reach_their_heartbeat(service: RunningService) -> None:
    await service.hello()
    beat = {"period": 1, "periodUnit": "minutes", "grace": 30, "graceUnit": "seconds"}
    made = await service.alice.post(
        "/v1/checks/heartbeat",
        {"name": "Nightly", "heartbeat": {**beat, "pingToken": "nightly-token"}},
    )
    assert made.status == 201, made.body
    ping = {
        "pingId": "p1",
        "token": "nightly-token",
        "receivedAt": "2026-11-21T10:00:00Z",
        "ageSeconds": 20,
        "method": "GET",
    }
    for _ in range(2):
        assert (await service.agent("POST", "/agent/v1/pings", {"pings": [ping]})).status == 200
    [job] = (await service.claim()).body["jobs"]
    assert 20 <= job["spec"]["silentForSeconds"] < 60


async def test_error_events_are_taken(service: RunningService) -> None:
    event = {
        "message": "x" * 100_000,
        "stackTrace": "",
        "agentVersion": "1.0.0",
        "platform": "linux",
        "runtimeVersion": "3.11",
    }
    assert (await service.agent("POST", "/agent/v1/events", {"events": [event]})).status == 200


async def test_long_polls_are_answered_when_the_service_stops(tmp_path: Path) -> None:
    async with serve_service(tmp_path) as running:
        await running.hello()
        polls = [asyncio.create_task(running.claim(f"claim-{n}")) for n in range(100)]
        await asyncio.sleep(0.3)
        await running.service.end_long_polls()
        answers = await asyncio.gather(*polls)
    assert {(answer.status, answer.body["nextPollSeconds"]) for answer in answers} == {(200, 1)}


async def test_agents_do_not_see_other_paths_of_theirs(service: RunningService) -> None:
    assert (await service.agent("POST", "/agent/v1/none", {})).status == 404
    assert (await service.agent("GET", "/agent/v1/hello")).status == 405


async def test_the_document_is_about_the_public_api_alone(service: RunningService) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{service.url}/openapi.json") as answer:
        paths = (await answer.json())["paths"]
    assert not [path for path in paths if path.startswith(("/agent", "/ping"))]


async def test_two_agents_that_chose_one_claim_id_share_no_job(service: RunningService) -> None:
    await service.hello()
    await service.hello(agentId="agent-2")
    await service.a_url_check()
    claim = {"claimId": "the same", "slots": {"uptime": 8}, "checkTypes": ["URL"]}
    path = "/agent/v1/jobs/claim"
    patient, hasty = {**claim, "waitSeconds": 30}, {**claim, "waitSeconds": 0.2}
    first = await service.agent("POST", path, patient, agent_id="agent-1")
    second = await service.agent("POST", path, hasty, agent_id="agent-2")
    assert (len(first.body["jobs"]), second.body["jobs"]) == (1, [])


async def test_a_job_is_not_kept_by_a_socket_that_was_closed_during_its_poll(
    service: RunningService,
) -> None:
    await service.hello()
    await service.hello(agentId="agent-2")
    host, port = service.url.removeprefix("http://").split(":")
    body = json.dumps(
        {"claimId": "c", "slots": {"uptime": 8}, "checkTypes": ["URL"], "waitSeconds": 30}
    )
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"POST /agent/v1/jobs/claim HTTP/1.1\r\nhost: x\r\nx-agent-id: agent-1\r\n"
        f"authorization: Bearer {service.secrets.location_key}\r\n"
        f"content-length: {len(body)}\r\n\r\n{body}".encode()
    )
    await writer.drain()
    while not service.service.claim_queue.waiting_agents():  # noqa: ASYNC110 - a claim_queue tells nobody
        await asyncio.sleep(0.01)
    writer.transport.abort()
    check_id = await service.a_url_check()
    taken = await service.claim("d")
    assert [job["checkId"] for job in taken.body["jobs"]] == [check_id]


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("hello", {**HELLO, "agentId": "ghost"}),
        ("jobs/claim", {"claimId": "c", "slots": {"uptime": 8}, "checkTypes": ["URL"]}),
        ("jobs/renew", {"leases": []}),
        ("jobs/release", {"jobs": []}),
        ("results", {"results": []}),
        ("pings", {"pings": []}),
        ("events", {"events": []}),
    ],
)
async def test_a_key_that_ends_while_a_call_comes_in_opens_nothing(
    service: RunningService, call: str, body: dict[str, Any]
) -> None:
    await service.hello()
    await service.a_url_check()
    location = f"/v1/private-locations/{service.secrets.location_id}"
    [key] = (await service.alice.get(location)).body["keys"]
    ended = asyncio.Event()

    async def slow_body() -> AsyncIterator[bytes]:
        yield json.dumps(body)[:5].encode()
        await ended.wait()
        yield json.dumps(body)[5:].encode()

    calling = asyncio.create_task(service.agent("POST", f"/agent/v1/{call}", data=slow_body()))
    await service.alice.get(location)  # an answer, so the call's beginning was read as well
    await service.alice.delete(f"{location}/keys/{key['id']}")
    ended.set()
    assert (await calling).status == 401
    agents = await service.alice.get(f"{location}?versions=true")
    assert "ghost" not in str(agents.body)
