"""Files on their way: whole, once, before the result that names them, and within their bounds."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent import uploads as module
from agent.artifacts import Artifacts, Heirs
from agent.delivery import Delivery
from agent.leases import Leases
from agent.parcels import ParcelFolder
from agent.segments import SegmentFolder
from agent.spool import DiskSpool, SpoolLimits, steady_time
from agent.uploads import Uploads
from contract.job import Lease
from contract.result import Artifact
from contract.wire import encode
from runners.kit.scrub import Clean, CleanFile
from runners.kit.workspace import RunFile
from tests.builders.agents import QUICK, a_client, clean, ids, metrics, until
from tests.builders.observations import a_result, an_outcome
from tests.builders.specs import a_job
from tests.fakes.service import FakeService, Fault

LIMITS = SpoolLimits(max_bytes=10**9, max_age_s=3600)
BIG = bytes(range(256)) * 1000
"""More than a first piece."""


class Bench:
    """Everything between a run that left files and a service."""

    def __init__(
        self, folder: Path, service: FakeService, client: Any, *, agent_id: str, **limits: Any
    ) -> None:
        self.folder, self.service, self.meter = folder, service, metrics()
        self.now_s, clock = 0.0, steady_time()
        held = replace(LIMITS, **limits)
        self.spool = DiskSpool(
            SegmentFolder(folder / "results", agent_id=agent_id),
            limits=held,
            meter=self.meter,
            wall_clock=clock,
        )
        self.leases = Leases(client, meter=self.meter)
        self.files = Artifacts(
            ParcelFolder(folder / "artifacts", agent_id=agent_id),
            Heirs(spool=self.spool, leases=self.leases, meter=self.meter),
            limits=held,
            wall_clock=lambda: clock() + self.now_s,
        )
        self.uploads = Uploads(client, self.files, pace=QUICK)
        self.delivery = Delivery(client, self.spool, meter=self.meter, pace=QUICK)

    def lease(self, *job_ids: str) -> None:
        """Let the service know jobs as handed out."""
        for job_id in job_ids:
            self.service.book.offer(a_job(job_id=job_id))
            entry = self.service.book.entries[job_id]
            self.service.book.queue[entry.lane].remove(entry)
            entry.fence = 1

    async def put(self, job_id: str, **contents: bytes) -> None:
        """A run of this job left these files, `_` for a dot."""
        workspace = self.files.workspace()
        named: dict[Artifact, Path] = {}
        for name, content in contents.items():
            path = workspace.folder / name.replace("_", ".")
            path.write_bytes(content)
            named[workspace.artifact(path.name, "file")] = path
        result = clean(job_id, outcome=an_outcome(artifacts=tuple(named)))
        files = [CleanFile(RunFile(path, artifact)) for artifact, path in named.items()]
        await self.files.put(result, files, lease_s=60)
        workspace.remove()

    async def arrived(self, *job_ids: str) -> None:
        await self.service.until(lambda: ids(self.service.results) >= set(job_ids))

    def log_of(self, job_id: str) -> list[str]:
        (result,) = (one for one in self.service.results if one.job_id == job_id)
        return [line.message for line in result.outcome.log]

    def parcels(self) -> list[Path]:
        return sorted((self.folder / "artifacts").glob("*/parcel-*"))


@asynccontextmanager
async def bench(
    folder: Path,
    *,
    service: FakeService | None = None,
    agent_id: str = "a1",
    works: bool = True,
    **limits: Any,
) -> AsyncIterator[Bench]:
    """`works`: whether anything is uploaded."""
    async with FakeService() as own, a_client(service or own) as client:
        it = Bench(folder, service or own, client, agent_id=agent_id, **limits)
        await it.spool.open()
        await it.files.open()
        loops = [it.delivery.run(), it.leases.keep(), *([it.uploads.run()] if works else [])]
        tasks = [asyncio.create_task(loop) for loop in loops]
        if not works:
            loops = []
        try:
            yield it
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await it.files.close()


async def test_files_arrive_before_the_result_that_names_them(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        it.service.fail_always("results", Fault(status=503))
        await it.put("job-1", a_txt=b"one", b_bin=BIG)
        await it.service.until(lambda: it.service.calls("results") > 0)
        assert it.service.artifacts == {"job-1/a.txt": b"one", "job-1/b.bin": BIG}
        it.service.heal()
        await it.arrived("job-1")
        (result,) = it.service.results
        named = {one.name: one.sha256 for one in result.outcome.artifacts}
        assert named["b.bin"] == hashlib.sha256(BIG).hexdigest()
        assert it.parcels() == []
        assert it.files.waiting() == 0


async def test_an_empty_file_arrives_too(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        await it.put("job-1", a_txt=b"")
        await it.arrived("job-1")
        assert it.service.artifacts == {"job-1/a.txt": b""}


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_an_upload_whose_connection_broke_goes_on_where_it_broke(
    tmp_path: Path, cut: Any
) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        it.service.fail("artifacts", Fault(), Fault(cut=cut), Fault(cut=cut))
        await it.put("job-1", a_bin=BIG)
        await it.arrived("job-1")
        assert it.service.artifacts["job-1/a.bin"] == BIG


async def test_an_upload_goes_on_in_the_next_process(tmp_path: Path) -> None:
    async with FakeService() as service:
        async with bench(tmp_path, service=service, works=False) as it:
            await it.put("job-1", a_bin=BIG)
        service.artifacts["job-1/a.bin"] = BIG[:100_000]
        async with bench(tmp_path, service=service, agent_id="b2") as it:
            it.lease("job-1")
            await it.arrived("job-1")
        sent = sum(one.length for one in service.seen if one.call == "artifacts")
        assert service.artifacts["job-1/a.bin"] == BIG
        assert sent == module.FIRST_PIECE_BYTES + len(BIG) - 100_000, "and not from its beginning"


async def test_a_process_takes_nothing_from_one_that_lives(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it, bench(tmp_path, agent_id="b2") as other:
        await it.put("job-1", a_txt=b"one")
        assert other.files.waiting() == 0
        assert len(it.parcels()) == 1


async def test_what_a_run_was_working_on_is_not_taken_over(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        workspace = it.files.workspace()
        (workspace.folder / "half.bin").write_bytes(BIG)
    async with bench(tmp_path, agent_id="b2"):
        assert list((tmp_path / "artifacts").glob("*/run-*")) == []


async def test_the_oldest_files_go_when_there_is_no_room_and_their_result_says_so(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, works=False, max_bytes=len(BIG) + 10) as it:
        it.lease("job-1", "job-2")
        await it.put("job-1", a_bin=BIG)
        await it.put("job-2", a_bin=BIG)
        await it.arrived("job-1")
        assert it.log_of("job-1") == ["The file a.bin is not there: no room."]
        assert (it.files.waiting(), len(it.parcels())) == (1, 1)
        assert b"picket_agent_artifacts_dropped_total 1.0" in it.meter.text()
        assert b"picket_agent_results_dropped_total 0.0" in it.meter.text()


async def test_files_that_waited_too_long_go_and_their_result_with_them(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        await it.put("job-1", a_txt=b"one")
        it.now_s = LIMITS.max_age_s + 1
        assert await it.files.next() is None
        assert it.parcels() == []
        assert b"picket_agent_artifacts_dropped_total 1.0" in it.meter.text()
        assert b"picket_agent_results_dropped_total 1.0" in it.meter.text()


@pytest.mark.parametrize("status", [400, 404, 413])
async def test_a_file_that_the_service_refuses_holds_up_nothing(
    tmp_path: Path, status: int
) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1", "job-2")
        refusal = Fault(status=status)
        it.service.fail("artifacts", refusal, *([refusal] if status != 404 else []))
        await it.put("job-1", a_txt=b"one", b_txt=b"two")
        await it.put("job-2", c_txt=b"three")
        await it.arrived("job-1", "job-2")
        assert it.service.artifacts == {"job-1/b.txt": b"two", "job-2/c.txt": b"three"}
        (line,) = it.log_of("job-1")
        assert line.startswith("The file a.txt is not there: ")
        assert b"picket_agent_artifacts_dropped_total 1.0" in it.meter.text()


async def test_a_service_that_is_away_is_waited_for(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        it.service.fail("artifacts", *(Fault(status=status) for status in (503, 507, 408, 429)))
        await it.put("job-1", a_txt=b"one")
        await it.arrived("job-1")
        assert it.service.artifacts == {"job-1/a.txt": b"one"}
        assert it.log_of("job-1") == []


async def test_a_file_whose_place_holds_another_ones_beginning_is_sent_anew(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        it.service.artifacts["job-1/a.bin"] = BIG[5:105]
        await it.put("job-1", a_bin=BIG)
        await it.arrived("job-1")
        assert it.service.artifacts["job-1/a.bin"] == BIG


async def test_a_file_that_was_cut_on_disk_is_given_up(tmp_path: Path) -> None:
    async with FakeService() as service:
        async with bench(tmp_path, service=service, works=False) as it:
            await it.put("job-1", a_bin=BIG)
            os.truncate(it.parcels()[0] / "a.bin", 70_000)
        async with bench(tmp_path, service=service, agent_id="b2") as it:
            it.lease("job-1")
            await it.arrived("job-1")
            assert it.log_of("job-1") == ["The file a.bin is not there: it is shorter than it was."]


async def test_a_parcel_that_rotted_is_counted_and_holds_up_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        await it.put("job-1", a_txt=b"one")
        (it.parcels()[0] / ".letter").write_bytes(b"{")
        parcel = await it.files.next()
        assert parcel is not None
        assert await it.files.unpack(parcel) is None
        assert (it.files.waiting(), it.parcels()) == (0, [])
        assert b"picket_agent_results_dropped_total 1.0" in it.meter.text()


async def test_without_a_disk_that_lasts_files_are_delivered_or_counted(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("no folder")
    async with bench(tmp_path) as it:
        it.lease("job-1", "job-2")
        await it.put("job-1", a_txt=b"one")
        await it.arrived("job-1")
        assert it.service.artifacts == {"job-1/a.txt": b"one"}
        it.service.fail_always("artifacts", Fault(status=503))
        await it.put("job-2", a_txt=b"two")
        await it.service.until(lambda: it.service.calls("artifacts") > 1)
        place = it.files._folder.own
        assert place is not None
        assert place.exists()
    assert not place.exists()
    assert b"picket_agent_artifacts_dropped_total 1.0" in it.meter.text()


async def test_a_result_waits_for_its_files_byte_for_byte(tmp_path: Path) -> None:
    folder = ParcelFolder(tmp_path, agent_id="a1")
    folder.open()
    result = a_result()
    packed = Clean(result, msgspec.json.format(encode(result)))  # no encoder of ours writes so
    parcel = folder.pack(packed, (), lease_s=60, put_at_s=1)
    assert folder.unpack(parcel) == packed
    folder.close()


async def test_a_file_that_cannot_be_kept_does_not_keep_its_result(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        artifact = Artifact(name="a.txt", kind="file", size_bytes=3, sha256="0" * 64)
        result = clean("job-1", outcome=an_outcome(artifacts=(artifact,)))
        gone = CleanFile(RunFile(tmp_path / "gone", artifact))
        await it.files.put(result, [gone], lease_s=60)
        await it.arrived("job-1")
        assert it.log_of("job-1") == ["The file a.txt is not there: No such file or directory."]
        assert it.parcels() == []


async def test_a_file_whose_name_held_a_secret_does_not_leave(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        path = it.files.workspace().folder / "s3cr3t.txt"
        path.write_bytes(b"one")
        seen = Artifact(name="s3cr3t.txt", kind="file", size_bytes=3, sha256="0" * 64)
        sealed = msgspec.structs.replace(seen, name="****.txt")
        result = clean("job-1", outcome=an_outcome(artifacts=(sealed,)))
        await it.files.put(result, [CleanFile(RunFile(path, seen))], lease_s=60)
        await it.arrived("job-1")
        assert it.service.artifacts == {}
        assert it.log_of("job-1") == ["The file ****.txt is not there: its name held a secret."]


async def test_the_lease_is_renewed_until_the_files_arrived(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        await it.put("job-1", a_txt=b"one")
        await it.leases.renew_all()
        (renewal, *_) = it.service.renewals
        assert renewal.leases == (Lease(job_id="job-1", fence=1),)
        task = asyncio.create_task(it.uploads.run())
        it.lease("job-1")
        await it.arrived("job-1")
        before = len(it.service.renewals)
        await it.leases.renew_all()
        assert len(it.service.renewals) == before
        task.cancel()


async def test_a_flush_waits_for_the_last_byte(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        it.service.fail("artifacts", Fault(delay_s=0.2), Fault(delay_s=0.2), Fault(cut="after"))
        await it.put("job-1", a_bin=BIG)
        await it.uploads.flush()
        assert it.service.artifacts["job-1/a.bin"] == BIG
        assert it.files.waiting() == 0


async def test_a_flush_does_not_wait_for_a_service_that_stays_away(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.service.fail_always("artifacts", Fault(status=503))
        await it.put("job-1", a_bin=BIG)
        await it.uploads.flush()
        assert (it.files.waiting(), len(it.parcels())) == (1, 1)


async def test_a_flush_ends_when_it_is_told_to(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.service.fail_always("artifacts", Fault(delay_s=100))
        await it.put("job-1", a_bin=BIG)
        flush = asyncio.create_task(it.uploads.flush())
        await it.service.until(lambda: it.service.calls("artifacts") > 0)
        it.uploads.let_go()
        await flush
        assert it.files.waiting() == 1


async def test_a_run_that_is_stopped_leaves_no_half_parcel(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        putting = asyncio.create_task(it.put("job-1", a_bin=BIG))
        await asyncio.sleep(0)
        putting.cancel()
        with suppress(asyncio.CancelledError):
            await putting
        await until(lambda: it.files.waiting() == len(it.parcels()))
