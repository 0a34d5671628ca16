"""Snapshots that a test wrote anew are fetched by the keys in its result."""

import hashlib

from tests.builders.check_bodies import script_body
from tests.servers.public_api import ApiUser
from tests.servers.service import RunningService

PICTURE = b"\x89PNG\r\n\x1a\n a picture"
SHA = hashlib.sha256(PICTURE).hexdigest()
NAME = "snapshot-1.png"


async def a_test_that_wrote(service: RunningService) -> str:
    """The key of the snapshot that it wrote."""
    await service.hello(checkTypes=["BROWSER"], slots={"main": 2})
    job = {**script_body("browser"), "checkType": "BROWSER", "logicalId": "shop"}
    place = {"type": "PRIVATE", "slugName": "default"}
    body = {"checkRunJobs": [job], "runLocation": place}
    started = (await service.alice.post("/v1/test-sessions/run", body)).body
    claim = {"slots": {"main": 2}, "checkTypes": ["BROWSER"]}
    (claimed,) = (await service.claim("claim-1", **claim)).body["jobs"]
    headers = {"x-content-sha256": SHA, "x-fence": str(claimed["fence"])}
    path = f"/agent/v1/artifacts/{claimed['jobId']}/{NAME}"
    assert (await service.agent("PUT", path, data=PICTURE, headers=headers)).status == 200
    artifact = {"name": NAME, "kind": "screenshot", "sizeBytes": len(PICTURE), "sha256": SHA}
    written = {"path": "shop.spec.ts-snapshots/shop-linux.png", "artifact": NAME}
    seen = {"kind": "browser", "runtimeId": "2026.04", "snapshots": [written]}
    result = {
        **{name: claimed[name] for name in ("jobId", "fence", "runId", "checkId")},
        "checkType": "BROWSER",
        "agentId": "agent-1",
        "startedAt": "2026-11-22T08:00:00Z",
        "startedAfterSeconds": 0.1,
        "tookSeconds": 1,
        "outcome": {
            "status": "PASSED",
            "artifacts": [artifact],
            "evidence": seen,
            "log": [{"afterMs": 5, "level": "INFO", "message": "drawn anew"}],
        },
    }
    answer = await service.agent("POST", "/agent/v1/results", {"results": [result]})
    assert len(answer.body["accepted"]) == 1, answer.body
    sequence_id = started["sequenceIds"]["shop"]
    path = f"/v1/test-sessions/{started['testSessionId']}/results/{sequence_id}"
    shown = (await service.alice.get(path)).body
    return f"{sequence_id}/{shown['id']}/{NAME}"


async def downloaded(user: ApiUser, key: str) -> tuple[int, bytes]:
    headers = {"authorization": f"Bearer {user.secrets.api_key}"}
    url = f"{user.url}/next/checkly-storage/download"
    async with user.http.post(url, json={"key": key}, headers=headers) as answer:
        return answer.status, await answer.read()


async def test_a_snapshot_is_fetched_by_its_key(service: RunningService) -> None:
    key = await a_test_that_wrote(service)

    assert await downloaded(service.alice, key) == (200, PICTURE)


async def test_a_key_that_no_result_names_opens_nothing(service: RunningService) -> None:
    session, result, name = (await a_test_that_wrote(service)).split("/")

    for wrong in (
        f"{session}/{result}/other.png",
        f"{session}/none/{name}",
        f"none/{result}/{name}",
    ):
        assert (await downloaded(service.alice, wrong))[0] == 404


async def test_the_log_of_a_run_that_wrote_snapshots_is_read_by_what_its_result_names(
    service: RunningService,
) -> None:
    session, result, _ = (await a_test_that_wrote(service)).split("/")
    read = await service.alice.get(f"/next/assets/log/{session}/{result}")
    (line,) = read.body

    assert (line["msg"], line["level"]) == ("drawn anew", "INFO")
    assert isinstance(line["time"], int)
    for wrong in (f"{session}/none", f"none/{result}"):
        assert (await service.alice.get(f"/next/assets/log/{wrong}")).status == 404
