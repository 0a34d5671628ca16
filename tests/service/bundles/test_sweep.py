import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from service.bundles import bundles
from service.bundles.bundles import KEPT_MS, BundleSweep
from service.bundles.files import BundleFile, BundleFiles
from service.bundles.model import BundleRow
from service.db.engine import Database, DatabaseBusyError
from service.http.errors import InvalidError
from tests.builders.agents import until
from tests.builders.code_bundles import a_bundle, bundle_bytes, sha256_of, suite_body
from tests.fakes.clock import FakeClock
from tests.servers.public_api import ApiUser, PublicApi

BODY = bundle_bytes()
SHA = sha256_of(BODY)


async def swept(api: PublicApi, *, after_ms: int, database: Database | None = None) -> int:
    """Sweep so long after now."""
    now_ms = await api.database.read(api.backend.clock.now_ms)
    sweep = BundleSweep(api.backend.bundles, FakeClock(now_ms + after_ms))
    return await sweep.sweep(database or api.database)


async def is_kept(api: PublicApi, user: ApiUser) -> bool:
    """Whether it is there, and said to be."""
    said = (await user.get(f"/v1/code-bundles/{SHA}")).status == 200
    is_there = api.backend.bundles.path(user.secrets.account_id, SHA).exists()
    assert said == is_there
    return said


async def parts_of(body: bytes) -> AsyncIterator[bytes]:
    yield body


def has_somebody_in_line(lock: asyncio.Lock) -> bool:
    return any(not waiter.done() for waiter in lock._waiters or ())


async def test_a_bundle_that_no_check_runs_goes_after_a_day(api: PublicApi, alice: ApiUser) -> None:
    sha256 = await a_bundle(alice)
    assert await swept(api, after_ms=KEPT_MS - 60_000) == 0
    assert await swept(api, after_ms=KEPT_MS + 60_000) == 1
    assert not await is_kept(api, alice)
    assert await a_bundle(alice) == sha256


async def test_a_bundle_that_a_check_runs_stays(api: PublicApi, alice: ApiUser) -> None:
    sha256 = await a_bundle(alice)
    await alice.post("/v1/checks/playwright", suite_body(sha256))
    assert await swept(api, after_ms=30 * KEPT_MS) == 0
    assert await is_kept(api, alice)


async def test_a_bundle_that_was_sent_again_is_new(api: PublicApi, alice: ApiUser) -> None:
    sha256 = await a_bundle(alice)
    old = BundleRow(sha256=sha256, size_bytes=1, created_ms=0)
    await api.database.write(lambda c: bundles.put(c, alice.secrets.account_id, old))
    await a_bundle(alice)
    assert await swept(api, after_ms=0) == 0


async def test_a_bundle_that_is_sent_while_it_is_swept_is_there_afterwards(
    api: PublicApi, alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, removing, go_on = api.backend.bundles, threading.Event(), threading.Event()
    remove = files.remove

    def remove_late(gone: Iterable[BundleFile]) -> None:
        removing.set()
        assert go_on.wait(60)
        remove(gone)

    monkeypatch.setattr(files, "remove", remove_late)
    await a_bundle(alice)
    sweep = asyncio.create_task(swept(api, after_ms=2 * KEPT_MS))
    assert await asyncio.to_thread(removing.wait, 60)
    again = asyncio.create_task(a_bundle(alice))
    await until(lambda: has_somebody_in_line(files.one_at_a_time))
    go_on.set()
    assert await sweep == 1
    await again
    assert await is_kept(api, alice)


async def test_a_sweep_does_not_come_between_a_bundle_and_its_note(
    api: PublicApi, alice: ApiUser
) -> None:
    files, account_id = api.backend.bundles, alice.secrets.account_id
    in_place, go_on = asyncio.Event(), asyncio.Event()
    now_ms = await api.database.read(api.backend.clock.now_ms)

    async def note_late(size_bytes: int) -> BundleRow:
        in_place.set()
        await go_on.wait()
        row = BundleRow(sha256=SHA, size_bytes=size_bytes, created_ms=now_ms + 2 * KEPT_MS)
        return await api.database.write(lambda c: bundles.put(c, account_id, row))

    keeping = asyncio.create_task(files.keep(account_id, SHA, parts_of(BODY), note=note_late))
    await in_place.wait()
    sweep = asyncio.create_task(swept(api, after_ms=2 * KEPT_MS))
    await until(lambda: has_somebody_in_line(files.one_at_a_time))
    go_on.set()
    await keeping
    assert await sweep == 0
    assert await is_kept(api, alice)


async def test_a_sweep_whose_note_is_not_taken_removes_nothing(
    api: PublicApi, alice: ApiUser
) -> None:
    class Busy:
        async def write(self, change: object) -> object:
            raise DatabaseBusyError("held by somebody else")

    await a_bundle(alice)
    with pytest.raises(DatabaseBusyError):
        await swept(api, after_ms=2 * KEPT_MS, database=Busy())  # type: ignore[arg-type]
    assert await is_kept(api, alice)


async def test_what_a_sweep_left_when_it_died_goes_with_the_next(
    api: PublicApi, alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(gone: object) -> None:
        raise KeyError("in the middle")

    await a_bundle(alice)
    with monkeypatch.context() as patch:
        patch.setattr(api.backend.bundles, "remove", die)
        with pytest.raises(KeyError):
            await swept(api, after_ms=2 * KEPT_MS)
    assert (await alice.get(f"/v1/code-bundles/{SHA}")).status == 404
    assert await swept(api, after_ms=0) == 1
    assert not await is_kept(api, alice)


async def test_a_note_without_its_file_is_forgotten_so_that_it_is_sent_again(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_bundle(alice)
    api.backend.bundles.path(alice.secrets.account_id, SHA).unlink()
    assert await swept(api, after_ms=0) == 0
    assert not await is_kept(api, alice)


async def test_only_what_an_earlier_process_left_half_is_removed(tmp_path: Path) -> None:
    files = BundleFiles(tmp_path)
    going_on, looked = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield BODY
        going_on.set()
        await looked.wait()

    async def note(size_bytes: int) -> int:
        return size_bytes

    keeping = asyncio.create_task(files.keep("a", SHA, slow(), note=note))
    await going_on.wait()
    left = tmp_path / "a" / "left.part"
    left.touch()
    assert files.there() == frozenset()
    looked.set()
    assert await keeping == len(BODY)
    assert files.there() == {BundleFile("a", SHA)}
    assert not left.exists()


async def test_a_bundle_that_is_refused_is_not_noted(tmp_path: Path) -> None:
    async def note(size_bytes: int) -> None:
        raise AssertionError

    with pytest.raises(InvalidError):
        await BundleFiles(tmp_path).keep("a", "0" * 64, parts_of(BODY), note=note)
    assert BundleFiles(tmp_path).there() == frozenset()
