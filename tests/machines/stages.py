"""What is done on a bare machine: the README's commands as root, as a guest, and to install."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from contract.checks import CheckType
from tests.machines.machine import GUEST, ROOT, Machine, Run, User
from tests.machines.outputs import (
    commands_for_root,
    first_result,
    install_commands,
    problems,
    pytest_end,
    pytest_failures,
    results,
    results_line,
    uv_command,
)

_UNTIL: Final = "--until-results 30"
_RUN: Final = f'make run ARGS="{_UNTIL}"'
_STARTER_TYPES: Final = (
    CheckType.URL,
    CheckType.API,
    CheckType.TCP,
    CheckType.ICMP,
    CheckType.DNS,
    CheckType.HEARTBEAT,
    CheckType.BROWSER,
    CheckType.MULTI_STEP,
)
_NEED_RIGHTS: Final = (CheckType.ICMP,)
"""What a machine may refuse to those who are not root."""
_RUN_LIMIT_S: Final = 20 * 60.0
_TEST_LIMIT_S: Final = 60 * 60.0


@dataclass(slots=True)
class Report:
    """What came out on one machine."""

    title: str
    figures: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Empty: all is well."""

    def lines(self) -> list[str]:
        """For a person: one line, and one more for each fault."""
        head = f"{'FAILED' if self.faults else 'ok':<6}  {self.title}: {'; '.join(self.figures)}"
        return [head, *(f"        {fault}" for fault in self.faults)]


@dataclass(frozen=True, slots=True)
class Sources:
    """What is brought to a machine."""

    commit: Path
    """An archive of what is committed."""
    readme: str
    """Whose commands are run."""


def _run_as_root(machine: Machine, report: Report, _: Sources, *, quick: bool) -> None:
    _run_and_test(machine, report, ROOT, tests="make test-quick" if quick else "make test")


def _run_as_user(machine: Machine, report: Report, _: Sources, *, quick: bool) -> None:
    _run_and_test(machine, report, GUEST, tests=None if quick else "make test")


def _run_and_test(machine: Machine, report: Report, user: User, *, tests: str | None) -> None:
    before_mb = machine.used_mb()
    run = _with_administrator(
        machine, report, user, _RUN, log=f"{report.title}-run.log", limit_s=_RUN_LIMIT_S
    )
    _judge_run(report, run, excusable=() if user is ROOT else _NEED_RIGHTS)
    report.figures.append(f"{machine.used_mb() - before_mb} MB")
    if tests is None:
        return
    log = f"{report.title}-test.log"
    done = _with_administrator(machine, report, user, tests, log=log, limit_s=_TEST_LIMIT_S)
    report.figures.append(f"`{tests}` took {done.took_s:.0f} s: {pytest_end(done.lines)}")
    report.figures.append(f"{machine.used_mb() - before_mb} MB with what tests need")
    if done.code != 0:
        report.faults += [f"`{tests}` ended with {done.code}", *pytest_failures(done.text)]


def _install_with_pip(machine: Machine, report: Report, sources: Sources, *, quick: bool) -> None:
    del quick
    *steps, up = install_commands(sources.readme)
    _install_and_run(machine, report, steps, up)


def _install_with_uv(machine: Machine, report: Report, sources: Sources, *, quick: bool) -> None:
    """By a user whose files nobody else can read, as some organisations have it."""
    del quick
    packages, *_ = install_commands(sources.readme)
    steps = (
        packages,
        "python3 -m venv /opt/uv && /opt/uv/bin/pip install uv",
        f"umask 077; PATH=/opt/uv/bin:$PATH {uv_command(sources.readme)}",
        "umask 077; /root/.local/bin/picket setup",
    )
    _install_and_run(machine, report, steps, "umask 077; /root/.local/bin/picket up")


def _install_and_run(machine: Machine, report: Report, steps: Sequence[str], up: str) -> None:
    before_mb = machine.used_mb()
    folder = f"{ROOT.home}/picket"
    took_s = 0.0
    for number, command in enumerate(steps):
        log = f"{report.title}-{number}.log"
        done = machine.run(command, user=ROOT, folder=folder, log=log, limit_s=_RUN_LIMIT_S)
        took_s += done.took_s
        if done.code != 0:
            report.faults += [f"`{command}` ended with {done.code}:", *done.lines[-20:]]
            return
    report.figures.append(f"installed in {took_s:.0f} s")
    command, log = f"{up} {_UNTIL}", f"{report.title}-run.log"
    run = machine.run(command, user=ROOT, folder=ROOT.home, log=log, limit_s=_RUN_LIMIT_S)
    _judge_run(report, run)
    report.figures.append(f"{machine.used_mb() - before_mb} MB")


def _with_administrator(
    machine: Machine, report: Report, user: User, command: str, *, log: str, limit_s: float
) -> Run:
    """Run it; when it asks for an administrator's command, run that and start once more."""
    folder = f"{user.home}/picket"
    run = machine.run(command, user=user, folder=folder, log=log, limit_s=limit_s)
    if run.code == 0 or user is ROOT:
        return run
    asked = commands_for_root(run.text)
    if len(asked) != 1:
        report.faults.append(f"`{command}` asked for {len(asked)} commands as root, not one")
        return run
    report.figures.append(f"an administrator runs `{asked[0]}`")
    helped = machine.run(asked[0], user=ROOT, folder="/root", log=f"admin-{log}", limit_s=limit_s)
    if helped.code != 0:
        report.faults += [f"`{asked[0]}` as root ended with {helped.code}:", *helped.lines[-10:]]
        return run
    return machine.run(command, user=user, folder=folder, log=f"again-{log}", limit_s=limit_s)


def _judge_run(report: Report, run: Run, *, excusable: tuple[CheckType, ...] = ()) -> None:
    counts, first = results(run.lines), first_result(run.lines)
    if first is not None:
        report.figures.append(f"first result after {run.line_times_s[first]:.0f} s")
    report.figures.append(f"30 results after {run.took_s:.0f} s ({results_line(counts)})")
    report.faults += problems(counts, run.text, wanted=_STARTER_TYPES, excusable=excusable)
    if run.code != 0:
        report.faults += [f"it ended with {run.code}:", *run.lines[-20:]]


class Stage(Protocol):
    """What is done on one bare machine."""

    def __call__(self, machine: Machine, report: Report, _: Sources, /, *, quick: bool) -> None:
        """Do it, and note figures and faults."""


STAGES: Final[Mapping[str, Stage]] = {
    "root": _run_as_root,
    "user": _run_as_user,
    "pip": _install_with_pip,
    "uv": _install_with_uv,
}
"""By the name that a person gives; each has a machine of its own."""
