"""Agents put large files into the bucket by a link, and fetch bundles from it."""

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from agent.api_client.client import ServiceClient
from agent.api_client.errors import JobGoneError, RequestRefusedError, StoreError
from agent.bundles import ServiceBundles
from agent.outbox.artifact_sender import DIRECT_BYTES, ArtifactSender
from contract.agent_api import ArtifactLink, ArtifactStored
from contract.job import Lease
from contract.result import Artifact
from service.agents.artifacts import ArtifactDoor
from service.object_store.model import read_head
from service.object_store.presign import checksum_header
from service.object_store.s3 import BucketStore
from tests.builders.agents import QUICK, a_client
from tests.builders.code_bundles import bundle_bytes, sha256_of, suite_body
from tests.servers.object_store import object_store, settings_of
from tests.servers.service import RunningService, a_claimed_job, serve_service

BODY = os.urandom(DIRECT_BYTES)
BUNDLE = bundle_bytes(os.urandom(100_000))
ARTIFACT = Artifact(
    name="trace.zip",
    kind="trace",
    content_type="application/zip",
    size_bytes=len(BODY),
    sha256=hashlib.sha256(BODY).hexdigest(),
)


@dataclass(frozen=True, slots=True)
class Installation:
    """A service with a bucket, and an agent that has a job and a file of it."""

    service: RunningService
    store: BucketStore
    client: ServiceClient
    sender: ArtifactSender
    lease: Lease
    file: Path
    through_service: list[str]
    """The path of each file that the service took itself."""

    async def stored(self) -> list[bytes]:
        """The files of the job that are in the bucket."""
        keys = await self.store.list_keys(self.service.secrets.location_id)
        return [await read_head(await self.store.find(one), 2 * len(BODY)) for one in sorted(keys)]

    async def link(self) -> ArtifactLink:
        return await self.client.link_artifact(self.lease, ARTIFACT)

    async def put(self, link: ArtifactLink, body: bytes, **changes: str) -> int:
        """Put this where the link says; the store's status."""
        headers = {**link.headers, **{one.replace("_", "-"): v for one, v in changes.items()}}
        async with self.service.http.put(f"{link.url}", data=body, headers=headers) as answer:
            return answer.status


@asynccontextmanager
async def installation(
    directory: Path, monkeypatch: pytest.MonkeyPatch, **of_bucket: Any
) -> AsyncIterator[Installation]:
    took: list[str] = []
    put = ArtifactDoor.put

    async def noting(door: ArtifactDoor, request: Request, location_id: str) -> ArtifactStored:
        took.append(request.url.path)
        return await put(door, request, location_id)

    monkeypatch.setattr(ArtifactDoor, "put", noting)
    async with object_store(directory / "remote") as named:
        bucket = replace(named, **{"agent_link_s": 60, **of_bucket})
        async with serve_service(directory / "data", **settings_of(bucket)) as service:
            job = await a_claimed_job(service)
            key = service.secrets.location_key
            async with a_client(service.url, api_key=key, agent_id="agent-1") as client:
                file = directory / "trace.zip"
                file.write_bytes(BODY)
                lease = Lease(job_id=job["jobId"], fence=job["fence"])
                sender = ArtifactSender(client, None, pace=QUICK)  # type: ignore[arg-type]
                store = BucketStore(bucket)
                yield Installation(service, store, client, sender, lease, file, took)


@pytest.fixture
async def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installation]:
    async with installation(tmp_path, monkeypatch) as made:
        yield made


async def test_a_large_file_goes_to_the_bucket_and_not_through_the_service(
    it: Installation,
) -> None:
    await it.sender._upload(it.file, ARTIFACT, it.lease)
    assert await it.stored() == [BODY]
    assert it.through_service == []


async def test_a_small_file_goes_through_the_service(it: Installation) -> None:
    it.file.write_bytes(b"small")
    digest = hashlib.sha256(b"small").hexdigest()
    small = msgspec.structs.replace(ARTIFACT, size_bytes=5, sha256=digest)
    await it.sender._upload(it.file, small, it.lease)
    assert (await it.stored(), len(it.through_service)) == ([b"small"], 1)


async def test_an_agent_that_does_not_reach_the_bucket_sends_to_the_service_and_asks_no_more(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def unreachable(_client: ServiceClient, url: str, *_: Any, **__: Any) -> None:
        asked.append(url)
        raise StoreError("The service's file store cannot be reached: timed out.")

    monkeypatch.setattr(ServiceClient, "put_by_link", unreachable)
    for _ in range(2):
        await it.sender._upload(it.file, ARTIFACT, it.lease)
    assert await it.stored() == [BODY]
    assert (len(asked), len(set(it.through_service))) == (1, 1)


async def test_without_the_setting_files_go_through_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with installation(tmp_path, monkeypatch, agent_link_s=0) as it:
        assert await it.link() == ArtifactLink()
        await it.sender._upload(it.file, ARTIFACT, it.lease)
        assert (await it.stored(), len(set(it.through_service))) == ([BODY], 1)


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (BODY + b"x", {}),
        (BODY, {"x_amz_checksum_sha256": checksum_header("00" * 32)["x-amz-checksum-sha256"]}),
        (BODY, {"content_type": "text/html"}),
        (BODY, {"content_disposition": "inline"}),
    ],
    ids=["size", "digest", "type", "disposition"],
)
async def test_a_link_takes_the_file_that_it_was_made_for(
    it: Installation, body: bytes, changes: dict[str, str]
) -> None:
    link = await it.link()
    assert await it.put(link, body, **changes) == 403
    assert await it.stored() == []
    assert await it.put(link, BODY) == 200


async def test_another_file_of_the_same_size_is_found_out_and_removed(it: Installation) -> None:
    """Where the store does not compute checksums, as that of these tests."""
    assert await it.put(await it.link(), BODY[::-1]) == 200
    with pytest.raises(RequestRefusedError, match="send it to the service"):
        await it.client.confirm_artifact(it.lease, ARTIFACT)
    assert await it.stored() == []


async def test_a_file_that_never_came_is_not_confirmed(it: Installation) -> None:
    with pytest.raises(RequestRefusedError, match="does not have this file"):
        await it.client.confirm_artifact(it.lease, ARTIFACT)


async def test_who_lost_the_job_gets_no_link_and_no_confirmation(it: Installation) -> None:
    earlier = Lease(job_id=it.lease.job_id, fence=it.lease.fence - 1)
    with pytest.raises(RequestRefusedError, match="went to another agent"):
        await it.client.link_artifact(earlier, ARTIFACT)
    with pytest.raises(JobGoneError, match="went to another agent"):
        await it.client.confirm_artifact(earlier, ARTIFACT)


async def a_suite(it: Installation) -> str:
    """A suite at the agent's location; the digest of its bundle."""
    sha256 = sha256_of(BUNDLE)
    assert (await it.service.alice.put(f"/v1/code-bundles/{sha256}", data=BUNDLE)).status == 201
    body = suite_body(sha256)
    assert (await it.service.alice.post("/v1/checks/playwright", body)).status == 201
    return sha256


async def test_an_agent_fetches_a_bundle_from_the_bucket(it: Installation, tmp_path: Path) -> None:
    sha256 = await a_suite(it)
    path = f"{it.service.url}/agent/v1/bundles/{sha256}"
    key = {"authorization": f"Bearer {it.service.secrets.location_key}"}
    headers = {**key, "x-takes-links": "1"}
    async with it.service.http.get(path, headers=headers, allow_redirects=False) as answer:
        assert answer.status == 307
    async with it.service.http.get(path, headers=key, allow_redirects=False) as answer:
        assert await answer.read() == BUNDLE, "an agent of an earlier release takes no links"
    await ServiceBundles(it.client).download(sha256, tmp_path / "bundle")
    assert (tmp_path / "bundle").read_bytes() == BUNDLE


async def test_an_agent_that_does_not_reach_the_bucket_fetches_from_the_service(
    it: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = await a_suite(it)

    async def elsewhere(_store: BucketStore, _key: str) -> str:
        return f"http://127.0.0.1:9/{sha256}"

    monkeypatch.setattr(BucketStore, "sign_for_agent", elsewhere)
    await ServiceBundles(it.client).download(sha256, tmp_path / "bundle")
    assert (tmp_path / "bundle").read_bytes() == BUNDLE
