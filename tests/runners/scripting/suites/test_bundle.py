"""Bundles are fetched once, believed only by their hash, and kept within bounds."""

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from runners.scripting.suites.bundle_cache import BundleCache, BundleError, list_newest_first


class Shelf:
    """A source of bundles, which counts how often it was asked."""

    def __init__(self, *contents: bytes) -> None:
        self.contents = {hashlib.sha256(one).hexdigest(): one for one in contents}
        self.asked: list[str] = []

    async def download(self, sha256: str, target: Path) -> None:
        self.asked.append(sha256)
        await asyncio.sleep(0)
        if sha256 not in self.contents:
            raise BundleError("There is no such bundle.")
        write(target, self.contents[sha256])


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def test_a_bundle_is_downloaded_once(tmp_path: Path) -> None:
    shelf = Shelf(b"one")
    bundles = BundleCache(shelf.download, tmp_path)
    first, *others = await asyncio.gather(*(bundles.fetch(sha(b"one")) for _ in range(5)))
    assert first.read_bytes() == b"one"
    assert await bundles.fetch(sha(b"one")) == first
    assert set(others) == {first}
    assert shelf.asked == [sha(b"one")]


async def test_a_bundle_survives_a_restart(tmp_path: Path) -> None:
    await BundleCache(Shelf(b"one").download, tmp_path).fetch(sha(b"one"))
    again = Shelf()
    assert (await BundleCache(again.download, tmp_path).fetch(sha(b"one"))).read_bytes() == b"one"
    assert again.asked == []


@pytest.mark.parametrize("content", [b"", b"on", b"onE"])
async def test_a_kept_bundle_that_is_not_whole_any_more_is_fetched_anew(
    tmp_path: Path, content: bytes
) -> None:
    shelf = Shelf(b"one")
    kept = await BundleCache(shelf.download, tmp_path).fetch(sha(b"one"))
    write(kept, content)
    assert (await BundleCache(shelf.download, tmp_path).fetch(sha(b"one"))).read_bytes() == b"one"
    assert len(shelf.asked) == 2


async def test_a_bundle_with_another_content_is_refused_and_not_kept(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.contents[sha(b"right")] = b"wrong"
    with pytest.raises(BundleError, match=sha(b"wrong")):
        await BundleCache(shelf.download, tmp_path).fetch(sha(b"right"))
    assert names(tmp_path) == set()


async def test_a_download_that_failed_is_tried_anew(tmp_path: Path) -> None:
    shelf = Shelf()
    bundles = BundleCache(shelf.download, tmp_path)
    with pytest.raises(BundleError):
        await bundles.fetch(sha(b"late"))
    shelf.contents[sha(b"late")] = b"late"
    assert (await bundles.fetch(sha(b"late"))).read_bytes() == b"late"


async def test_who_is_cancelled_does_not_spoil_the_download_of_others(tmp_path: Path) -> None:
    bundles = BundleCache(Shelf(b"one").download, tmp_path)
    hasty = asyncio.create_task(bundles.fetch(sha(b"one")))
    patient = asyncio.create_task(bundles.fetch(sha(b"one")))
    await asyncio.sleep(0)
    hasty.cancel()
    assert (await patient).read_bytes() == b"one"


async def test_the_longest_unused_bundle_makes_room(tmp_path: Path) -> None:
    contents = [bytes([letter]) * 100 for letter in b"abc"]
    bundles = BundleCache(Shelf(*contents).download, tmp_path, kept_bytes=250)
    for age, content in enumerate(contents[:2]):
        os.utime(await bundles.fetch(sha(content)), (age, age))
    await bundles.fetch(sha(contents[0]))
    await bundles.fetch(sha(contents[2]))
    assert names(tmp_path) == {sha(contents[0]), sha(contents[2])}


async def test_a_bundle_larger_than_the_room_is_had_all_the_same(tmp_path: Path) -> None:
    bundles = BundleCache(Shelf(b"large").download, tmp_path, kept_bytes=1)
    assert (await bundles.fetch(sha(b"large"))).read_bytes() == b"large"


async def test_what_a_killed_agent_left_half_downloaded_is_swept(tmp_path: Path) -> None:
    for name in ("old.part", "new.part"):
        (tmp_path / name).mkdir()
    os.utime(tmp_path / "old.part", (1, 1))
    await BundleCache(Shelf(b"one").download, tmp_path).fetch(sha(b"one"))
    assert names(tmp_path) == {"new.part", sha(b"one")}


def test_a_bundle_that_another_agent_has_just_removed_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / sha(b"here")).write_bytes(b"here")
    (tmp_path / sha(b"gone")).symlink_to(tmp_path / "nowhere")
    assert list(list_newest_first(tmp_path)) == [(tmp_path / sha(b"here"), 4)]


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "g" * 64])
async def test_what_is_no_hash_is_not_looked_up(tmp_path: Path, name: str) -> None:
    shelf = Shelf()
    with pytest.raises(BundleError, match="is not a SHA-256"):
        await BundleCache(shelf.download, tmp_path).fetch(name)
    assert shelf.asked == []
