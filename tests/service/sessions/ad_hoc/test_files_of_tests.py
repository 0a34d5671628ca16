"""Files of a test's result are listed, and read with the same key."""

import hashlib
from typing import Any

from tests.builders.check_bodies import script_body
from tests.servers.service import RunningService

TRACE = b"PK trace " * 500
SHA = hashlib.sha256(TRACE).hexdigest()
RUN = "/v1/test-sessions/run"


async def a_test_with_a_trace(service: RunningService) -> Any:
    """A test of a browser check whose agent sent a trace; what was started."""
    await service.hello(checkTypes=["BROWSER"], slots={"main": 2})
    job = {**script_body("browser"), "checkType": "BROWSER", "logicalId": "login"}
    place = {"type": "PRIVATE", "slugName": "default"}
    started = (await service.alice.post(RUN, {"checkRunJobs": [job], "runLocation": place})).body
    claim = {"slots": {"main": 2}, "checkTypes": ["BROWSER"]}
    (claimed,) = (await service.claim("claim-1", **claim)).body["jobs"]
    headers = {"x-content-sha256": SHA, "x-fence": str(claimed["fence"])}
    path = f"/agent/v1/artifacts/{claimed['jobId']}/trace.zip"
    assert (await service.agent("PUT", path, data=TRACE, headers=headers)).status == 200
    artifact = {"name": "trace.zip", "kind": "trace", "sizeBytes": len(TRACE), "sha256": SHA}
    result = {
        **{name: claimed[name] for name in ("jobId", "fence", "runId", "checkId")},
        "checkType": "BROWSER",
        "agentId": "agent-1",
        "startedAt": "2026-11-22T08:00:00Z",
        "startedAfterSeconds": 0.1,
        "tookSeconds": 1,
        "outcome": {"status": "PASSED", "artifacts": [artifact]},
    }
    answer = await service.agent("POST", "/agent/v1/results", {"results": [result]})
    assert len(answer.body["accepted"]) == 1, answer.body
    return started


async def test_the_manifest_leads_to_the_files(service: RunningService) -> None:
    started = await a_test_with_a_trace(service)
    path = f"/v1/test-sessions/{started['testSessionId']}"
    (listed,) = (await service.alice.get(path)).body["results"]
    manifest = (
        await service.alice.get(f"{path}/results/{listed['testSessionResultId']}/assets")
    ).body
    (asset,) = manifest["assets"]
    address = asset["url"].removeprefix(service.url)
    file = await service.alice.get(address)

    assert (asset["name"], asset["type"], asset["isKept"]) == ("trace.zip", "trace", True)
    assert (manifest["entriesTotal"], manifest["truncated"]) == (1, False)
    assert (file.status, file.body) == (200, TRACE.decode())
    assert (await service.alice.get(f"{address}.none")).status == 404


async def test_links_of_a_result_lead_to_the_page_of_its_run(service: RunningService) -> None:
    started = await a_test_with_a_trace(service)
    sequence_id = started["sequenceIds"]["login"]
    path = f"/next/test-sessions/{started['testSessionId']}/results/{sequence_id}/links"
    links = (await service.alice.get(path)).body

    assert links["testResultLink"].endswith(f"/checks/try/{sequence_id}")
    empty = {"testTraceLinks": [], "videoLinks": [], "screenshotLinks": []}
    assert {**links, **empty} == links
