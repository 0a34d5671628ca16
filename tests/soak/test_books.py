"""The soak's zeros are counted: what is doubled, lost or left behind shows."""

import asyncio
import os
import secrets
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

from tests.faults.ledger import Ledger
from tests.faults.processes import AgentChild
from tests.soak.alerting.comparison import Compared
from tests.soak.books import Outcome, Size, at_rest, marked_processes

CLEAN = Outcome(
    ledger=Ledger(
        runs=10,
        open_runs=0,
        leased=0,
        unqueued=0,
        statuses={"PASSED": 8, "MISSED": 2},
        causes={"paused": 2},
        doubled=[],
        lost=[],
        attempts=2,
        unlike_attempts=[],
        unmarked=[],
        late=1,
        late_of_nothing=0,
        most_claims=2,
        open_sessions=0,
        triggered=4,
    ),
    acknowledged=4,
    pings=7,
    stored_pings=8,
    leaked_tasks=0,
    leaked_processes=0,
    leaked_fds=0,
    leaked_secrets=0,
    holes=0,
    failed_heartbeats=0,
    wrong_heartbeats=0,
    unsteady_failures=0,
    alerting=Compared(alerts=5),
    silence_p99_s=3.24,
)


def test_a_clean_soak_says_so_in_one_line() -> None:
    assert CLEAN.is_clean
    assert CLEAN.line() == (
        "runs=10 final=8 missed=2 duplicate=0 lost=0 "
        "leaked_tasks=0 leaked_processes=0 leaked_fds=0 leaked_secrets=0 "
        "holes=0 wrong_heartbeats=0 "
        "alerts=5 lost_alerts=0 extra_alerts=0 undelivered=0 out_of_order=0 silence_p99_s=3.2"
    )


@pytest.mark.parametrize(
    ("shown", "changes"),
    [
        ("duplicate=1", {"doubled": [3], "statuses": {"PASSED": 9, "MISSED": 2}, "runs": 11}),
        ("lost=1", {"lost": [3], "statuses": {"PASSED": 7, "MISSED": 2}}),
        ("lost=1", {"open_runs": 1, "statuses": {"PASSED": 7, "MISSED": 2}}),
        ("lost=1", {"unmarked": [3]}),
        ("lost=1", {"unlike_attempts": [3]}),
        ("lost=1", {"open_sessions": 1}),
        ("lost=1", {"late_of_nothing": 1}),
        ("lost=1", {"triggered": 3}),
        ("lost=0", {"statuses": {"PASSED": 7, "FAILED": 1, "MISSED": 2}}),
    ],
)
def test_whatever_is_out_of_balance_shows(shown: str, changes: dict[str, Any]) -> None:
    outcome = replace(CLEAN, ledger=replace(CLEAN.ledger, **changes))
    assert shown in outcome.line()
    assert not outcome.is_clean


def test_a_ping_that_was_answered_and_is_nowhere_is_lost() -> None:
    assert "lost=2" in replace(CLEAN, stored_pings=5).line()


@pytest.mark.parametrize(
    "leak",
    [
        *("leaked_tasks", "leaked_processes", "leaked_fds", "leaked_secrets"),
        *("holes", "wrong_heartbeats"),
    ],
)
def test_a_leak_spoils_a_soak(leak: str) -> None:
    outcome = replace(CLEAN, **{leak: 1})
    assert f"{leak}=1" in outcome.line()
    assert not outcome.is_clean


@pytest.mark.parametrize(
    ("shown", "amiss"),
    [
        ("lost_alerts=1", "lost"),
        ("extra_alerts=1", "extra"),
        ("undelivered=1", "undelivered"),
        ("out_of_order=1", "out_of_order"),
    ],
)
def test_alerts_that_are_amiss_spoil_a_soak(shown: str, amiss: str) -> None:
    outcome = replace(CLEAN, alerting=Compared(alerts=5, **{amiss: ("this",)}))
    assert shown in outcome.line()
    assert not outcome.is_clean


def test_faults_that_are_found_with_unsteady_pages_spoil_nothing() -> None:
    ledger = replace(CLEAN.ledger, statuses={"PASSED": 7, "FAILED": 1, "MISSED": 2})
    assert replace(CLEAN, ledger=ledger, unsteady_failures=1).is_clean


def test_a_long_silence_spoils_a_soak() -> None:
    assert replace(CLEAN, silence_p99_s=15.0).is_clean
    assert not replace(CLEAN, silence_p99_s=15.1).is_clean


async def test_a_process_that_was_left_behind_is_found_by_its_mark() -> None:
    mark = secrets.token_hex(8)  # another run of the tests may look at the same machine
    script = "import subprocess, sys; subprocess.Popen(['sleep', '3600']); sys.exit(0)"
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, env={**os.environ, "SOAK_TEST": mark}
    )
    await parent.wait()
    [orphan] = marked_processes(f"SOAK_TEST={mark}")
    os.kill(orphan, signal.SIGKILL)


async def test_files_that_stay_open_are_more_than_before() -> None:
    script = "import os, sys; print(flush=True); sys.stdin.readline(); os.pipe(); print(flush=True)"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script + "; sys.stdin.readline()", stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None
    assert process.stdout is not None
    child = AgentChild(process)

    async def measure() -> Size:
        return Size(tasks=len(asyncio.all_tasks()), fds=child.fds())

    await process.stdout.readline()
    before = await measure()
    process.stdin.write(b"\n")
    await process.stdout.readline()
    waiting = asyncio.create_task(asyncio.sleep(3600), name="leak")
    now = await at_rest(measure)
    waiting.cancel()
    process.kill()
    await process.wait()
    assert (now.tasks - before.tasks, now.fds - before.fds) == (1, 2)
