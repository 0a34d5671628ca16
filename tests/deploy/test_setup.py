"""What a fresh machine goes through: `scripts/setup.sh scripts`, without what it installs."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = "/usr/bin:/bin"
COMMANDS = (
    "sh",
    "chmod",
    "dirname",
    "env",
    "find",
    "head",
    "id",
    "ln",
    "mkdir",
    "sort",
    "tail",
    "touch",
)


class Machine:
    """The script in a folder of its own, and the programs that this machine seems to have."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "programs"
        for place in (folder / "scripts", folder / ".venv", self.programs):
            place.mkdir()
        shutil.copy(ROOT / "scripts/setup.sh", folder / "scripts")

    def program(self, name: str, lines: str) -> None:
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{lines}\n")
        file.chmod(0o755)

    def runtimes_end_with(self, code: int) -> None:
        (self.folder / "scripts/runtimes.sh").write_text(f"exit {code}\n")

    def set_up(self, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "scripts/setup.sh", "scripts"],
            cwd=self.folder,
            env={"PATH": f"{self.programs}:{BIN}", **environ},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def is_ready(self) -> bool:
        return (self.folder / ".venv/.ready-for-scripts").exists()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.runtimes_end_with(0)
    made.program("apt-get", "echo no route to host; exit 100")
    return made


NO_CHROMIUM = {"CHROMIUM_PATH": "/nowhere/chromium"}


def test_what_can_be_installed_is_ready(machine: Machine) -> None:
    machine.program("chromium", "echo Chromium 1")
    done = machine.set_up(CHROMIUM_PATH=str(machine.programs / "chromium"))
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.is_ready


def test_what_takes_long_is_told_to_go_on(machine: Machine) -> None:
    machine.program("chromium", "echo Chromium 1")
    machine.program("sleep", "exec /bin/sleep 0.1")
    machine.program("du", "[ ! -e asked ] || touch again; touch asked; printf '214\\tx\\n'")
    waits = "until [ -e again ]; do /bin/sleep 0.1; done\n"
    (machine.folder / "scripts/runtimes.sh").write_text(waits)
    done = machine.set_up(CHROMIUM_PATH=str(machine.programs / "chromium"))
    first = done.stderr.splitlines()[0]
    assert first == "setup: still installing the runtimes: 214 MB so far"
    assert machine.is_ready


def test_without_chromium_a_person_goes_on_and_is_told_so_in_one_line(machine: Machine) -> None:
    done = machine.set_up(**NO_CHROMIUM)
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "going on" in line]
    assert "without BROWSER checks and Playwright suites" in line
    assert "sh scripts/setup.sh scripts" in line
    assert "no route to host" in done.stderr
    assert machine.is_ready


def test_without_runtimes_a_person_goes_on_and_is_told_so(machine: Machine) -> None:
    machine.runtimes_end_with(2)
    done = machine.set_up()
    assert done.returncode == 0
    assert "going on without scripted checks" in done.stderr
    assert machine.is_ready


@pytest.mark.parametrize("code", [0, 2], ids=["no Chromium", "no runtimes"])
def test_what_cannot_be_installed_fails_in_continuous_integration(
    machine: Machine, code: int
) -> None:
    machine.runtimes_end_with(code)
    done = machine.set_up(CI="true", **NO_CHROMIUM)
    assert done.returncode == 2
    assert "setup: failed: no " in done.stderr
    assert not machine.is_ready


def test_chromium_comes_from_the_distribution_without_what_it_merely_recommends(
    machine: Machine,
) -> None:
    machine.program("id", "echo 0")
    machine.program("env", 'shift; exec "$@"')
    machine.program("apt-get", f'echo "$@" >>{machine.folder}/asked')
    machine.set_up(**NO_CHROMIUM)
    asked = (machine.folder / "asked").read_text().splitlines()
    assert asked == ["update", "install -y --no-install-recommends chromium-headless-shell"]


def test_a_distribution_without_apt_gets_the_build_of_playwright(machine: Machine) -> None:
    """The newest runtime's own command is asked for it, into a folder of this working copy."""
    downloaded = machine.folder / ".tools/browsers/chromium-1/chrome-headless-shell"
    runtime = machine.folder / ".tools/runtimes/2026.04"
    cli = runtime / "node_modules/@playwright/test/cli.js"
    cli.parent.mkdir(parents=True)
    cli.write_text(
        f'test "$*" = "install --only-shell chromium" || exit 1\n'
        f"test $PLAYWRIGHT_BROWSERS_PATH = {machine.folder}/.tools/browsers || exit 1\n"
        f"mkdir -p {downloaded.parent}\n"
        f"printf '#!/bin/sh\\n' >{downloaded}\n"
        f"chmod +x {downloaded}\n"
    )
    (runtime / "bin").mkdir()
    (runtime / "bin/node").symlink_to("/bin/sh")
    (machine.programs / "apt-get").unlink()
    for name in COMMANDS:
        (machine.programs / name).symlink_to(Path("/usr/bin") / name)
    done = machine.set_up(PATH=str(machine.programs), **NO_CHROMIUM)
    assert (done.returncode, done.stderr) == (0, "setup: installing Chromium's headless shell\n")
    assert (machine.folder / ".tools/runtimes/chromium").readlink() == downloaded
