"""Files of a test's result are listed, and read with the same key."""

import hashlib
from typing import Any

from service.web.cookies import SESSION_COOKIE
from tests.builders.check_bodies import script_body
from tests.servers.service import RunningService

TRACE = b"PK trace " * 500
SHA = hashlib.sha256(TRACE).hexdigest()
FILES = {"trace.zip": "trace", "film.webm": "video", "end.png": "screenshot"}
KINDS = ("testTraceLinks", "videoLinks", "screenshotLinks")
RUN = "/v1/test-sessions/run"


async def a_test_with_a_trace(service: RunningService) -> Any:
    """A test of a browser check whose agent sent a trace and more; what was started."""
    await service.hello(checkTypes=["BROWSER"], slots={"main": 2})
    job = {**script_body("browser"), "checkType": "BROWSER", "logicalId": "login"}
    place = {"type": "PRIVATE", "slugName": "default"}
    started = (await service.alice.post(RUN, {"checkRunJobs": [job], "runLocation": place})).body
    claim = {"slots": {"main": 2}, "checkTypes": ["BROWSER"]}
    (claimed,) = (await service.claim("claim-1", **claim)).body["jobs"]
    headers = {"x-content-sha256": SHA, "x-fence": str(claimed["fence"])}
    for name in FILES:
        path = f"/agent/v1/artifacts/{claimed['jobId']}/{name}"
        assert (await service.agent("PUT", path, data=TRACE, headers=headers)).status == 200
    size = {"sizeBytes": len(TRACE), "sha256": SHA}
    artifacts = [{"name": name, "kind": kind, **size} for name, kind in FILES.items()]
    result = {
        **{name: claimed[name] for name in ("jobId", "fence", "runId", "checkId")},
        "checkType": "BROWSER",
        "agentId": "agent-1",
        "startedAt": "2026-11-22T08:00:00Z",
        "startedAfterSeconds": 0.1,
        "tookSeconds": 1,
        "outcome": {"status": "PASSED", "artifacts": artifacts},
    }
    answer = await service.agent("POST", "/agent/v1/results", {"results": [result]})
    assert len(answer.body["accepted"]) == 1, answer.body
    return started


async def sign_in(service: RunningService) -> str:
    """The cookie of a person."""
    form = {"key": service.secrets.api_key}
    address = f"{service.url}/sign-in"
    async with service.http.post(address, data=form, allow_redirects=False) as answer:
        return f"{SESSION_COOKIE}={answer.cookies[SESSION_COOKIE].value}"


async def test_the_manifest_leads_to_the_files(service: RunningService) -> None:
    started = await a_test_with_a_trace(service)
    path = f"/v1/test-sessions/{started['testSessionId']}"
    (listed,) = (await service.alice.get(path)).body["results"]
    manifest = (
        await service.alice.get(f"{path}/results/{listed['testSessionResultId']}/assets")
    ).body
    asset = manifest["assets"][0]
    address = asset["url"].removeprefix(service.url)
    file = await service.alice.get(address)

    assert (asset["name"], asset["type"], asset["isKept"]) == ("trace.zip", "trace", True)
    assert (manifest["entriesTotal"], manifest["truncated"]) == (3, False)
    assert (file.status, file.body) == (200, TRACE.decode())
    assert (await service.alice.get(f"{address}.none")).status == 404


async def test_paths_in_a_result_lead_to_its_files(service: RunningService) -> None:
    started = await a_test_with_a_trace(service)
    path = f"/v1/test-sessions/{started['testSessionId']}/results"
    result = (await service.alice.get(f"{path}/{started['sequenceIds']['login']}")).body
    (trace,) = result["browserCheckResult"]["playwrightTestTraces"]
    file = await service.alice.get(trace)

    assert trace == f"{path}/{result['id']}/assets/trace.zip"
    assert (file.status, file.body) == (200, TRACE.decode())


async def test_links_of_a_result_lead_to_the_pages_of_its_run(service: RunningService) -> None:
    started = await a_test_with_a_trace(service)
    sequence_id = started["sequenceIds"]["login"]
    path = f"/next/test-sessions/{started['testSessionId']}/results/{sequence_id}/links"
    links = (await service.alice.get(path)).body
    page = links["testResultLink"]

    assert page.endswith(f"/checks/try/{sequence_id}/at/default")
    assert links["testTraceLinks"] == [f"{page}/traces/trace.zip"]
    assert links["videoLinks"] == [f"{page}/files/film.webm"]
    assert links["screenshotLinks"] == [f"{page}/files/end.png"]
    signed_in = {"cookie": await sign_in(service)}
    for link in [page, *(link for name in KINDS for link in links[name])]:
        async with service.http.get(link, headers=signed_in, allow_redirects=False) as answer:
            assert answer.status == 200, link
