import asyncio
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from picket import run
from picket.errors import CommandError
from picket.run import pack, pack_suite, packages_folder
from runners.scripting.suites.bundle_cache import BundleError
from tests.builders.suites import NEWEST, SUITES


def a_suite(folder: Path) -> Path:
    for name in ("package.json", "tests/shop.spec.ts", "node_modules/x/index.js", ".git/HEAD"):
        path = folder / "e2e" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "e2e" / "test-results").mkdir()
    return folder / "e2e"


def test_a_bundle_holds_what_a_run_does_not_make_anew(tmp_path: Path) -> None:
    suite = pack(a_suite(tmp_path), tmp_path / "suite.tar.gz")
    with tarfile.open(suite.path) as archive:
        names = {name for name in archive.getnames() if archive.getmember(name).isfile()}
    assert names == {"package.json", "tests/shop.spec.ts"}


def test_a_bundle_is_given_to_who_asks_for_its_hash(tmp_path: Path) -> None:
    suite = pack(a_suite(tmp_path), tmp_path / "suite.tar.gz")
    assert asyncio.run(suite.fetch(suite.sha256)) == suite.path
    with pytest.raises(BundleError):
        asyncio.run(suite.fetch("0" * 64))


def test_installations_go_through_the_proxies_of_whoever_runs(tmp_path: Path) -> None:
    environ = {
        "https_proxy": "http://proxy:3128",
        "NO_PROXY": ".corp",
        "API_KEY": "x",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    with pack_suite(a_suite(tmp_path), environ) as (places, sha256):
        told = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".corp"}
        assert places.environment == told
        bundle = asyncio.run(places.bundles.fetch(sha256))
        assert bundle.is_file()
    assert not bundle.exists()


@pytest.fixture
def open_cache() -> Iterator[Path]:
    """A cache folder that other users can enter."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_packages_are_kept_between_runs_of_the_command(tmp_path: Path, open_cache: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(open_cache)}
    suite = a_suite(tmp_path)
    kept = []
    for _ in range(2):
        with pack_suite(suite, environ) as (places, _):
            kept.append(places.packages)
    assert kept == [open_cache / "picket/packages"] * 2
    assert kept[0].is_dir()


def test_packages_are_kept_where_the_users_of_suites_can_enter(
    open_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_cache / "closed").mkdir(mode=0o700)
    monkeypatch.setattr(run, "_SYSTEM_CACHE", str(open_cache / "system"))
    monkeypatch.setattr(run, "can_have_own_users", lambda: True)
    environ = {"XDG_CACHE_HOME": str(open_cache / "closed")}
    assert packages_folder(environ) == open_cache / "system/picket/packages"
    assert list((open_cache / "closed").iterdir()) == [], "nothing is made there"


def test_where_nothing_can_be_kept_packages_last_for_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(run, "_SYSTEM_CACHE", str(tmp_path / "file"))
    with pack_suite(a_suite(tmp_path), {"XDG_CACHE_HOME": str(tmp_path / "file")}) as (places, _):
        folder = places.packages
        folder.mkdir()
    assert not folder.exists()


def test_a_folder_that_is_too_large_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MAX_BUNDLE_BYTES", 10)
    with (
        pytest.raises(CommandError, match="bytes when packed; use at most 10"),
        pack_suite(a_suite(tmp_path), {}),
    ):
        pass


def test_the_next_run_uses_the_packages_again(tmp_path: Path, open_cache: Path) -> None:
    suite = tmp_path / "suite"
    shutil.copytree(SUITES / "node_only", suite)
    shutil.copytree(SUITES / f"versions/{NEWEST}", suite, dirs_exist_ok=True)
    (tmp_path / "check.json").write_text('{"type": "PLAYWRIGHT", "suiteFolder": "suite"}')
    said = [run_once(tmp_path, open_cache) for _ in range(2)]
    again = "The packages were installed before, and are used again."
    assert [again in one for one in said] == [False, True], said


def run_once(folder: Path, cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "picket", "run", "check.json"],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr
