import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.agent_api import MAX_ARTIFACT_BYTES
from service.agents import artifacts
from service.jobs import sqlite
from tests.builders.agents import until
from tests.builders.patience import OFTEN
from tests.servers.public_api import Answer
from tests.servers.service import RunningService, serve_service

BODY = bytes(range(256)) * 40


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningService]:
    """Its only run is claimed, under fence 1: here fences do not begin at a random number."""
    add = sqlite._ADD.replace("random() & 0x3ffffff0", "0")
    monkeypatch.setattr(sqlite, "_ADD", add)
    async with serve_service(tmp_path) as running:
        await running.hello()
        await running.a_url_check()
        await running.claim()
        yield running


async def put(
    service: RunningService, body: bytes, *, first: int | None = None, **more: Any
) -> Answer:
    headers = {"x-content-sha256": more.get("digest", hashlib.sha256(BODY).hexdigest())}
    if (fence := more.get("fence", 1)) is not None:
        headers["x-fence"] = str(fence)
    if first is not None:
        total = more.get("total", len(BODY))
        headers["content-range"] = f"bytes {first}-{first + len(body) - 1}/{total}"
    path = f"/agent/v1/artifacts/{more.get('job', '1')}/{more.get('name', 'trace.zip')}"
    return await service.agent("PUT", path, data=body, headers=headers)


def stored(service: RunningService, directory: Path, *, fence: int = 1) -> bytes:
    run = directory / "artifacts" / service.secrets.location_id / "1"
    return (run / str(fence) / "trace.zip").read_bytes()


async def test_a_file_is_stored_as_it_was_sent(service: RunningService, tmp_path: Path) -> None:
    answer = await put(service, BODY)
    assert (answer.status, answer.body) == (200, {"offset": len(BODY), "complete": True})
    assert stored(service, tmp_path) == BODY


async def test_an_upload_goes_on_where_it_broke(service: RunningService, tmp_path: Path) -> None:
    first = await put(service, BODY[:1000], first=0)
    assert first.body == {"offset": 1000, "complete": False}
    lost = await put(service, BODY[5000:], first=5000)
    assert (lost.status, lost.body["attributes"]) == (416, {"offset": 1000})
    rest = await put(service, BODY[1000:], first=1000)
    assert rest.body == {"offset": len(BODY), "complete": True}
    assert stored(service, tmp_path) == BODY


async def test_a_complete_file_may_be_sent_again(service: RunningService) -> None:
    await put(service, BODY)
    assert (await put(service, BODY)).body == {"offset": len(BODY), "complete": True}


async def test_a_file_that_is_not_what_its_digest_says_is_thrown_away(
    service: RunningService,
) -> None:
    assert (await put(service, BODY, digest="0" * 64)).status == 400
    assert (await put(service, BODY)).status == 200


async def test_a_file_above_the_limit_is_refused(service: RunningService) -> None:
    answer = await put(service, BODY, first=0, total=MAX_ARTIFACT_BYTES + 1)
    assert answer.status == 413


@pytest.mark.parametrize("name", ["..", ".hidden", "a%2Fb", "x.part", "n" * 201, "a%00b"])
async def test_a_name_that_could_leave_its_folder_is_refused(
    service: RunningService, name: str
) -> None:
    assert (await put(service, BODY, name=name)).status in {400, 404, 405}


@pytest.mark.parametrize("job", ["2", "x", "0", "99999999999999999999"])
async def test_a_file_of_no_job_is_refused(service: RunningService, job: str) -> None:
    assert (await put(service, BODY, job=job)).status == 404


async def test_a_range_that_is_none_is_refused(service: RunningService) -> None:
    headers = {"content-range": "bytes 5-1/10", "x-fence": "1"}
    answer = await service.agent(
        "PUT", "/agent/v1/artifacts/1/trace.zip", data=b"x", headers=headers
    )
    assert answer.status == 400


async def test_another_file_of_the_same_name_and_length_takes_its_place(
    service: RunningService, tmp_path: Path
) -> None:
    await put(service, BODY)
    other = BODY[::-1]
    answer = await put(service, other, digest=hashlib.sha256(other).hexdigest())
    assert answer.body == {"offset": len(BODY), "complete": True}
    assert stored(service, tmp_path) == other


async def test_two_connections_do_not_mix_their_bytes(
    service: RunningService, tmp_path: Path
) -> None:
    answers = await asyncio.gather(*(put(service, BODY[:5000], first=0) for _ in range(4)))
    assert sorted(answer.status for answer in answers) == [200, 416, 416, 416]
    await put(service, BODY[5000:], first=5000)
    assert stored(service, tmp_path) == BODY


async def test_a_disk_that_takes_no_more_is_told_as_such(
    service: RunningService, tmp_path: Path
) -> None:
    (tmp_path / "artifacts").write_text("no folder")
    answer = await put(service, BODY)
    assert (answer.status, answer.body["error"]) == (507, "Insufficient Storage")


async def test_an_upload_that_stands_still_is_ended_and_keeps_what_came(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "PATIENCE_S", 0.05)

    async def half() -> AsyncIterator[bytes]:
        yield BODY[:1000]
        await asyncio.Event().wait()

    headers = {"content-range": f"bytes 0-{len(BODY) - 1}/{len(BODY)}", "x-fence": "1"}
    kept = unfinished_file(service, tmp_path)
    for _ in OFTEN:  # time may be up before the first byte came
        answer = await service.agent(
            "PUT", "/agent/v1/artifacts/1/trace.zip", data=half(), headers=headers
        )
        assert answer.status == 408
        if kept.exists() and kept.stat().st_size:
            break
    rest = await put(service, BODY[1000:], first=1000)
    assert rest.body == {"offset": len(BODY), "complete": True}
    assert stored(service, tmp_path) == BODY


async def test_an_upload_whose_key_ends_is_refused_and_keeps_no_file(
    service: RunningService, tmp_path: Path
) -> None:
    location = f"/v1/private-locations/{service.secrets.location_id}"
    [key] = (await service.alice.get(location)).body["keys"]
    ended = asyncio.Event()

    async def slow_body() -> AsyncIterator[bytes]:
        yield BODY[:1000]
        await ended.wait()
        yield BODY[1000:]

    headers = {"content-range": f"bytes 0-{len(BODY) - 1}/{len(BODY)}", "x-fence": "1"}
    upload = asyncio.create_task(
        service.agent("PUT", "/agent/v1/artifacts/1/trace.zip", data=slow_body(), headers=headers)
    )
    await until(unfinished_file(service, tmp_path).exists)
    await service.alice.delete(f"{location}/keys/{key['id']}")
    ended.set()
    assert (await upload).status == 401
    assert unfinished_file(service, tmp_path).stat().st_size <= 1000


async def test_a_file_of_a_claim_that_is_no_more_is_refused(service: RunningService) -> None:
    assert (await put(service, BODY, fence=1)).status == 200
    assert (await put(service, BODY, fence=2)).status == 404


async def test_an_upload_whose_end_was_not_heard_is_complete(
    service: RunningService, tmp_path: Path
) -> None:
    await put(service, BODY[:1000], first=0)
    unfinished = unfinished_file(service, tmp_path)
    unfinished.write_bytes(BODY)  # as a service leaves it that dies before it moves the file
    answer = await put(service, BODY[-1:], first=len(BODY) - 1)
    assert answer.body == {"offset": len(BODY), "complete": True}
    assert stored(service, tmp_path) == BODY
    assert not unfinished.exists()


async def test_what_is_left_of_a_longer_file_is_thrown_away(
    service: RunningService, tmp_path: Path
) -> None:
    await put(service, BODY + BODY[:1], first=0, total=len(BODY) + 9)
    assert unfinished_file(service, tmp_path).stat().st_size == len(BODY) + 1
    assert (await put(service, BODY[:1000], first=0)).status == 400
    assert (await put(service, BODY, first=0)).body == {"offset": len(BODY), "complete": True}


def unfinished_file(service: RunningService, directory: Path) -> Path:
    folder = directory / "artifacts" / service.secrets.location_id / "1"
    return folder / "trace.zip.1.part"


@pytest.mark.parametrize(
    ("fence", "said"),
    [(None, "The upload has no fence"), ("one", "x-fence is 'one'"), ("-1", "x-fence is '-1'")],
)
async def test_an_upload_that_does_not_name_its_claim_is_refused(
    service: RunningService, fence: str | None, said: str
) -> None:
    answer = await put(service, BODY, fence=fence)
    assert answer.status == 400
    assert answer.body["message"].startswith(f"{said}; send the number of the claim")


@pytest.mark.parametrize("fence", ["0", "2", "999999999999"])
async def test_a_file_of_a_claim_that_never_was_is_refused(
    service: RunningService, fence: str
) -> None:
    assert (await put(service, BODY, fence=fence)).status == 404


async def claimed_again(service: RunningService) -> None:
    """The job went to another agent, under fence 2."""
    release = {"jobs": [{"jobId": "1", "fence": 1, "reason": "draining", "message": "x"}]}
    assert (await service.agent("POST", "/agent/v1/jobs/release", release)).status == 200
    (job,) = (await service.claim("claim-2")).body["jobs"]
    assert (job["jobId"], job["fence"]) == ("1", 2)


async def test_a_new_claim_begins_its_file_anew_and_clears_what_the_old_one_began(
    service: RunningService, tmp_path: Path
) -> None:
    await put(service, b"x" * 1000, first=0, fence=1)
    await claimed_again(service)
    assert (await put(service, BODY[:500], first=0, fence=2)).body["offset"] == 500
    assert (await put(service, b"x" * 1000, first=1000, fence=1)).status == 404
    assert (await put(service, BODY[500:], first=500, fence=2)).body["complete"]
    assert stored(service, tmp_path, fence=2) == BODY
    assert [path.name for path in unfinished_file(service, tmp_path).parent.iterdir()] == ["2"]


async def test_a_file_whose_claim_ended_while_its_bytes_came_takes_no_place(
    service: RunningService, tmp_path: Path
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"x" * 1000
        begun.set()
        await go_on.wait()
        yield b"x" * (len(BODY) - 1000)

    old = b"x" * len(BODY)
    headers = {
        "content-range": f"bytes 0-{len(BODY) - 1}/{len(BODY)}",
        "x-fence": "1",
        "x-content-sha256": hashlib.sha256(old).hexdigest(),
    }
    path = "/agent/v1/artifacts/1/trace.zip"
    slowly = asyncio.create_task(service.agent("PUT", path, data=slow(), headers=headers))
    await begun.wait()
    await until(lambda: unfinished_file(service, tmp_path).exists())
    await claimed_again(service)
    go_on.set()
    assert (await slowly).status == 404
    assert (await put(service, BODY, fence=2)).status == 200
    assert stored(service, tmp_path, fence=2) == BODY
