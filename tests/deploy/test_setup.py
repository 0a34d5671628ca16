"""What a fresh machine goes through: `scripts/setup.sh`, without what it installs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = ("sh", "chmod", "cp", "dirname", "env", "grep", "ls", "mkdir", "rm", "sed", "touch")
UV_VERSION = "0.13.8"
PICKET = 'echo "$@" >>asked-of-picket'


class Machine:
    """The script in a folder of its own, and the programs that this machine seems to have."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "programs"
        for place in ("scripts", "runners", "programs", ".venv/bin"):
            (folder / place).mkdir(parents=True)
        shutil.copy(ROOT / "scripts/setup.sh", folder / "scripts")
        shutil.copy(ROOT / "runners/__init__.py", folder / "runners")
        shutil.copytree(ROOT / "runners/installation", folder / "runners/installation")
        shutil.copytree(ROOT / "runners/harness/runtimes", folder / "runners/harness/runtimes")
        (folder / "pyproject.toml").touch()
        for name in COMMANDS:
            (self.programs / name).symlink_to(Path("/usr/bin") / name)
        self.program("chromium", "echo Chromium 1")
        self.program("apt-get", f'echo "$@" >>{folder}/asked-of-apt')
        self.picket_ends_with(0)
        self.makes_environments(able=True)

    def program(self, name: str, lines: str, folder: Path | None = None) -> Path:
        file = (folder or self.programs) / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/sh\n{lines}\n")
        file.chmod(0o755)
        return file

    def picket_ends_with(self, code: int) -> None:
        self.program("picket", f"{PICKET}; exit {code}", self.folder / ".venv/bin")

    def makes_environments(self, *, able: bool) -> None:
        """A Python that has no `ensurepip` is Debian's without python3-venv.

        The environment that it makes has a pip that brings uv, and a uv that does nothing.
        """
        self.program("uv", f'echo "uv {UV_VERSION}"; echo "$@" >>asked-of-uv', self.folder)
        self.program("pip", "cp uv .tools/bin/uv", self.folder)
        self.program(
            "python",
            f"""case "$*" in
            *ensurepip*) [ -e installed ] || exit {0 if able else 1} ;;
            *sys.executable*) echo {self.programs}/python ;;
            "-m venv .tools") mkdir -p .tools/bin; cp pip .tools/bin/python ;;
            *) exec {sys.executable} "$@" ;;
            esac""",
        )

    def set_up(self, goal: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "scripts/setup.sh", goal],
            cwd=self.folder,
            env={
                "PATH": str(self.programs),
                "PICKET_PYTHON": str(self.programs / "python"),
                "CHROMIUM_PATH": str(self.programs / "chromium"),
                **environ,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def asked_of(self, program: str) -> list[str]:
        said = self.folder / f"asked-of-{program}"
        return said.read_text().splitlines() if said.exists() else []

    def is_ready(self, stamp: str) -> bool:
        return (self.folder / ".venv" / stamp).exists()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


NO_CHROMIUM = {"CHROMIUM_PATH": "/nowhere/chromium"}


def test_what_can_be_installed_is_ready(machine: Machine) -> None:
    done = machine.set_up("scripts")
    assert done.returncode == 0, done.stderr
    assert machine.asked_of("picket") == ["setup --no-packages"]
    assert machine.asked_of("apt") == []
    assert machine.is_ready(".ready-for-scripts")
    assert not machine.is_ready(".ready")
    assert not machine.is_ready(".ready-for-tests")


def test_the_tools_of_developers_are_not_installed_for_a_run_and_stay_where_they_are(
    machine: Machine,
) -> None:
    for goal in ("scripts", "libraries", "tests"):
        assert machine.set_up(goal).returncode == 0
    scripts, libraries, tests = [one for one in machine.asked_of("uv") if "sync" in one]
    assert scripts.endswith(" --no-default-groups --extra all --inexact")
    assert libraries == tests == scripts.partition(" --no-default-groups")[0]
    assert all(machine.is_ready(stamp) for stamp in (".ready", ".ready-for-tests"))


def test_libraries_alone_want_no_chromium(machine: Machine) -> None:
    assert machine.set_up("libraries", **NO_CHROMIUM).returncode == 0
    assert (machine.asked_of("apt"), machine.asked_of("picket")) == ([], [])
    assert machine.is_ready(".ready")
    assert not machine.is_ready(".ready-for-scripts")


def test_uv_is_installed_once(machine: Machine) -> None:
    first, second = machine.set_up("libraries"), machine.set_up("libraries")
    assert f"installing uv {UV_VERSION}" in first.stderr
    assert "installing uv" not in second.stderr
    assert len([one for one in machine.asked_of("uv") if one.startswith("sync --frozen")]) == 2


@pytest.mark.skipif("os.geteuid() != 0", reason="the script's user is root")
def test_all_packages_that_are_missing_are_installed_in_one_step(machine: Machine) -> None:
    """Without what they merely recommend."""
    machine.makes_environments(able=False)
    installs = f'echo "$@" >>{machine.folder}/asked-of-apt; : >{machine.folder}/installed'
    machine.program("apt-get", installs)
    done = machine.set_up("tests", **NO_CHROMIUM)
    assert done.returncode == 0, done.stderr
    update, install = machine.asked_of("apt")
    assert update == "update"
    words = install.split()
    assert words[:3] == ["install", "-y", "--no-install-recommends"]
    assert {"chromium-headless-shell", "curl"} <= set(words)
    assert any(word.endswith("-venv") for word in words)
    assert machine.is_ready(".ready-for-tests")


def as_a_user(machine: Machine) -> None:
    """Whoever starts the script has no rights, and there is no sudo on the path."""
    site = machine.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import os\nos.geteuid = lambda: 1000\n")


def test_without_rights_one_sentence_names_the_one_command(machine: Machine) -> None:
    as_a_user(machine)
    machine.makes_environments(able=False)
    done = machine.set_up("tests", PYTHONPATH=str(machine.folder / "site"), **NO_CHROMIUM)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    missing, command = line.split(" An administrator runs once, as root: ")
    assert command.startswith("apt-get update && apt-get install -y --no-install-recommends ")
    named = command.split("--no-install-recommends ")[1].split()
    assert {"chromium-headless-shell", "curl"} <= set(named)
    assert any(name.endswith("-venv") for name in named)
    assert all(name in missing for name in named)
    assert machine.asked_of("apt") == []


def test_without_rights_what_is_merely_useful_stops_nobody(machine: Machine) -> None:
    as_a_user(machine)
    machine.picket_ends_with(1)
    done = machine.set_up("scripts", PYTHONPATH=str(machine.folder / "site"), **NO_CHROMIUM)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "administrator" in line]
    assert line.endswith("--no-install-recommends chromium-headless-shell")
    assert any(one.startswith("sync ") for one in machine.asked_of("uv"))


def test_a_person_goes_on_without_what_scripts_need_and_each_start_tries_again(
    machine: Machine,
) -> None:
    machine.picket_ends_with(1)
    done = machine.set_up("scripts")
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "continuing" in line]
    assert ".venv/bin/picket setup" in line
    assert not machine.is_ready(".ready-for-scripts")


def test_what_cannot_be_installed_fails_in_continuous_integration(machine: Machine) -> None:
    machine.picket_ends_with(1)
    done = machine.set_up("tests", CI="true")
    assert done.returncode == 2
    assert "setup: failed: " in done.stderr
    assert not machine.is_ready(".ready-for-scripts")
    assert not machine.is_ready(".ready-for-tests")


@pytest.mark.skipif("os.geteuid() != 0", reason="the script's user is root")
def test_what_apt_says_is_shown_when_it_fails(machine: Machine) -> None:
    machine.program("apt-get", "echo no route to host; exit 100")
    done = machine.set_up("scripts", **NO_CHROMIUM)
    assert "no route to host" in done.stderr
    assert "failed: apt-get update" in done.stderr


def test_a_machine_without_apt_is_told_what_is_missing(machine: Machine) -> None:
    (machine.programs / "apt-get").unlink()
    done = machine.set_up("tests")
    assert done.returncode == 0, done.stderr
    assert "there is no apt-get here" in done.stderr
    assert "curl" in done.stderr
