"""What both stores do alike, and how a bucket fails."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from service.errors import SettingsError
from service.object_store.choice import open_store
from service.object_store.folder import FolderStore
from service.object_store.model import (
    Bucket,
    ObjectStore,
    ObjectStoreError,
    RemoteObject,
    read_head,
)
from service.object_store.object_response import parse_range
from service.object_store.s3 import BucketStore
from tests.servers.object_store import object_store

LARGE = os.urandom(5_000_000)
"""Longer than what one request reads, or writes without parts."""
HOUR_MS = 3_600_000


@pytest.fixture
async def bucket(tmp_path: Path) -> AsyncIterator[Bucket]:
    async with object_store(tmp_path / "remote") as named:
        yield named


@pytest.fixture(params=["folder", "bucket"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, bucket: Bucket) -> ObjectStore:
    chosen = bucket if request.param == "bucket" else None
    return await open_store(chosen, tmp_path / "artifacts")


async def put(store: ObjectStore, directory: Path, key: str, content: bytes) -> Path:
    file = directory / "arriving"
    file.write_bytes(content)
    await store.put_file(key, file)
    return file


async def whole(found: Path | RemoteObject | None) -> bytes:
    return await read_head(found, len(LARGE) + 1)


async def test_a_file_is_read_as_it_was_put_and_is_gone_where_it_was(
    store: ObjectStore, tmp_path: Path
) -> None:
    file = await put(store, tmp_path, "here/1/7/trace.zip", LARGE)
    assert not file.exists()
    found = await store.find("here/1/7/trace.zip")
    assert await whole(found) == LARGE
    assert await read_head(found, 24) == LARGE[:24]
    await put(store, tmp_path, "here/1/7/trace.zip", b"another")
    assert await whole(await store.find("here/1/7/trace.zip")) == b"another"
    assert await store.find("here/1/7/video.webm") is None
    assert await whole(None) == b""


async def test_keys_are_listed_below_a_prefix_and_not_beside_it(
    store: ObjectStore, tmp_path: Path
) -> None:
    for key in ("here/1/7/a", "here/1/7/b", "here/1/70/c"):
        await put(store, tmp_path, key, b"x")
    assert await store.list_keys("here/1/7") == {"here/1/7/a", "here/1/7/b"}
    assert await store.list_keys("here/2") == frozenset()


async def test_runs_go_whole_by_their_age_and_others_stay(
    store: ObjectStore, tmp_path: Path
) -> None:
    for key in ("here/1/7/a", "here/1/8/b", "here/2/7/c"):
        await put(store, tmp_path, key, b"x")
    now_ms = time.time_ns() // 1_000_000
    assert await store.remove_before(now_ms - HOUR_MS) == 0
    assert len(await store.list_keys("here")) == 3
    assert await store.remove_before(now_ms + HOUR_MS) == 2
    assert await store.list_keys("here") == frozenset()


async def test_a_part_of_an_object_is_read_alone(bucket: Bucket, tmp_path: Path) -> None:
    store = BucketStore(bucket)
    await put(store, tmp_path, "here/1/7/a", LARGE)
    found = await store.find("here/1/7/a")
    assert found is not None
    assert await found.read_all(3_000_001, 3_000_009) == LARGE[3_000_001:3_000_009]


async def test_a_signed_link_reads_one_file_for_its_time(bucket: Bucket, tmp_path: Path) -> None:
    store, hasty = (BucketStore(replace(bucket, link_s=valid_s)) for valid_s in (600, 1))
    await put(store, tmp_path, "here/1/7/a", b"content")
    link, ended = await store.sign("here/1/7/a"), await hasty.sign("here/1/7/a")
    assert link is not None
    assert ended is not None
    await asyncio.sleep(2.1)
    async with aiohttp.ClientSession() as http:
        async with http.get(link) as answer:
            assert (answer.status, await answer.read()) == (200, b"content")
        async with http.get(link.partition("?")[0]) as answer:
            assert answer.status == 403
        async with http.get(ended) as answer:
            assert answer.status == 403
    assert await BucketStore(bucket).sign("here/1/7/a") is None
    assert await FolderStore(tmp_path).sign("here/1/7/a") is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"secret_key": "not-this-one"}, "the store refused the key"),
        ({"key_id": "nobody"}, "the store refused the key"),
        ({"name": "elsewhere"}, "there is no such bucket"),
        ({"endpoint": "http://127.0.0.1:9"}, "the store cannot be reached"),
    ],
)
async def test_a_bucket_that_cannot_be_used_is_told_at_the_start_without_its_secret(
    bucket: Bucket, tmp_path: Path, change: dict[str, str], reason: str
) -> None:
    wrong = replace(bucket, **change)
    with pytest.raises(SettingsError) as refused:
        await open_store(wrong, tmp_path)
    (sentence,) = refused.value.problems
    assert sentence == (
        f"ARTIFACT_STORE is s3://{wrong.name}/below/here, which cannot be used: {reason}"
    )
    assert "secret" not in repr(wrong)


async def test_what_is_not_stored_is_kept_where_it_was(tmp_path: Path) -> None:
    async with object_store(tmp_path / "remote") as bucket:
        store = BucketStore(bucket)
    with pytest.raises(ObjectStoreError, match="cannot be reached"):
        await put(store, tmp_path, "here/1/7/a", b"content")
    assert (tmp_path / "arriving").read_bytes() == b"content"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", (0, 10)),
        ("bytes=2-4", (2, 5)),
        ("bytes=2-", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("bytes=2-99", (2, 10)),
        ("bytes=10-", None),
        ("bytes=4-2", None),
        ("bytes=-0", None),
        ("bytes=-", (0, 10)),
        ("bytes=0-1,4-5", (0, 10)),
        ("lines=1-2", (0, 10)),
    ],
)
def test_a_range_is_read_as_the_standard_says(text: str, part: tuple[int, int] | None) -> None:
    assert parse_range(text, 10) == part
