import asyncio
import tarfile
from pathlib import Path

import pytest

from picket import run
from picket.errors import CommandError
from picket.run import pack, pack_suite
from runners.scripting.suites.bundle_cache import BundleError


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
    environ = {"https_proxy": "http://proxy:3128", "NO_PROXY": ".corp", "API_KEY": "x"}
    with pack_suite(a_suite(tmp_path), environ) as (places, sha256):
        told = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".corp"}
        assert places.environment == told
        assert asyncio.run(places.bundles.fetch(sha256)).is_file()
        folder = places.packages.parent
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
