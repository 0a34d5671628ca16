"""Packages that were lent to a run are given back, whatever became of the run."""

import asyncio
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from contract.result import CheckFailed
from runners.scripting.suites.package_cache import AsyncPackageCache, BorrowedPackages, PackageCache
from sandbox.workspace import temporary_folder
from tests.sandbox.worlds import FEWEST, ROOT, kept, needs_root

KEY = "a" * 64
LIMIT_S = 15
A_RUNS_USER = 60998
KEEPS = f"""
import asyncio, sys, pathlib
from runners.scripting.suites.package_cache import AsyncPackageCache
from runners.scripting.suites.package_cache import PackageCache
kept, place = map(pathlib.Path, sys.argv[1:])
lent = asyncio.run(AsyncPackageCache(PackageCache(kept)).keep("{KEY}", place))
assert (lent.modules / "lodash").is_dir()
"""


class Slow(PackageCache):
    """Has done what it was asked for, and does not say so before it may."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.has_lent = asyncio.Event()
        self.may_say_so = threading.Event()
        self._loop = asyncio.get_running_loop()

    def borrow(self, key: str) -> BorrowedPackages | None:
        return self._slowly(super().borrow(key))

    def keep(self, key: str, modules: Path) -> BorrowedPackages:
        lent = self._slowly(super().keep(key, modules))
        assert lent is not None
        return lent

    def _slowly(self, lent: BorrowedPackages | None) -> BorrowedPackages | None:
        self._loop.call_soon_threadsafe(self.has_lent.set)
        assert self.may_say_so.wait(LIMIT_S)
        return lent


def installed(folder: Path) -> Path:
    place = folder / "install"
    (place / "node_modules/lodash").mkdir(parents=True)
    (place / "node_modules/lodash/index.js").write_text("x")
    return place


def the_lock(folder: Path) -> int:
    (size,) = folder.glob(f"{KEY}.*/size")
    return os.open(size, os.O_RDONLY)


async def is_free(folder: Path) -> bool:
    """Whether nobody holds the only entry, perhaps after a moment."""
    lock = the_lock(folder)
    try:
        async with asyncio.timeout(LIMIT_S):
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(0.01)
                else:
                    return True
    except TimeoutError:
        return False
    finally:
        os.close(lock)


async def test_what_a_cancelled_run_was_borrowing_is_given_back(tmp_path: Path) -> None:
    kept_before = PackageCache(tmp_path / "kept")
    kept_before.give_back(kept_before.keep(KEY, installed(tmp_path) / "node_modules"))
    slow = Slow(tmp_path / "kept")
    task = asyncio.create_task(AsyncPackageCache(slow).borrow(KEY))
    await slow.has_lent.wait()
    task.cancel()
    slow.may_say_so.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await is_free(tmp_path / "kept")


async def test_a_cancelled_run_waits_until_its_packages_are_kept_and_gives_them_back(
    tmp_path: Path,
) -> None:
    slow, place = Slow(tmp_path / "kept"), installed(tmp_path)
    task = asyncio.create_task(AsyncPackageCache(slow).keep(KEY, place))
    await slow.has_lent.wait()
    task.cancel()
    slow.may_say_so.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not place.exists()
    assert await is_free(tmp_path / "kept")


async def test_packages_that_no_path_leads_to_are_the_suites_fault() -> None:
    with temporary_folder() as folder:
        place = installed(folder)
        handle = os.open(place / "node_modules", os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("d", dir_fd=handle)
            deeper = os.open("d", os.O_RDONLY, dir_fd=handle)
            os.close(handle)
            handle = deeper
        os.close(handle)
        with pytest.raises(CheckFailed, match="folders in each other without end"):
            await AsyncPackageCache(PackageCache(folder / "kept")).keep(KEY, place)
        assert not place.exists()


@needs_root
def test_packages_are_kept_though_their_folders_are_sticky(tmp_path: Path) -> None:
    place = installed(tmp_path)
    os.mkfifo(place / "node_modules/lodash/pipe")
    for path in (place, *place.rglob("*")):
        path.chmod(0o1777)
        os.chown(path, A_RUNS_USER, A_RUNS_USER)
    subprocess.run(
        ["setpriv", *kept(FEWEST), sys.executable, "-c", KEEPS, tmp_path / "kept", place],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        check=True,
    )
    assert not place.exists()
