"""`backup` and `restore` as commands, beside a running service: what they refuse, and why."""

import asyncio
import sqlite3
import tarfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from service.cli import run
from service.data_dir import held_folders
from service.settings import Settings
from tests.builders.code_bundles import a_bundle
from tests.servers.service import RunningService, serve_service

TRACE = "artifacts/loc-1/7/3/trace.zip"
UNFINISHED = "artifacts/loc-1/8/video.webm.3.part"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    folder = tmp_path / "first"
    for name, content in {TRACE: b"trace", UNFINISHED: b"half"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    async with serve_service(folder) as running:
        yield running


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Those of the running service."""
    monkeypatch.setenv("SERVICE_DATA_DIR", str(tmp_path / "first"))
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path / 'first' / 'service.db'}")
    return monkeypatch


@pytest.fixture
async def archive(tmp_path: Path, service: RunningService, settings: pytest.MonkeyPatch) -> Path:
    """A backup of the service with one check; the settings are then of a new machine."""
    await service.a_url_check(name="Kept")
    await a_bundle(service.alice)
    file = tmp_path / "backup.tar"
    assert await command("backup", str(file)) == 0
    settings.setenv("SERVICE_DATA_DIR", str(tmp_path / "second"))
    settings.delenv("DATABASE_URL")
    return file


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def content_of(file: Path) -> bytes:
    return file.read_bytes()


def names_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


async def command(*arguments: str) -> int:
    return await asyncio.to_thread(run, arguments)


async def test_a_backup_has_what_was_stored_and_only_its_owner_reads_it(
    tmp_path: Path, archive: Path
) -> None:
    assert mode_of(archive) == 0o600
    assert names_in(tmp_path) == ["backup.tar", "first"]
    assert await command("restore", str(archive)) == 0
    second = tmp_path / "second"
    [bundle] = (tmp_path / "first" / "bundles").glob("*/*")
    bundle_name = str(bundle.relative_to(tmp_path / "first"))
    for name in ("key-pepper", "master-key", TRACE, bundle_name):
        assert (second / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    assert not (second / UNFINISHED).exists()
    for path in second.rglob("*"):
        assert mode_of(path) & 0o077 == 0, path
    with closing(sqlite3.connect(second / "picket.db")) as database:
        assert database.execute("SELECT name FROM check_").fetchall() == [("Kept",)]
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_the_age_of_files_is_restored_by_which_they_are_removed_one_day(
    tmp_path: Path, service: RunningService, settings: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "first" / TRACE
    changed = trace.stat().st_mtime
    assert await command("backup", str(tmp_path / "backup.tar")) == 0
    settings.setenv("SERVICE_DATA_DIR", str(tmp_path / "second"))
    settings.delenv("DATABASE_URL")
    assert await command("restore", str(tmp_path / "backup.tar")) == 0
    run_folder = tmp_path / "second" / "artifacts/loc-1/7"
    assert run_folder.stat().st_mtime == pytest.approx(changed, abs=1e-3)


async def test_a_folder_that_is_not_empty_stays_as_it_is(
    tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("picket.db", "picket.db-wal", "key-pepper", "artifacts"):
        folder = tmp_path / "second"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"mine")
        assert await command("restore", str(archive)) == 2
        assert f"{folder / name} is already there" in capsys.readouterr().err
        (folder / name).unlink()
        assert names_in(folder) == ["picket.db.lock"]


async def test_a_running_service_is_left_alone(
    tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = tmp_path / "second"
    with held_folders(Settings(data_dir=second, database=second / "picket.db")):
        assert await command("restore", str(archive)) == 2
    assert "another service uses the database" in capsys.readouterr().err
    assert names_in(second) == ["picket.db.lock"]


async def test_a_broken_archive_leaves_an_empty_folder_in_which_a_whole_one_is_restored(
    tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.tar"
    whole = content_of(archive)
    changed = bytearray(whole)
    changed[whole.index(b"trace", whole.index(b"artifacts/"))] ^= 1
    for content in (whole[: len(whole) // 2], bytes(changed)):
        broken.write_bytes(content)
        assert await command("restore", str(broken)) == 2
        assert str(broken) in capsys.readouterr().err
        assert names_in(tmp_path / "second") == ["picket.db.lock"]
    assert await command("restore", str(archive)) == 0


async def test_what_a_killed_restore_left_is_no_hindrance(tmp_path: Path, archive: Path) -> None:
    left = tmp_path / "second" / "restoring-artifacts" / "x"
    left.mkdir(parents=True)
    (tmp_path / "second" / "restoring-picket.db").write_bytes(b"half")
    assert await command("restore", str(archive)) == 0
    assert not list((tmp_path / "second").glob("restoring-*"))
    assert not (tmp_path / "second" / "artifacts" / "x").exists()


async def test_a_database_of_a_newer_version_is_refused(
    tmp_path: Path,
    service: RunningService,
    settings: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with closing(sqlite3.connect(tmp_path / "first" / "service.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = '0999'")
        database.commit()
    assert await command("backup", str(tmp_path / "backup.tar")) == 0
    settings.setenv("SERVICE_DATA_DIR", str(tmp_path / "second"))
    settings.delenv("DATABASE_URL")
    assert await command("restore", str(tmp_path / "backup.tar")) == 2
    assert "the database revision 0999, unknown here" in capsys.readouterr().err


async def test_keys_that_settings_have_are_in_no_backup(
    tmp_path: Path,
    service: RunningService,
    settings: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pepper = (tmp_path / "first" / "key-pepper").read_text()
    settings.setenv("KEY_PEPPER", pepper)
    file = tmp_path / "backup.tar"
    assert await command("backup", str(file)) == 0
    assert "does not have KEY_PEPPER" in capsys.readouterr().err
    with tarfile.open(file) as tar:
        assert "key-pepper" not in tar.getnames()
        assert "master-key" in tar.getnames()
    settings.setenv("SERVICE_DATA_DIR", str(tmp_path / "second"))
    settings.delenv("DATABASE_URL")
    settings.delenv("KEY_PEPPER")
    assert await command("restore", str(file)) == 2
    assert "set KEY_PEPPER as it was" in capsys.readouterr().err
    settings.setenv("KEY_PEPPER", pepper)
    assert await command("restore", str(file)) == 0


async def test_a_backup_never_replaces_a_file_and_needs_an_installation(
    tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("backup", str(tmp_path / "other.tar")) == 2
    assert f"there is no key-pepper at {tmp_path / 'second'}" in capsys.readouterr().err
    assert await command("restore", str(archive)) == 0
    before = content_of(archive)
    assert await command("backup", str(archive)) == 2
    assert f"{archive} is already there" in capsys.readouterr().err
    assert content_of(archive) == before


async def test_of_a_service_on_postgresql_all_but_its_database_is_in_the_backup(
    tmp_path: Path,
    service: RunningService,
    settings: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings.setenv("DATABASE_URL", "postgresql://picket:hush@db.example/picket")
    file = tmp_path / "backup.tar"
    assert await command("backup", str(file)) == 0
    assert "run pg_dump before" in capsys.readouterr().err
    with tarfile.open(file) as tar:
        assert "picket.db" not in tar.getnames()
    settings.setenv("SERVICE_DATA_DIR", str(tmp_path / "second"))
    assert await command("restore", str(file)) == 0
    assert (tmp_path / "second" / "key-pepper").exists()
    settings.setenv("SERVICE_DATA_DIR", str(tmp_path / "third"))
    settings.delenv("DATABASE_URL")
    assert await command("restore", str(file)) == 2
    assert "set DATABASE_URL" in capsys.readouterr().err
