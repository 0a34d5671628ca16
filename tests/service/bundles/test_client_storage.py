"""`/next/checkly-storage`, as the established service's clients use it."""

import gzip
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from service.bundles.bundles import KEPT_MS, BundleSweep
from service.bundles.model import MAX_SNAPSHOT_BYTES
from tests.builders.code_bundles import bundle_bytes, sha256_of
from tests.fakes.clock import FakeClock
from tests.servers.public_api import Answer, ApiUser, PublicApi
from tests.servers.service import RunningService, serve_service

PREFIX = "/next/checkly-storage"
BODY = bundle_bytes(b"a suite")
PICTURE = b"\x89PNG\r\n\x1a\n a picture"
BYTES = {"content-type": "application/octet-stream"}
EMPTY_ARCHIVE = gzip.compress(b"", mtime=0)


async def sent(user: ApiUser, path: str, body: bytes, **headers: str) -> Answer:
    return await user.post(f"{PREFIX}/{path}", data=BytesIO(body), headers={**BYTES, **headers})


async def downloaded(user: ApiUser, key: str) -> tuple[int, bytes]:
    headers = {"authorization": f"Bearer {user.secrets.api_key}"}
    url = f"{user.url}{PREFIX}/download"
    async with user.http.post(url, json={"key": key}, headers=headers) as answer:
        return answer.status, await answer.read()


def a_check(key: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": "Front",
        "script": "const { test } = require('@playwright/test'); test('a', () => {})",
        "scriptPath": "front.spec.js",
        "privateLocations": ["default"],
        "snapshots": [{"key": key, "path": "front.spec.js-snapshots/front-linux.png"}],
        **fields,
    }


async def swept(api: PublicApi, *, after_ms: int) -> int:
    now_ms = await api.database.read(api.backend.clock.now_ms)
    return await BundleSweep(api.backend.bundles, FakeClock(now_ms + after_ms)).sweep(api.database)


async def test_a_bundle_that_is_uploaded_is_the_one_of_its_hash(alice: ApiUser) -> None:
    answer = await sent(alice, "upload-code-bundle", BODY)
    assert answer.status == 200
    assert answer.body["key"] == answer.body["checksumSha256"] == sha256_of(BODY)
    assert answer.body["contentLength"] == len(BODY)
    assert (await alice.get(f"/v1/code-bundles/{answer.body['key']}")).status == 200
    seen = await alice.post(f"{PREFIX}/peek-code-bundle", {"key": answer.body["key"]})
    assert (seen.status, seen.body) == (200, answer.body)


async def test_an_empty_archive_is_taken(alice: ApiUser) -> None:
    assert (await sent(alice, "upload-code-bundle", EMPTY_ARCHIVE)).status == 200


async def test_a_bundle_of_another_checksum_is_refused(alice: ApiUser) -> None:
    header = {"x-bundle-checksum-sha256": "0" * 64}
    answer = await sent(alice, "upload-code-bundle", BODY, **header)
    assert answer.status == 400
    assert answer.body["message"].startswith(f"The body has the SHA-256 {sha256_of(BODY)}, which")
    seen = await alice.post(f"{PREFIX}/peek-code-bundle", {"key": sha256_of(BODY)})
    assert seen.status == 404
    right = {"x-bundle-checksum-sha256": sha256_of(BODY)}
    assert (await sent(alice, "upload-code-bundle", BODY, **right)).status == 200


async def test_what_is_no_archive_is_refused(alice: ApiUser) -> None:
    assert (await sent(alice, "upload-code-bundle", b"PK")).status == 400


async def test_a_snapshot_comes_back_as_it_was_sent(alice: ApiUser) -> None:
    answer = await sent(alice, "upload", PICTURE)
    assert (answer.status, answer.body) == (200, {"key": sha256_of(PICTURE)})
    assert await downloaded(alice, answer.body["key"]) == (200, PICTURE)


async def test_a_snapshot_is_no_bundle_until_it_is_sent_as_one(alice: ApiUser) -> None:
    key = (await sent(alice, "upload", BODY)).body["key"]
    assert (await alice.get(f"/v1/code-bundles/{key}")).status == 404
    assert (await sent(alice, "upload-code-bundle", BODY)).status == 200
    assert (await sent(alice, "upload", BODY)).status == 200
    assert (await alice.get(f"/v1/code-bundles/{key}")).status == 200


@pytest.mark.parametrize(
    ("body", "status"), [(b"", 400), (bytes(MAX_SNAPSHOT_BYTES + 1), 413)], ids=["empty", "large"]
)
async def test_a_snapshot_has_a_size(alice: ApiUser, body: bytes, status: int) -> None:
    assert (await sent(alice, "upload", body)).status == status


async def test_nobody_else_sees_what_was_uploaded(api: PublicApi, alice: ApiUser) -> None:
    bob = await api.another_user("Bob")
    snapshot = (await sent(alice, "upload", PICTURE)).body["key"]
    bundle = (await sent(alice, "upload-code-bundle", BODY)).body["key"]
    assert (await downloaded(bob, snapshot))[0] == 404
    assert (await bob.post(f"{PREFIX}/peek-code-bundle", {"key": bundle})).status == 404
    refused = await bob.post("/v1/checks/browser", a_check(snapshot))
    assert refused.status == 400
    assert '"snapshots[0].key" names a snapshot that was not sent' in refused.body["message"]


async def test_a_check_keeps_its_snapshots(alice: ApiUser) -> None:
    key = (await sent(alice, "upload", PICTURE)).body["key"]
    made = await alice.post("/v1/checks/browser", a_check(key))
    assert made.status == 201
    assert made.body["snapshots"] == a_check(key)["snapshots"]
    kept = await alice.put(f"/v1/checks/browser/{made.body['id']}", {"muted": True})
    assert kept.body["snapshots"] == made.body["snapshots"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("../x.png", '"snapshots[0].path" is ../x.png; it must lead down'),
        ("front.spec.js", '"snapshots[0].path" is front.spec.js, which another file'),
        ("front.spec.js/x.png", '"snapshots[0].path" is front.spec.js/x.png, but one of its'),
    ],
)
async def test_a_snapshot_has_a_place_of_its_own(alice: ApiUser, path: str, problem: str) -> None:
    key = (await sent(alice, "upload", PICTURE)).body["key"]
    answer = await alice.post(
        "/v1/checks/browser", a_check(key, snapshots=[{"key": key, "path": path}])
    )
    assert answer.status == 400
    assert problem in answer.body["message"]


async def test_a_snapshot_goes_a_day_after_no_check_names_it(
    api: PublicApi, alice: ApiUser
) -> None:
    key = (await sent(alice, "upload", PICTURE)).body["key"]
    made = await alice.post("/v1/checks/browser", a_check(key))
    assert await swept(api, after_ms=KEPT_MS + 60_000) == 0
    assert await downloaded(alice, key) == (200, PICTURE)
    await alice.delete(f"/v1/checks/{made.body['id']}")
    assert await swept(api, after_ms=KEPT_MS + 60_000) == 1
    assert (await downloaded(alice, key))[0] == 404


async def fetched(service: RunningService, sha256: str) -> tuple[int, bytes]:
    headers = {"authorization": f"Bearer {service.secrets.location_key}"}
    url = f"{service.url}/agent/v1/bundles/{sha256}"
    async with service.http.get(url, headers=headers) as answer:
        return answer.status, await answer.read()


async def test_agents_fetch_the_snapshots_of_their_checks_only(tmp_path: Path) -> None:
    async with serve_service(tmp_path) as service:
        key = (await sent(service.alice, "upload", PICTURE)).body["key"]
        assert (await fetched(service, key))[0] == 404
        made = await service.alice.post("/v1/checks/browser", a_check(key))
        assert made.status == 201
        assert await fetched(service, key) == (200, PICTURE)


async def test_agents_fetch_the_snapshots_of_tests(tmp_path: Path) -> None:
    async with serve_service(tmp_path) as service:
        key = (await sent(service.alice, "upload", PICTURE)).body["key"]
        body = {
            "checkRunJobs": [a_check(key, checkType="BROWSER")],
            "runLocation": {"type": "PRIVATE", "slugName": "default"},
        }
        assert (await service.alice.post("/v1/test-sessions/run", body)).status == 202
        assert await fetched(service, key) == (200, PICTURE)


@pytest.mark.parametrize("path", ["download", "peek-code-bundle"])
async def test_a_key_that_no_database_can_store_is_refused(alice: ApiUser, path: str) -> None:
    answer = await alice.post(f"{PREFIX}/{path}", {"key": "a\0/b/c"})
    assert (answer.status, answer.body["validation"]["keys"]) == (400, ["key"])
