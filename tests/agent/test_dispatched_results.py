"""What a job leaves behind: its result, searched for secrets, and the files that it names."""

import asyncio
import hashlib
import threading
import time
from pathlib import Path
from typing import Any

from contract.agent_api import ReleaseReason
from contract.checks import CheckType
from contract.job import Job
from contract.result import LogLine, Outcome
from redaction.clean import Clean
from redaction.result import Scrubber
from sandbox.workspace import Workspace
from tests.builders.agents import ScriptedRunner, until
from tests.builders.dispatching import Bench, bench
from tests.builders.observations import an_outcome
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job, a_secret


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
            "The file a.zip is missing: only UTF-8 text and archives can be searched for"
            " secrets, and this run has secrets: the check's secret variables (TOKEN). A run"
            " without secrets keeps it."
        ),
        "The file gone.txt is missing: No such file or directory.",
    ]
    assert b"picket_agent_artifacts_dropped_total 2.0" in it.meter.text()
    assert b"picket_agent_scrub_refusals_total 1.0" in it.meter.text()
