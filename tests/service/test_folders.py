"""The service's folders as processes meet them: one service to a database."""

import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from service.data_dir import held_folders
from service.errors import SettingsError
from service.settings import Settings
from tests.service.test_main import GIVEN, a_service, start

HOLD = """
import os, sys
from pathlib import Path
from service.data_dir import held_folders
from service.settings import Settings
with held_folders(Settings(data_dir=Path(sys.argv[1]), database=Path(sys.argv[2]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def settings(folder: Path, file: Path | None = None) -> Settings:
    return Settings(data_dir=folder, database=file or folder / "picket.db")


def refusal(chosen: Settings) -> str:
    with pytest.raises(SettingsError) as caught, held_folders(chosen):
        pass
    (sentence,) = caught.value.problems
    return sentence


async def test_a_second_service_on_a_database_stops_before_it_listens(tmp_path: Path) -> None:
    async with a_service(tmp_path, **GIVEN) as first:
        second = await start(tmp_path, **GIVEN)
        said, _ = await second.child.communicate()
        assert second.child.returncode == 2
        assert said.decode() == (
            f"another service uses the database in {tmp_path}; "
            "stop it, or give SERVICE_DATA_DIR another folder\n"
        )
        assert await first.probe("/-/readiness") == 200


async def test_after_a_kill_the_next_service_starts_at_once(tmp_path: Path) -> None:
    async with a_service(tmp_path, **GIVEN) as first:
        first.child.kill()
        await first.child.wait()
        async with a_service(tmp_path, **GIVEN) as second:
            assert await second.stop() == 0


async def test_other_programs_may_open_the_database_beside_the_service(tmp_path: Path) -> None:
    async with a_service(tmp_path, **GIVEN) as process:
        with sqlite3.connect(tmp_path / "picket.db") as beside:
            (count,) = beside.execute("SELECT count(*) FROM account").fetchone()
            beside.execute("UPDATE account SET name = name")
        beside.close()
        assert count == 1
        assert await process.stop() == 0


async def test_a_folder_that_cannot_be_made_is_one_line_before_listening(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = await start(tmp_path / "file" / "data")
    said, _ = await process.child.communicate()
    assert process.child.returncode == 2
    assert said.decode() == (
        f"SERVICE_DATA_DIR is {tmp_path}/file/data, which cannot be used (Not a directory);"
        " use a folder that this user may write to\n"
    )


@pytest.mark.parametrize("folder", ["/proc/x", "/proc"])
def test_a_folder_that_takes_no_files_is_named(folder: str) -> None:
    sentence = refusal(settings(Path(folder)))
    assert sentence.startswith(f"SERVICE_DATA_DIR is {folder}, which cannot be used (")


def test_a_database_elsewhere_is_named_by_its_own_setting(tmp_path: Path) -> None:
    sentence = refusal(settings(tmp_path, Path("/proc/x/picket.db")))
    assert sentence.startswith("DATABASE_URL names /proc/x/picket.db, which cannot be used (")
    elsewhere = settings(tmp_path / "one", tmp_path / "db" / "picket.db")
    with held_folders(elsewhere):
        sentence = refusal(settings(tmp_path / "two", tmp_path / "db" / "picket.db"))
    assert sentence == (
        f"another service uses the database in {tmp_path}/db; "
        "stop it, or give DATABASE_URL another folder"
    )


def test_the_lock_is_that_of_the_process_and_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    command = [sys.executable, "-c", HOLD, str(tmp_path / "data"), str(tmp_path / "data" / "x.db")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        by_another_name = settings(tmp_path / "link", tmp_path / "link" / "x.db")
        assert "another service uses the database" in refusal(by_another_name)
        with held_folders(settings(tmp_path / "data", tmp_path / "data" / "y.db")):
            pass  # another database in the same folder is another service's right
        holder.kill()
    with held_folders(by_another_name):
        pass


def test_a_file_system_without_locks_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with capture_logs() as lines, held_folders(settings(tmp_path)):
        pass
    assert lines == [
        {
            "event": "service.unlocked",
            "log_level": "warning",
            "folder": str(tmp_path),
            "reason": os.strerror(errno.ENOLCK),
        }
    ]
