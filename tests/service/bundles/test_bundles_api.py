import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from io import BytesIO
from pathlib import Path
from random import Random

import pytest

from service.bundles import files
from service.bundles.files import BundleFiles
from service.http.errors import TooLargeError
from tests.builders.code_bundles import a_bundle, bundle_bytes, sha256_of, suite_body
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.service import RunningService, serve_service

BODY = bundle_bytes(Random(1).randbytes(5000))
SHA = sha256_of(BODY)


async def test_a_bundle_is_kept_under_its_hash(api: PublicApi, alice: ApiUser) -> None:
    answer = await alice.put(f"/v1/code-bundles/{SHA}", data=BODY)
    assert answer.status == 201
    assert (answer.body["codeBundlePath"], answer.body["sizeBytes"]) == (SHA, len(BODY))
    assert (await alice.get(f"/v1/code-bundles/{SHA}")).body == answer.body
    kept = api.backend.bundles.path(alice.secrets.account_id, SHA)
    assert kept.read_bytes() == BODY


async def test_a_bundle_may_be_sent_again(alice: ApiUser) -> None:
    for _ in range(2):
        assert (await alice.put(f"/v1/code-bundles/{SHA}", data=BODY)).status == 201


async def test_a_bundle_arrives_in_pieces(alice: ApiUser) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for first in range(0, len(BODY), 100):
            yield BODY[first : first + 100]

    answer = await alice.put(f"/v1/code-bundles/{SHA}", data=pieces())
    assert (answer.status, answer.body["sizeBytes"]) == (201, len(BODY))


async def test_a_bundle_that_is_longer_than_other_bodies_may_be_is_taken(alice: ApiUser) -> None:
    large = b"\x1f\x8b" + bytes(3 * 1024 * 1024)
    assert (
        await alice.put(f"/v1/code-bundles/{sha256_of(large)}", data=BytesIO(large))
    ).status == 201


async def test_a_bundle_of_another_hash_leaves_nothing(api: PublicApi, alice: ApiUser) -> None:
    answer = await alice.put(f"/v1/code-bundles/{'0' * 64}", data=BODY)
    assert answer.status == 400
    assert answer.body["message"].startswith(f"The body has the SHA-256 {SHA}, which is not")
    assert list(api.backend.bundles.path(alice.secrets.account_id, SHA).parent.iterdir()) == []
    assert (await alice.get(f"/v1/code-bundles/{'0' * 64}")).status == 404


async def test_what_is_no_gzip_is_refused(alice: ApiUser) -> None:
    for body in (b"PK\x03\x04", b"\x1f", b""):
        answer = await alice.put(f"/v1/code-bundles/{sha256_of(body)}", data=body)
        assert answer.status == 400
        assert answer.body["message"] == (
            "The body is not gzip; send a tar.gz, as tar czf makes it."
        )


@pytest.mark.parametrize("sha256", ["x", "A" * 64, "..%2F" + "a" * 59])
async def test_a_path_that_is_no_hash_is_refused(alice: ApiUser, sha256: str) -> None:
    answer = await alice.put(f"/v1/code-bundles/{sha256}", data=BODY)
    assert answer.status in {400, 404}


async def test_charlie_cannot_ask_for_alices_bundle(alice: ApiUser, charlie: ApiUser) -> None:
    sha256 = await a_bundle(alice)
    assert (await charlie.get(f"/v1/code-bundles/{sha256}")).status == 404


async def test_without_a_key_nothing_is_read(api: PublicApi) -> None:
    async with api.http.put(f"{api.url}/v1/code-bundles/{SHA}", data=BODY) as answer:
        assert answer.status == 401


async def pieces_of(*parts: bytes) -> AsyncGenerator[bytes]:
    for part in parts:
        yield part


async def size_alone(size_bytes: int) -> int:
    return size_bytes


async def test_a_bundle_and_its_name_are_on_disk_before_it_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order: bytes, name, the folder that has the name, the folders that have that."""
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def syncing(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        steps.append("bytes" if path.suffix == ".part" else path.name)
        fsync(descriptor)

    def renaming(path: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(path, target)

    async def note(_size_bytes: int) -> None:
        steps.append("note")

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(Path, "replace", renaming)
    kept = BundleFiles(tmp_path / "bundles")
    await kept.keep("account", SHA, pieces_of(BODY), note=note)
    assert steps == ["bytes", "rename", "account", "bundles", tmp_path.name, "note"]


async def test_too_many_bytes_are_refused_as_they_come(tmp_path: Path) -> None:
    kept = BundleFiles(tmp_path, limit_bytes=100)
    async with aclosing(pieces_of(b"\x1f\x8b" + bytes(60), bytes(60))) as parts:
        with pytest.raises(TooLargeError, match="use at most 100 bytes"):
            await kept.keep("a", SHA, parts, note=size_alone)
    assert list((tmp_path / "a").iterdir()) == []


async def test_as_many_bytes_as_may_be_are_taken(tmp_path: Path) -> None:
    kept = BundleFiles(tmp_path, limit_bytes=len(BODY))
    assert await kept.keep("a", SHA, pieces_of(BODY), note=size_alone) == len(BODY)


async def test_a_bundle_that_stands_still_is_ended(
    alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PATIENCE_S", 0.05)

    async def half() -> AsyncIterator[bytes]:
        yield BODY[:10]
        await asyncio.Event().wait()

    answer = await alice.put(f"/v1/code-bundles/{SHA}", data=half())
    assert (answer.status, "send it again" in answer.body["message"]) == (408, True)


async def test_a_disk_that_takes_no_more_is_told_as_such(api: PublicApi, alice: ApiUser) -> None:
    folder = api.backend.bundles.path("x", SHA).parent.parent
    folder.write_text("no folder")
    answer = await alice.put(f"/v1/code-bundles/{SHA}", data=BODY)
    assert (answer.status, answer.body["error"]) == (507, "Insufficient Storage")


async def fetch(
    service: RunningService, sha256: str, *, key: str | None = None, **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    asked = {
        "authorization": f"Bearer {key or service.secrets.location_key}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    url = f"{service.url}/agent/v1/bundles/{sha256}"
    async with service.http.get(url, headers=asked) as answer:
        lowered = {name.lower(): value for name, value in answer.headers.items()}
        return answer.status, await answer.read(), lowered


async def a_suite(service: RunningService) -> None:
    await service.alice.put(f"/v1/code-bundles/{SHA}", data=BODY)
    made = await service.alice.post("/v1/checks/playwright", suite_body(SHA))
    assert made.status == 201, made.body


async def test_agents_of_the_checks_location_fetch_it(tmp_path: Path) -> None:
    async with serve_service(tmp_path) as service:
        assert (await fetch(service, SHA))[0] == 404
        await a_suite(service)
        status, body, headers = await fetch(service, SHA)
        assert (status, hashlib.sha256(body).hexdigest()) == (200, SHA)
        assert (headers["content-type"], headers["etag"]) == ("application/gzip", f'"{SHA}"')


async def test_a_fetch_goes_on_where_it_broke(tmp_path: Path) -> None:
    async with serve_service(tmp_path) as service:
        await a_suite(service)
        status, body, headers = await fetch(service, SHA, range="bytes=1000-")
        assert (status, body) == (206, BODY[1000:])
        assert headers["content-range"] == f"bytes 1000-{len(BODY) - 1}/{len(BODY)}"
        assert (await fetch(service, SHA, if_none_match=f'"{SHA}"'))[0] == 304


async def test_agents_of_other_locations_and_strangers_do_not(tmp_path: Path) -> None:
    async with serve_service(tmp_path) as service:
        await a_suite(service)
        body = {"name": "Attic", "slugName": "attic"}
        other = (await service.alice.post("/v1/private-locations", body)).body
        assert (await fetch(service, SHA, key=other["keys"][0]["rawKey"]))[0] == 404
        assert (await fetch(service, SHA, key="pl_" + "x" * 40))[0] == 401


async def test_a_bundle_that_no_check_runs_any_more_is_not_given_out(tmp_path: Path) -> None:
    async with serve_service(tmp_path) as service:
        await a_suite(service)
        (check,) = (await service.alice.get("/v1/checks")).body
        await service.alice.delete(f"/v1/checks/{check['id']}")
        assert (await fetch(service, SHA))[0] == 404
