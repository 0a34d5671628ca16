import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.object_store.model import Bucket
from tests.builders.check_bodies import script_body
from tests.servers.object_store import object_store, settings_of
from tests.servers.service import RunningService, serve_service

TRACE = bytes(range(256)) * 40
SHA = hashlib.sha256(TRACE).hexdigest()


@pytest.fixture(params=["folder", "bucket"])
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with (
        object_store(tmp_path / "remote") as bucket,
        browser_service(tmp_path, bucket if request.param == "bucket" else None) as running,
    ):
        yield running
        if request.param == "bucket":
            assert not list((tmp_path / "artifacts").glob("*/*"))


@asynccontextmanager
async def browser_service(directory: Path, bucket: Bucket | None) -> AsyncIterator[RunningService]:
    """A service to which an agent for browser checks has said hello."""
    async with serve_service(directory, **(settings_of(bucket) if bucket else {})) as running:
        await running.hello(checkTypes=["BROWSER"], slots={"main": 2})
        yield running


async def a_run(service: RunningService, **files: str) -> str:
    """An agent ran a browser check and sent files with its result; the path of the result."""
    body = script_body("browser", doubleCheck=False)
    check = (await service.alice.post("/v1/checks/browser", body)).body
    claim = {"slots": {"main": 2}, "checkTypes": ["BROWSER"]}
    (job,) = (await service.claim("claim-1", **claim)).body["jobs"]
    for name in files.get("sent", "trace.zip").split():
        headers = {"x-content-sha256": SHA, "x-fence": str(job["fence"])}
        path = f"/agent/v1/artifacts/{job['jobId']}/{name}"
        assert (await service.agent("PUT", path, data=TRACE, headers=headers)).status == 200
    result = result_of(job, files.get("named", "trace.zip").split(), files.get("type", ""))
    answer = await service.agent("POST", "/agent/v1/results", {"results": [result]})
    assert len(answer.body["accepted"]) == 1, answer.body
    (listed,) = (await service.alice.get(f"/v1/check-results/{check['id']}")).body
    return f"/v1/check-results/{check['id']}/{listed['id']}"


def result_of(job: dict[str, Any], names: list[str], content_type: str) -> dict[str, Any]:
    return {
        "jobId": job["jobId"],
        "fence": job["fence"],
        "runId": job["runId"],
        "checkId": job["checkId"],
        "checkType": "BROWSER",
        "agentId": "agent-1",
        "startedAt": "2026-11-22T08:00:00Z",
        "startedAfterSeconds": 0.1,
        "tookSeconds": 1,
        "outcome": {
            "status": "PASSED",
            "artifacts": [
                {
                    "name": name,
                    "kind": "video" if name.endswith(".webm") else "trace",
                    "sizeBytes": len(TRACE),
                    "sha256": SHA,
                    "contentType": content_type or "application/zip",
                }
                for name in names
            ],
        },
    }


async def read(
    service: RunningService, path: str, **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    key = {"authorization": f"Bearer {service.secrets.api_key}"}
    asked = {name.replace("_", "-"): value for name, value in headers.items()}
    async with service.http.get(service.url + path, headers={**key, **asked}) as answer:
        lowered = {name.lower(): value for name, value in answer.headers.items()}
        return answer.status, await answer.read(), lowered


async def test_the_files_of_a_run_are_listed_with_where_to_read_them(
    service: RunningService,
) -> None:
    path = await a_run(service)
    assert (await service.alice.get(f"{path}/assets")).body == {
        "assets": [
            {
                "name": "trace.zip",
                "type": "trace",
                "contentType": "application/zip",
                "sizeBytes": len(TRACE),
                "sha256": SHA,
                "url": f"{service.url}{path}/assets/trace.zip",
                "source": "direct",
                "isKept": True,
            }
        ],
        "truncated": False,
        "entriesReturned": 1,
        "entriesTotal": 1,
    }


async def test_the_files_of_a_run_are_listed_by_type_and_name(service: RunningService) -> None:
    path = await a_run(service, named="trace.zip video.webm")
    for query in ("type=video", "name=video.webm"):
        seen = (await service.alice.get(f"{path}/assets?{query}")).body
        assert [one["name"] for one in seen["assets"]] == ["video.webm"]
        assert (seen["entriesReturned"], seen["entriesTotal"]) == (1, 2)


async def test_a_file_is_read_as_it_was_sent(service: RunningService) -> None:
    path = await a_run(service)
    status, body, headers = await read(service, f"{path}/assets/trace.zip")
    assert (status, body) == (200, TRACE)
    assert headers["etag"] == f'"{SHA}"'
    assert headers["content-type"] == "application/zip"
    assert headers["content-disposition"] == 'attachment; filename="trace.zip"'
    assert headers["x-content-type-options"] == "nosniff"


async def test_a_part_of_a_file_is_read(service: RunningService) -> None:
    path = await a_run(service)
    status, body, _ = await read(service, f"{path}/assets/trace.zip", range="bytes=100-199")
    assert (status, body) == (206, TRACE[100:200])
    status, body, _ = await read(service, f"{path}/assets/trace.zip", if_none_match=f'"{SHA}"')
    assert (status, body) == (304, b"")


async def test_a_file_that_did_not_arrive_is_listed_as_such(service: RunningService) -> None:
    path = await a_run(service, named="trace.zip video.webm")
    listed = (await service.alice.get(f"{path}/assets")).body["assets"]
    assert [(one["name"], one["isKept"]) for one in listed] == [
        ("trace.zip", True),
        ("video.webm", False),
    ]
    answer = await service.alice.get(f"{path}/assets/video.webm")
    assert (answer.status, answer.body["message"]) == (
        404,
        "The file video.webm did not arrive, or is no longer stored.",
    )


async def test_a_file_that_the_result_does_not_name_is_not_read(service: RunningService) -> None:
    path = await a_run(service, sent="trace.zip other.zip")
    answer = await service.alice.get(f"{path}/assets/other.zip")
    assert (answer.status, answer.body["message"]) == (
        404,
        "The result has no file other.zip; it has trace.zip.",
    )


@pytest.mark.parametrize("name", ["..%2F1%2Ftrace.zip", "%2Fetc%2Fpasswd"])
async def test_no_name_leads_out_of_the_folder(service: RunningService, name: str) -> None:
    path = await a_run(service, named="../1/trace.zip /etc/passwd trace.zip")
    assert (await service.alice.get(f"{path}/assets/{name}")).status in {400, 404}
    listed = (await service.alice.get(f"{path}/assets")).body["assets"]
    assert [one["name"] for one in listed] == ["trace.zip"]


async def test_a_strange_content_type_gets_into_no_header(service: RunningService) -> None:
    path = await a_run(service, type="text/html\r\nx-evil: 1")
    _, _, headers = await read(service, f"{path}/assets/trace.zip")
    assert headers["content-type"] == "application/octet-stream"
    assert "x-evil" not in headers


async def test_a_result_of_another_check_has_no_files_here(service: RunningService) -> None:
    path = await a_run(service)
    other = (await service.alice.post("/v1/checks/browser", script_body("browser"))).body
    wrong = f"/v1/check-results/{other['id']}/{path.rsplit('/', 1)[1]}/assets"
    assert (await service.alice.get(wrong)).status == 404
    assert (await service.alice.get(f"{wrong}/trace.zip")).status == 404


async def test_a_file_that_a_bucket_did_not_take_waits_for_it(tmp_path: Path) -> None:
    there, gone = tmp_path / "remote" / "files", tmp_path / "remote" / "gone"
    async with (
        object_store(tmp_path / "remote") as bucket,
        browser_service(tmp_path, bucket) as service,
    ):
        path = await a_run(service)
        there.rename(gone)
        await service.alice.post("/v1/checks/browser", script_body("browser", doubleCheck=False))
        claim = {"slots": {"main": 2}, "checkTypes": ["BROWSER"]}
        (job,) = (await service.claim("claim-2", **claim)).body["jobs"]
        headers = {"x-content-sha256": SHA, "x-fence": str(job["fence"])}
        place = f"/agent/v1/artifacts/{job['jobId']}/trace.zip"

        refused = await service.agent("PUT", place, data=TRACE, headers=headers)
        gone.rename(there)
        resent = await service.agent("PUT", place, data=TRACE, headers=headers)
        result = {"results": [result_of(job, ["trace.zip"], "")]}
        await service.agent("POST", "/agent/v1/results", result)
        listed = (await service.alice.get(f"/v1/check-results/{job['checkId']}")).body
        again = f"/v1/check-results/{job['checkId']}/{listed[0]['id']}/assets/trace.zip"

        assert (refused.status, refused.body["message"]) == (
            507,
            "The bucket files cannot be used: there is no such bucket. Send the file again later.",
        )
        assert resent.body == {"offset": len(TRACE), "complete": True}
        for one in (again, f"{path}/assets/trace.zip"):
            assert (await read(service, one))[:2] == (200, TRACE)


async def test_a_file_is_read_at_a_signed_link_where_the_setting_says_so(tmp_path: Path) -> None:
    async with (
        object_store(tmp_path / "remote") as bucket,
        browser_service(tmp_path, replace(bucket, link_s=60)) as service,
    ):
        path = await a_run(service)
        key = {"authorization": f"Bearer {service.secrets.api_key}"}
        url = f"{service.url}{path}/assets/trace.zip"
        async with service.http.get(url, headers=key, allow_redirects=False) as answer:
            link = answer.headers["location"]
            assert answer.status == 307
        assert link.startswith(f"{bucket.endpoint}/files/below/here/")
        async with service.http.get(link) as answer:
            assert await answer.read() == TRACE


async def test_a_store_that_does_not_answer_is_told_as_our_fault(tmp_path: Path) -> None:
    async with AsyncExitStack() as store, AsyncExitStack() as rest:
        bucket = await store.enter_async_context(object_store(tmp_path / "remote"))
        service = await rest.enter_async_context(browser_service(tmp_path, bucket))
        path = await a_run(service)
        await store.aclose()
        answer = await service.alice.get(f"{path}/assets/trace.zip")
        result = await service.alice.get(path)
    assert (answer.status, answer.body["message"]) == (
        503,
        "The bucket files cannot be used: the store cannot be reached.",
    )
    assert result.status == 200
