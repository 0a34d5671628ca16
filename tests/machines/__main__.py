"""`python -m tests.machines`: the README's commands on bare Debian machines, made here."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.machines.machine import Machine
from tests.machines.roots import (
    CannotMakeMachinesError,
    NoSuchReleaseError,
    Roots,
    release_here,
    require_means,
)
from tests.machines.stages import STAGES, Report, Sources
from tests.machines.surroundings import look_around

_PROJECT: Final = Path(__file__).parents[2]
_FOLDER: Final = _PROJECT / ".tools/machines"
_STABLE: Final = ("trixie", "bookworm")
_TESTING: Final = "testing"


def main() -> int:
    """0: all is well, or these machines cannot be made here and nobody relies on it."""
    chosen = _options()
    try:
        require_means()
    except CannotMakeMachinesError as problem:
        _say(f"machines: nothing was tried: {problem}")
        return 1 if os.environ.get("CI") else 0
    (_FOLDER / "logs").mkdir(parents=True, exist_ok=True)
    reports = []
    with tempfile.TemporaryDirectory(prefix="machines-") as folder:
        sources = _sources(Path(folder))
        for release in _releases(chosen):
            for stage in chosen.only or STAGES:
                report = _report(release, stage, sources, chosen)
                _say(*report.lines())
                reports.append(report)
    _say("", "Machines:", *(line for report in reports for line in report.lines()))
    return 1 if any(report.faults for report in reports) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.machines", description=__doc__)
    parser.add_argument("--release", action="append", choices=[*_STABLE, _TESTING])
    parser.add_argument("--other", action="store_true", help="the stable release that is not here")
    parser.add_argument("--only", action="append", choices=list(STAGES), help="all without it")
    parser.add_argument("--quick", action="store_true", help="`make run` and the quick tests")
    parser.add_argument("--keep", action="store_true", help="keep the machines in .tools/machines")
    return parser.parse_args()


def _releases(chosen: argparse.Namespace) -> list[str]:
    if chosen.other:
        return [name for name in _STABLE if name != release_here()][:1]
    return chosen.release or [*_STABLE, _TESTING]


def _report(release: str, stage: str, sources: Sources, chosen: argparse.Namespace) -> Report:
    name = f"{release}-{stage}"
    report = Report(name)
    roots = Roots(_FOLDER)
    try:
        root = roots.copy(release, name)
        machine = Machine(root, look_around(os.environ, Path.home()), _FOLDER / "logs")
        machine.set_up(sources.commit)
        _say(f"{name}: started; logs in {_FOLDER / 'logs'}")
        STAGES[stage](machine, report, sources, quick=chosen.quick)
    except NoSuchReleaseError as problem:
        # Nobody promises that testing can be had.
        (report.figures if release == _TESTING else report.faults).append(f"not run: {problem}")
    finally:
        if not chosen.keep:
            roots.remove(name)
    return report


def _sources(folder: Path) -> Sources:
    """Pack what is committed."""
    commit = folder / "commit.tar"
    subprocess.run(["git", "-C", _PROJECT, "archive", "--output", commit, "HEAD"], check=True)
    return Sources(commit, (_PROJECT / "README.md").read_text(encoding="utf-8"))


def _say(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201 - what a person watches


if __name__ == "__main__":
    sys.exit(main())
