"""Runtimes lie where the users of runs can enter, and where whoever installs them may write."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from runners.installation.places import others_may_enter

ROOT = Path(__file__).parents[3]
SOMEONE = 60999
IN_THE_SYSTEM = re.compile(r"/usr/local/lib/picket/runtimes/[0-9a-f]{12}")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="is another user")


class Installation:
    """Our code alone, as a release has it, in a folder that others can enter."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        shutil.copytree(ROOT / "runners/installation", folder / "runners/installation")
        shutil.copytree(ROOT / "runners/harness/runtimes", folder / "runners/harness/runtimes")

    def become_a_working_copy(self) -> None:
        (self.root / "pyproject.toml").touch()

    def folder(self, user: int | None = None, **environ: str) -> str:
        code = "from runners.installation.places import runtimes_folder as f; print(f())"
        done = subprocess.run(
            ("/usr/bin/python3", "-B", "-c", code),
            cwd=self.root,
            env={"HOME": "/nonexistent", **environ},
            user=user,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def installation() -> Iterator[Installation]:
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Installation(Path(folder))


def test_a_working_copy_has_them_below_itself(installation: Installation) -> None:
    installation.become_a_working_copy()
    assert installation.folder() == f"{installation.root}/.tools/runtimes"


@as_root
def test_an_environment_has_them_below_itself(installation: Installation) -> None:
    assert installation.folder() == "/usr/runtimes"


@as_root
def test_root_has_them_in_the_system_where_others_cannot_enter(installation: Installation) -> None:
    installation.become_a_working_copy()
    installation.root.chmod(0o700)
    assert IN_THE_SYSTEM.fullmatch(installation.folder())


@as_root
def test_releases_in_the_system_stand_side_by_side(installation: Installation) -> None:
    installation.become_a_working_copy()
    installation.root.chmod(0o700)
    first = installation.folder()
    lock = installation.root / "runners/harness/runtimes/2026.04/package-lock.json"
    lock.write_text(lock.read_text() + "\n")
    assert installation.folder() != first


@as_root
def test_an_ordinary_user_has_them_below_the_own_working_copy(installation: Installation) -> None:
    installation.become_a_working_copy()
    os.chown(installation.root, SOMEONE, SOMEONE)
    installation.root.chmod(0o700)
    assert installation.folder(SOMEONE) == f"{installation.root}/.tools/runtimes"


@as_root
def test_a_user_who_may_not_write_there_has_them_in_the_own_home(
    installation: Installation,
) -> None:
    found = installation.folder(SOMEONE, HOME="/home/someone")
    assert found.startswith("/home/someone/.local/share/picket/runtimes/")
    found = installation.folder(SOMEONE, XDG_DATA_HOME="/data")
    assert found.startswith("/data/picket/runtimes/")


@as_root
def test_a_user_finds_what_root_has_installed(installation: Installation) -> None:
    installation.become_a_working_copy()
    (installation.root / ".tools/runtimes").mkdir(parents=True)
    assert installation.folder(SOMEONE) == f"{installation.root}/.tools/runtimes"


def test_others_may_enter_what_no_folder_above_keeps_them_from() -> None:
    with TemporaryDirectory(dir="/tmp") as folder:
        inner = Path(folder) / "inner"
        inner.mkdir(mode=0o755)
        Path(folder).chmod(0o755)
        assert others_may_enter(inner)
        assert others_may_enter(inner / "not/yet/there")
        Path(folder).chmod(0o750)
        assert not others_may_enter(inner)
        (Path("/tmp") / f"{Path(folder).name}-link").symlink_to(inner)
        link = Path(f"{folder}-link")
        try:
            assert not others_may_enter(link)
        finally:
            link.unlink()
