"""Runtimes lie where the users of runs can enter, and where whoever installs them may write."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from runners.installation.places import others_may_enter

ROOT = Path(__file__).parents[3]
SOMEONE = 60999
IN_THE_SYSTEM = re.compile(r"/usr/local/lib/picket/runtimes/[0-9a-f]{12}")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="is another user")


class Installation:
    """Our code alone, as a release of its own has it, in a folder that others can enter."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        shutil.copytree(ROOT / "runners/installation", folder / "runners/installation")
        shutil.copytree(ROOT / "runners/harness/runtimes", folder / "runners/harness/runtimes")
        # What this machine has of our release is of no use to it.
        self.become_another_release()

    def become_another_release(self) -> None:
        lock = self.root / "runners/harness/runtimes/2026.04/package-lock.json"
        lock.write_text(lock.read_text() + f"{uuid4()}\n")

    def become_a_working_copy(self) -> None:
        (self.root / "pyproject.toml").touch()

    def install(self, folder: str) -> str:
        """Put a runtime there that is whole by its own word."""
        code = "from runners.installation.places import fingerprint as f; print(f('2026.04'))"
        runtime = Path(folder) / "2026.04"
        runtime.mkdir(parents=True)
        (runtime / "ready").write_text(self._python(code))
        return folder

    def new_folder(self, user: int | None = None, **environ: str) -> str:
        code = "from runners.installation.places import installation_folder as f; print(f())"
        return self._python(code, user, **environ)

    def folder(self, user: int | None = None, **environ: str) -> str:
        code = "from runners.installation.places import runtimes_folder as f; print(f())"
        return self._python(code, user, **environ)

    def _python(self, code: str, user: int | None = None, **environ: str) -> str:
        done = subprocess.run(
            ("/usr/bin/python3", "-B", "-c", code),
            cwd=self.root,
            env={"HOME": "/nonexistent", **environ},
            user=user,
            group=user,
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
    installation.become_another_release()
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


@pytest.fixture
def in_the_system(installation: Installation) -> Iterator[str]:
    """The folder of the system that root installs this release in."""
    installation.become_a_working_copy()
    installation.root.chmod(0o700)
    folder = installation.new_folder()
    installation.root.chmod(0o755)
    assert IN_THE_SYSTEM.fullmatch(folder)
    above = Path(folder).parents
    made = next(one for one in reversed((Path(folder), *above)) if not one.exists())
    yield folder
    shutil.rmtree(made, ignore_errors=True)


@as_root
def test_root_finds_what_is_installed_whatever_the_modes_have_become(
    installation: Installation, in_the_system: str
) -> None:
    installation.install(in_the_system)
    assert installation.folder() == installation.new_folder() == in_the_system
    installation.root.chmod(0o700)
    assert installation.folder() == in_the_system


@as_root
def test_root_finds_what_other_users_cannot_enter_and_installs_elsewhere(
    installation: Installation, in_the_system: str
) -> None:
    own = installation.install(f"{installation.root}/.tools/runtimes")
    installation.root.chmod(0o750)
    assert installation.folder() == own
    assert installation.new_folder() == in_the_system
    installation.install(in_the_system)
    assert installation.folder() == in_the_system
    installation.root.chmod(0o755)
    assert installation.folder() == own


@as_root
def test_a_user_of_a_closed_installation_finds_what_root_has_in_the_system(
    installation: Installation, in_the_system: str
) -> None:
    os.chown(installation.root, 0, SOMEONE)
    installation.root.chmod(0o750)
    installation.install(in_the_system)
    assert installation.folder(SOMEONE) == installation.new_folder(SOMEONE) == in_the_system


def test_a_named_folder_is_taken_as_it_is(installation: Installation) -> None:
    installation.become_a_working_copy()
    named = {"PICKET_RUNTIMES": "/nowhere/closed"}
    assert installation.folder(**named) == installation.new_folder(**named) == "/nowhere/closed"


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
