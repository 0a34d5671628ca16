"""Packages that are kept are ours, read-only, and hold nobody else's files."""

import os
from pathlib import Path

import pytest

from runners.scripting.suites import package_cache
from runners.scripting.suites.package_cache import UnfitPackagesError, take_ownership
from tests.sandbox.worlds import needs_root

A_RUNS_USER = 60999


def installed(folder: Path, *, by: int = A_RUNS_USER) -> Path:
    modules = folder / "node_modules"
    (modules / "lodash").mkdir(parents=True)
    (modules / "lodash/index.js").write_text("x" * 10)
    (modules / "lodash/cli.js").write_text("x" * 10)
    (modules / "lodash/cli.js").chmod(0o700)
    if os.geteuid() == 0:
        for path in (modules, *modules.rglob("*")):
            os.chown(path, by, by)
    return modules


def test_all_files_are_ours_and_read_only(tmp_path: Path) -> None:
    modules = installed(tmp_path)
    size = take_ownership(modules)
    assert {path.stat().st_uid for path in (modules, *modules.rglob("*"))} == {os.geteuid()}
    assert (modules / "lodash/index.js").stat().st_mode & 0o777 == 0o444
    assert (modules / "lodash/cli.js").stat().st_mode & 0o777 == 0o555
    assert size.apparent_bytes == 20


@needs_root
@pytest.mark.parametrize("owner", [0, A_RUNS_USER + 1])
def test_a_second_name_of_somebody_elses_file_is_refused_and_the_file_stays(
    tmp_path: Path, owner: int
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    secret.chmod(0o600)
    os.chown(secret, owner, owner)
    modules = installed(tmp_path)
    os.link(secret, modules / "lodash/theft.js")
    with pytest.raises(UnfitPackagesError, match=r"second name, theft\.js\."):
        take_ownership(modules)
    assert (secret.stat().st_mode & 0o777, secret.stat().st_uid) == (0o600, owner)


def test_files_that_share_their_content_are_kept_and_count_once(tmp_path: Path) -> None:
    modules = installed(tmp_path)
    os.link(modules / "lodash/index.js", modules / "again.js")
    assert take_ownership(modules).apparent_bytes == 20
    assert (modules / "again.js").stat().st_mode & 0o777 == 0o444


def test_pipes_go_and_links_stay(tmp_path: Path) -> None:
    modules = installed(tmp_path)
    os.mkfifo(modules / "lodash/pipe")
    (modules / "lodash/link").symlink_to("index.js")
    take_ownership(modules)
    assert not (modules / "lodash/pipe").exists()
    assert (modules / "lodash/link").is_symlink()


def test_more_than_an_installation_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_cache, "MOST_BYTES", 19)
    with pytest.raises(UnfitPackagesError, match="left 20 bytes; they may be 19"):
        take_ownership(installed(tmp_path))


def test_holes_take_nothing_on_the_disk_and_are_told(tmp_path: Path) -> None:
    modules = installed(tmp_path)
    os.truncate(modules / "lodash/index.js", 1_000_000_000)
    size = take_ownership(modules)
    assert size.apparent_bytes == 1_000_000_010
    assert size.disk_bytes < 1_000_000
