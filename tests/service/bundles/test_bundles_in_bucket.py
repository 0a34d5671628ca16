"""Bundles in a bucket, which several processes of the service share."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.bundles import bundles
from service.bundles.bundles import KEPT_MS, BundleSweep
from service.bundles.files import BundleFile, BundleFiles
from service.bundles.model import BundleRow
from service.object_store.model import ObjectStore, RemoteObject, read_head
from service.object_store.s3 import BucketStore
from tests.builders.code_bundles import bundle_bytes, sha256_of, suite_body
from tests.fakes.clock import FakeClock
from tests.servers.object_store import object_store
from tests.servers.public_api import PublicApi

BODY = bundle_bytes()
SHA = sha256_of(BODY)
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Replicas:
    """Two processes with a folder each, and one bucket and database."""

    api: PublicApi
    bucket: ObjectStore
    one: BundleFiles
    other: BundleFiles

    @property
    def account_id(self) -> str:
        return self.api.alice.secrets.account_id

    async def keep(self, *, is_noted: bool = True) -> None:
        """Upload the bundle at the first replica."""

        async def note(size_bytes: int) -> None:
            if is_noted:
                row = BundleRow(sha256=SHA, size_bytes=size_bytes, created_ms=now_ms())
                await self.api.database.write(lambda c: bundles.put(c, self.account_id, row))

        await self.one.keep(self.account_id, SHA, parts(), note=note)

    async def sweep(self, *, after_ms: int) -> int:
        """Sweep at the other replica, so long after now."""
        sweep = BundleSweep(self.other, FakeClock(now_ms() + after_ms))
        return await sweep.sweep(self.api.database)

    async def is_noted(self) -> bool:
        return await self.api.database.read(lambda c: bundles.is_there(c, self.account_id, SHA))

    async def is_kept(self) -> bool:
        return await self.other.find(self.account_id, SHA) is not None


async def parts() -> AsyncIterator[bytes]:
    yield BODY


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
async def replicas(api: PublicApi, tmp_path: Path) -> AsyncIterator[Replicas]:
    async with object_store(tmp_path / "remote") as named:
        bucket = BucketStore(named)
        one, other = (BundleFiles(tmp_path / name, bucket=bucket) for name in ("one", "other"))
        yield Replicas(api, bucket, one, other)


async def test_a_bundle_that_one_replica_took_is_read_at_another(
    replicas: Replicas, tmp_path: Path
) -> None:
    await replicas.keep()
    found = await replicas.other.find(replicas.account_id, SHA)
    assert isinstance(found, RemoteObject)
    assert await read_head(found, len(BODY) + 1) == BODY
    assert [path for path in (tmp_path / "one").rglob("*") if path.is_file()] == []


async def test_a_bundle_that_no_check_runs_goes_after_a_day(replicas: Replicas) -> None:
    await replicas.keep()
    assert await replicas.sweep(after_ms=KEPT_MS - 60_000) == 0
    assert await replicas.sweep(after_ms=KEPT_MS + 60_000) == 1
    assert (await replicas.is_noted(), await replicas.is_kept()) == (False, False)


async def test_a_bundle_that_a_check_runs_stays(replicas: Replicas) -> None:
    await replicas.keep()
    made = await replicas.api.alice.post("/v1/checks/playwright", suite_body(SHA))
    assert made.status == 201
    assert await replicas.sweep(after_ms=30 * KEPT_MS) == 0
    assert (await replicas.is_noted(), await replicas.is_kept()) == (True, True)


async def test_a_sweep_leaves_alone_what_another_replica_is_about_to_note(
    replicas: Replicas,
) -> None:
    await replicas.keep(is_noted=False)
    assert await replicas.sweep(after_ms=0) == 0
    assert await replicas.is_kept()
    assert await replicas.sweep(after_ms=2 * HOUR_MS) == 1
    assert not await replicas.is_kept()


async def test_a_note_is_forgotten_once_its_file_should_long_be_there(replicas: Replicas) -> None:
    await replicas.keep()
    await replicas.bucket.remove(f"bundles/{replicas.account_id}/{SHA}", before_ms=now_ms() + 5_000)
    await replicas.sweep(after_ms=0)
    assert await replicas.is_noted()
    await replicas.sweep(after_ms=2 * HOUR_MS)
    assert not await replicas.is_noted()


async def test_what_was_stored_anew_since_it_was_listed_stays(replicas: Replicas) -> None:
    await replicas.keep()
    await replicas.other.remove_stored({BundleFile(replicas.account_id, SHA): 0.0})
    assert await replicas.is_kept()


async def test_bundles_stay_when_files_of_runs_go(replicas: Replicas) -> None:
    await replicas.keep()
    assert await replicas.bucket.remove_before(now_ms() + HOUR_MS) == 0
    assert await replicas.is_kept()


async def test_a_bundle_from_before_there_was_a_bucket_is_still_found(
    replicas: Replicas, tmp_path: Path
) -> None:
    async def note(size_bytes: int) -> int:
        return size_bytes

    await BundleFiles(tmp_path / "one").keep("a", SHA, parts(), note=note)
    found = await replicas.one.find("a", SHA)
    assert isinstance(found, Path)
    assert found.read_bytes() == BODY
