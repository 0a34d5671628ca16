import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.agent_api import MAX_ARTIFACT_BYTES
from service.agents import artifacts
from tests.builders.patience import OFTEN
from tests.servers.public_api import Answer
from tests.servers.service import RunningService, serve_service

BODY = bytes(range(256)) * 40


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    async with serve_service(tmp_path) as running:
        await running.hello()
        await running.a_url_check()
        await running.claim()
        yield running


async def put(
    service: RunningService, body: bytes, *, first: int | None = None, **more: Any
) -> Answer:
    headers = {"x-content-sha256": more.get("digest", hashlib.sha256(BODY).hexdigest())}
    if first is not None:
        total = more.get("total", len(BODY))
        headers["content-range"] = f"bytes {first}-{first + len(body) - 1}/{total}"
    if "fence" in more:
        headers["x-fence"] = str(more["fence"])
    path = f"/agent/v1/artifacts/{more.get('job', '1')}/{more.get('name', 'trace.zip')}"
    return await service.agent("PUT", path, data=body, headers=headers)


def stored(service: RunningService, directory: Path) -> bytes:
    return (directory / "artifacts" / service.secrets.location_id / "1" / "trace.zip").read_bytes()


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
    headers = {"content-range": "bytes 5-1/10"}
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

    headers = {"content-range": f"bytes 0-{len(BODY) - 1}/{len(BODY)}"}
    kept = tmp_path / "artifacts" / service.secrets.location_id / "1" / "trace.zip.part"
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
    return folder / "trace.zip.part"
