"""The dispatcher: a slot per job, results handed on, and whose fault a trouble is."""

import asyncio
import contextlib
import hashlib
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.dispatcher import Dispatcher, Works
from agent.enclosures import Enclosures
from agent.envelopes import SealedEnvelopes
from agent.errors import ServiceAwayError
from agent.running import RunningJobs
from agent.slots import Slots
from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.job import Job
from contract.result import LogLine, Outcome
from runners.kit.isolation.workspace import Workspace
from runners.kit.leak_scan.door import Clean
from runners.kit.scrubbing.files import clean_in_child
from runners.kit.scrubbing.scrub import Scrubber
from tests.builders.agents import (
    MemoryFiles,
    MemorySource,
    MemorySpool,
    ScriptedRunner,
    ids,
    metrics,
    until,
)
from tests.builders.observations import an_outcome
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job, a_secret, a_spec_of, an_api_spec


class Leases:
    """Every lease is good unless the test says otherwise."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.confirmed: list[str] = []
        self.good: Any = True
        """True, False, an error to raise, an event to wait for, or a function to ask."""

    def hold(self, run: Any, *, claimed_at: float) -> None:
        self.held.append(run.job.job_id)

    def drop(self, job: Job) -> None:
        self.held.remove(job.job_id)

    async def confirm(self, job: Job) -> bool:
        self.confirmed.append(job.job_id)
        if callable(self.good):
            return bool(self.good())
        if isinstance(self.good, Exception):
            raise self.good
        if isinstance(self.good, asyncio.Event):
            return await self.good.wait()
        return bool(self.good)


class Bench:
    def __init__(
        self,
        runner: ScriptedRunner,
        *,
        uptime: int,
        main: int,
        cleaner: Any = None,
        folder: Path | None = None,
    ) -> None:
        self.source, self.spool, self.leases = MemorySource(), MemorySpool(), Leases()
        self.runner, self.running, self.meter = runner, RunningJobs(), metrics()
        self.draining, self.files = asyncio.Event(), MemoryFiles(folder)
        self.slots = Slots({Lane.UPTIME: uptime, Lane.MAIN: main}, linger_s=0.001, gauge=self.meter)
        works = Works(
            source=self.source,
            leases=self.leases,
            runner=runner,
            envelopes=SealedEnvelopes(cleaner or Scrubber(), agent_id="agent-1", meter=self.meter),
            spool=self.spool,
            enclosures=Enclosures(Scrubber(), clean_in_child, meter=self.meter),
            files=self.files,
            meter=self.meter,
        )
        self.dispatcher = Dispatcher(works, self.slots, self.running)


@asynccontextmanager
async def bench(
    act: Any = None, *, uptime: int = 4, main: int = 0, outcome: Any = None, **more: Any
) -> AsyncIterator[Bench]:
    runner = ScriptedRunner(act, outcome=outcome) if outcome else ScriptedRunner(act)
    it = Bench(runner, uptime=uptime, main=main, **more)
    task = asyncio.create_task(it.dispatcher.run(it.draining))
    try:
        yield it
        it.draining.set()
        await asyncio.wait_for(task, LONG_S)
    finally:
        task.cancel()


def jobs(count: int, **changes: Any) -> list[Job]:
    return [a_job(job_id=f"job-{number}", **changes) for number in range(count)]


async def for_ever(_job: Job) -> None:
    await asyncio.Event().wait()


async def test_each_job_becomes_one_result() -> None:
    async with bench() as it:
        it.source.offer(*jobs(20))
        await until(lambda: len(it.spool.results) == 20)
    assert ids(it.spool.results) == {f"job-{number}" for number in range(20)}
    assert it.source.released == []
    assert it.leases.held == []


async def test_a_result_carries_its_jobs_envelope() -> None:
    began = time.monotonic()
    async with bench() as it:
        it.source.offer(a_job(fence=3, run_id="run-9", check_id="check-9", attempt=2))
        await until(lambda: it.spool.results)
    (result,) = it.spool.results
    assert (result.fence, result.run_id, result.check_id) == (3, "run-9", "check-9")
    assert (result.attempt, result.agent_id, result.check_type) == (2, "agent-1", CheckType.URL)
    all_of_it_s = time.monotonic() - began
    assert 0 <= result.started_after_s <= all_of_it_s
    assert 0 <= result.took_s <= all_of_it_s


async def test_no_more_jobs_run_at_once_than_there_are_slots() -> None:
    async def a_moment(_job: Job) -> None:
        await asyncio.sleep(0.005)

    async with bench(a_moment, uptime=3) as it:
        it.source.offer(*jobs(12))
        await until(lambda: len(it.spool.results) == 12)
    assert it.runner.most_at_once == 3
    assert max(asked[Lane.UPTIME] for asked in it.source.asked) <= 3


async def test_lanes_do_not_wait_for_each_other() -> None:
    async with bench(main=1) as it:
        await until(lambda: {Lane.MAIN: 1} in it.source.asked)
        it.source.offer(a_job(job_id="quick"))
        await until(lambda: it.spool.results)
    assert {Lane.UPTIME: 4} in it.source.asked


async def test_our_own_fault_releases_the_job_and_fails_no_check() -> None:
    async def crash(job: Job) -> None:
        if job.job_id == "job-1":
            raise RuntimeError("a secret of ours")

    async with bench(crash) as it:
        it.source.offer(*jobs(3))
        await until(lambda: len(it.spool.results) == 2)
    assert it.source.released == [("job-1", ReleaseReason.AGENT_ERROR)]
    assert it.source.messages == ["RuntimeError in the agent"]
    assert it.slots.free(Lane.UPTIME) == 4


async def test_a_result_that_cannot_be_cleaned_is_not_sent() -> None:
    class Broken:
        def at_once(self, *_: Any, **__: Any) -> None:
            return None

        def clean(self, *_: Any, **__: Any) -> Clean:
            raise ValueError("cannot")

    async with bench(cleaner=Broken()) as it:
        it.source.offer(a_job())
        await until(lambda: it.source.released)
    assert it.spool.results == []
    assert it.source.released == [("job-1", ReleaseReason.AGENT_ERROR)]
    assert b"picket_agent_scrub_refusals_total 1.0" in it.meter.text()


class Searching(Scrubber):
    """One that is not done before it is told."""

    def __init__(self) -> None:
        super().__init__(["hunter2-hunter2"])
        self.began, self.may_end = threading.Event(), threading.Event()

    def clean(self, *given: Any, **named: Any) -> Clean:
        self.began.set()
        assert self.may_end.wait(LONG_S)
        return super().clean(*given, **named)


async def test_a_run_whose_result_is_searched_for_secrets_is_not_overdue() -> None:
    cleaner = Searching()
    async with bench(cleaner=cleaner) as it:
        it.source.offer(a_job(deadline_s=0))
        await until(cleaner.began.is_set)
        assert it.running.longest_overdue_s() == 0
        cleaner.may_end.set()
        await until(lambda: it.spool.results)


async def test_a_run_that_is_stopped_while_its_result_is_searched_sends_none() -> None:
    cleaner = Searching()
    async with bench(cleaner=cleaner) as it:
        it.source.offer(a_job())
        await until(cleaner.began.is_set)
        it.running.stop_all(ReleaseReason.CANCELLED)
        await until(lambda: it.source.released)
        cleaner.may_end.set()
    assert it.spool.results == []
    assert it.source.released == [("job-1", ReleaseReason.CANCELLED)]


async def test_results_are_scrubbed_of_the_jobs_secrets() -> None:
    secret = a_secret(value="hunter2-hunter2")

    class Telling(ScriptedRunner):
        async def run(self, job: Job, workspace: Workspace) -> Any:
            outcome = await super().run(job, workspace)
            line = LogLine(after_ms=0, level="INFO", message=f"used {secret.value}")
            return type(outcome)(status=outcome.status, log=(line,))

    it = Bench(Telling(), uptime=1, main=0)
    task = asyncio.create_task(it.dispatcher.run(it.draining))
    it.source.offer(a_job(variables=(secret,)))
    await until(lambda: it.spool.results)
    it.draining.set()
    await task
    assert secret.value not in it.spool.results[0].outcome.log[0].message


async def test_a_type_without_a_runner_is_released() -> None:
    async with bench() as it:
        it.source.offer(a_job(check_name="unknown"), a_job(job_id="good"))
        await until(lambda: it.spool.results)
    assert it.source.released == [("job-1", ReleaseReason.UNSUPPORTED)]


async def test_a_job_of_a_lane_that_is_not_served_is_released() -> None:
    async with bench() as it:
        scripted = a_job(an_api_spec(setup_script="1"), job_id="scripted")
        it.dispatcher._start(scripted, None, claimed_at=0)  # type: ignore[arg-type]
    assert it.source.released == [("scripted", ReleaseReason.UNSUPPORTED)]


async def test_a_main_job_starts_only_with_a_good_lease() -> None:
    async with bench(main=1) as it:
        it.leases.good = False
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER), job_id="lost"))
        await until(lambda: it.leases.confirmed and not it.leases.held)
        it.leases.good = True
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER), job_id="good"))
        await until(lambda: it.spool.results)
    assert it.runner.ran == ["good"]
    assert it.source.released == []


async def test_a_main_job_whose_lease_nobody_knows_does_not_start() -> None:
    async with bench(main=1) as it:
        it.leases.good = ServiceAwayError("away")
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER)))
        await until(lambda: it.leases.confirmed and not it.leases.held)
    assert it.runner.ran == []


async def test_a_main_job_that_is_cancelled_before_its_start_is_given_back() -> None:
    async with bench(main=1) as it:

        def cancelled() -> bool:
            for run in it.running:
                run.cancel()
            return False

        it.leases.good = cancelled
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER)))
        await until(lambda: it.leases.confirmed and not it.leases.held)
    assert it.runner.ran == []
    assert it.source.released == [("job-1", ReleaseReason.CANCELLED)]


async def stubborn(_job: Job) -> None:
    """Cleans up for so long that it ends as if nothing had happened."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def crash_when_stopped(_job: Job) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise RuntimeError("a crash while it cleans up")


@pytest.mark.parametrize("act", [for_ever, stubborn, crash_when_stopped])
async def test_whatever_a_stopped_run_ends_with_is_given_back_once(act: Any) -> None:
    async with bench(act) as it:
        it.source.offer(*jobs(2))
        await until(lambda: it.runner.running == 2)
        lost, stopped = it.running
        lost.lose()
        stopped.stop(ReleaseReason.DRAINING)
        await until(lambda: not len(it.running))
    assert it.spool.results == []
    assert it.source.released == [(stopped.job.job_id, ReleaseReason.DRAINING)]


async def test_draining_waits_for_what_runs_and_claims_no_more() -> None:
    go_on = asyncio.Event()

    async def wait(_job: Job) -> None:
        await go_on.wait()

    async with bench(wait) as it:
        it.source.offer(a_job(job_id="running"))
        await until(lambda: it.runner.running == 1)
        it.draining.set()
        await until(lambda: it.source.gave_back_abandoned == 1)
        asked = len(it.source.asked)
        it.source.offer(a_job(job_id="new"))
        go_on.set()
    assert ids(it.spool.results) == {"running"}
    assert len(it.source.asked) == asked


async def test_draining_gives_back_what_has_not_started() -> None:
    async with bench(main=1) as it:
        it.leases.good = asyncio.Event()
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER), job_id="waiting"))
        await until(lambda: it.leases.confirmed)
    assert it.runner.ran == []
    assert it.source.released == [("waiting", ReleaseReason.DRAINING)]


async def test_stopped_runs_are_given_back_and_free_their_slots() -> None:
    async with bench(for_ever) as it:
        it.source.offer(*jobs(3))
        await until(lambda: it.runner.running == 3)
        it.running.stop_all(ReleaseReason.DRAINING)
        await until(lambda: not len(it.running))
    assert {reason for _, reason in it.source.released} == {ReleaseReason.DRAINING}
    assert len(it.source.released) == 3
    assert it.spool.results == []
    assert it.slots.free(Lane.UPTIME) == 4


async def test_a_run_that_lost_its_lease_sends_nothing() -> None:
    async with bench(for_ever) as it:
        it.source.offer(a_job())
        await until(lambda: it.runner.running == 1)
        for run in it.running:
            run.lose()
        await until(lambda: not len(it.running))
    assert it.source.released == []
    assert it.spool.results == []


async def test_a_job_stopped_before_its_task_began_still_leaves_its_slot() -> None:
    it = Bench(ScriptedRunner(), uptime=1, main=0)
    async with asyncio.TaskGroup() as group:
        it.dispatcher._start(a_job(), group, claimed_at=0)
        it.running.stop_all(ReleaseReason.DRAINING)
    assert it.runner.ran == []
    assert it.source.released == [("job-1", ReleaseReason.DRAINING)]
    assert it.slots.free(Lane.UPTIME) == 1


async def test_a_job_past_its_deadline_shows() -> None:
    async with bench(for_ever) as it:
        assert it.running.longest_overdue_s() == 0
        it.source.offer(a_job(deadline_s=0.01))
        await until(lambda: it.running.longest_overdue_s() > 0)
        it.running.stop_all(ReleaseReason.DRAINING)


async def test_the_longest_wait_for_a_start_shows() -> None:
    async with bench(main=1) as it:
        it.leases.good = asyncio.Event()
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER)))
        await until(lambda: it.running.oldest_wait_s(Lane.MAIN) > 0)
        assert it.running.oldest_wait_s(Lane.UPTIME) == 0


def with_files(**contents: bytes) -> Any:
    """What a run says that leaves these files, `_` for a dot; one that is empty is only named."""

    def outcome(workspace: Workspace) -> Outcome:
        artifacts = []
        for name, content in contents.items():
            path = workspace.folder / name.replace("_", ".")
            path.write_bytes(content)
            artifacts.append(workspace.artifact(path.name, "file"))
            if not content:
                path.unlink()
        return an_outcome(artifacts=tuple(artifacts))

    return outcome


async def test_files_leave_with_the_result_that_names_them(tmp_path: Path) -> None:
    async with bench(outcome=with_files(a_txt=b"one", b_txt=b"two"), folder=tmp_path) as it:
        it.source.offer(a_job())
        await until(lambda: it.files.parcels)
    ((result, contents),) = it.files.parcels
    assert contents == {"a.txt": b"one", "b.txt": b"two"}
    assert [one.name for one in result.outcome.artifacts] == ["a.txt", "b.txt"]
    assert it.spool.results == []
    await until(lambda: list(tmp_path.iterdir()) == [])


async def test_a_file_leaves_without_its_jobs_secrets(tmp_path: Path) -> None:
    told = b"the token is s3cr3t-value, again s3cr3t-value"
    async with bench(outcome=with_files(a_txt=told), folder=tmp_path) as it:
        it.source.offer(a_job(variables=(a_secret("TOKEN", "s3cr3t-value"),)))
        await until(lambda: it.files.parcels)
    ((result, contents),) = it.files.parcels
    assert b"s3cr3t" not in contents["a.txt"]
    (artifact,) = result.outcome.artifacts
    assert artifact.size_bytes == len(contents["a.txt"])
    assert artifact.sha256 == hashlib.sha256(contents["a.txt"]).hexdigest()


async def test_a_file_that_may_not_leave_is_missed_in_the_result(tmp_path: Path) -> None:
    archive = with_files(a_zip=b"\xff\0 with s3cr3t-value inside", gone_txt=b"")
    async with bench(outcome=archive, folder=tmp_path) as it:
        it.source.offer(a_job(variables=(a_secret("TOKEN", "s3cr3t-value"),)))
        await until(lambda: it.spool.results)
    (result,) = it.spool.results
    assert result.outcome.artifacts == ()
    assert [line.message for line in result.outcome.log] == [
        (
            "The file a.zip is not there: only text in UTF-8 and archives can be searched for"
            " secrets, and this run has some: the check's secret variables (TOKEN). Without them it"
            " is kept."
        ),
        "The file gone.txt is not there: No such file or directory.",
    ]
    assert b"picket_agent_artifacts_dropped_total 2.0" in it.meter.text()
    assert b"picket_agent_scrub_refusals_total 1.0" in it.meter.text()
