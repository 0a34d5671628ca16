"""Files on their way: whole, once, before the result that names them, and within their bounds."""

import asyncio
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.outbox import artifact_files, artifacts
from agent.outbox import artifact_sender as module
from agent.outbox.artifact_files import ArtifactFolder
from contract.job import Lease
from contract.result import Artifact
from contract.wire import encode
from redaction.clean import restore_clean
from tests.builders.agents import a_clean_file, clean, until
from tests.builders.artifacts import BIG, LIMITS, bench, make_unreadable
from tests.builders.observations import a_result, an_outcome
from tests.fakes.service import FakeService, Fault


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
        assert it.files.waiting() == 0
        await until(lambda: it.parcels() == [])  # deleted once the result is on its way


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
        assert sent == module.FIRST_CHUNK_BYTES + len(BIG) - 100_000, "and not from its beginning"


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
        assert list((tmp_path / "artifacts").glob("*/picket-run-*")) == []


async def test_the_oldest_files_go_when_there_is_no_room_and_their_result_says_so(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, works=False, max_bytes=len(BIG) + 10) as it:
        it.lease("job-1", "job-2")
        await it.put("job-1", a_bin=BIG)
        await it.put("job-2", a_bin=BIG)
        await it.arrived("job-1")
        assert it.log_of("job-1") == ["The file a.bin is missing: no room."]
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
        assert line.startswith("The file a.txt is missing: ")
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
            assert it.log_of("job-1") == ["The file a.bin is missing: it has become shorter."]


async def test_a_parcel_that_rotted_is_counted_and_holds_up_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        await it.put("job-1", a_txt=b"one")
        (it.parcels()[0] / ".letter").write_bytes(b"{")
        parcel = await it.files.next()
        assert parcel is not None
        assert await it.files.unpack(parcel) is None
        assert (it.files.waiting(), it.parcels()) == (0, [])
        assert b"picket_agent_results_dropped_total 1.0" in it.meter.text()


async def test_a_parcel_that_rotted_between_two_agents_is_counted(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        await it.put("job-1", a_txt=b"one", b_txt=b"two")
        (it.parcels()[0] / ".letter").write_bytes(b"{")
    async with bench(tmp_path, agent_id="b2") as it:
        assert (it.files.waiting(), it.parcels(), it.dropped()) == (0, [], (2, 1))


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
    folder = ArtifactFolder(tmp_path, agent_id="a1")
    folder.open()
    result = a_result()
    packed = restore_clean(
        result, msgspec.json.format(encode(result))
    )  # no encoder of ours writes so
    parcel = folder.pack(packed, (), lease_s=60, put_at_s=1)
    assert artifact_files.unpack(parcel) == packed
    folder.close()


async def test_a_file_that_cannot_be_kept_does_not_keep_its_result(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        artifact = Artifact(name="a.txt", kind="file", size_bytes=3, sha256="0" * 64)
        result = clean("job-1", outcome=an_outcome(artifacts=(artifact,)))
        gone = a_clean_file(tmp_path / "gone", artifact)
        await it.files.put(result, [gone], lease_s=60)
        await it.arrived("job-1")
        assert it.log_of("job-1") == ["The file a.txt is missing: No such file or directory."]
        assert it.parcels() == []


async def test_a_file_whose_name_held_a_secret_does_not_leave(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        path = it.files.workspace().folder / "s3cr3t.txt"
        path.write_bytes(b"one")
        seen = Artifact(name="s3cr3t.txt", kind="file", size_bytes=3, sha256="0" * 64)
        sealed = msgspec.structs.replace(seen, name="****.txt")
        result = clean("job-1", outcome=an_outcome(artifacts=(sealed,)))
        await it.files.put(result, [a_clean_file(path, seen)], lease_s=60)
        await it.arrived("job-1")
        assert it.service.artifacts == {}
        assert it.log_of("job-1") == ["The file ****.txt is missing: its name held a secret."]


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


async def test_a_run_that_is_stopped_leaves_no_half_parcel(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        putting = asyncio.create_task(it.put("job-1", a_bin=BIG))
        await asyncio.sleep(0)
        putting.cancel()
        with suppress(asyncio.CancelledError):
            await putting
        await until(lambda: it.files.waiting() == len(it.parcels()))


async def test_results_that_wait_where_no_disk_lasts_go_on_without_their_files(
    tmp_path: Path,
) -> None:
    (tmp_path / "artifacts").write_text("no folder")
    async with bench(tmp_path, works=False) as it:
        it.service.fail_always("results", Fault(status=503))
        await it.put("job-1", a_txt=b"one", b_txt=b"two")
        await it.files.close()
        assert (it.spool.waiting(), it.files.waiting()) == (1, 0)
        it.lease("job-1")
        it.service.heal()
        await it.arrived("job-1")
        assert it.log_of("job-1") == [
            f"The file {name} is missing: the agent ended, and has no disk."
            for name in ("a.txt", "b.txt")
        ]
        assert it.dropped() == (2, 0)


async def test_a_file_that_arrived_stays_named_when_the_others_are_given_up(
    tmp_path: Path,
) -> None:
    (tmp_path / "artifacts").write_text("no folder")
    async with bench(tmp_path) as it:
        it.lease("job-1")
        it.service.fail("artifacts", Fault(), *[Fault(status=503)] * 1000)
        await it.put("job-1", a_txt=b"one", b_txt=b"two")
        await it.service.until(lambda: it.service.calls("artifacts") > 1)
        await it.uploads.flush(limit_s=0.1)
        await it.files.release_results()
        await it.arrived("job-1")
        (result,) = it.service.results
        assert [one.name for one in result.outcome.artifacts] == ["a.txt"]
        assert it.dropped() == (1, 0)


async def test_a_result_that_cannot_be_read_where_no_disk_lasts_is_counted(
    tmp_path: Path,
) -> None:
    (tmp_path / "artifacts").write_text("no folder")
    async with bench(tmp_path, works=False) as it:
        await it.put("job-1", a_txt=b"one")
        assert it.files._folder.own is not None
        (letter,) = it.files._folder.own.glob("*/.letter")
        make_unreadable(letter)
        await it.files.close()
        assert it.dropped() == (1, 1)


async def test_an_end_waits_for_the_parcel_that_is_being_packed(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        putting = asyncio.create_task(it.put("job-1", a_bin=BIG))
        await asyncio.sleep(0)
        assert it.files._at_work
        putting.cancel()
        await it.files.close()
        (parcel,) = it.parcels()
        assert artifact_files.list_files(parcel) == {"a.bin"}
        assert it.files.waiting() == 1


async def test_a_parcel_that_could_not_be_taken_over_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "_LOOK_EACH_S", 0.05)
    async with FakeService() as service:
        async with bench(tmp_path, service=service, works=False) as it:
            await it.put("job-1", a_txt=b"one")
            content = make_unreadable(it.parcels()[0] / ".letter")
        async with bench(tmp_path, service=service, agent_id="b2") as it:
            it.lease("job-1")
            assert (it.files.waiting(), it.dropped()) == (0, (0, 0))
            (parcel,) = it.parcels()
            (parcel / ".letter").rmdir()
            (parcel / ".letter").write_bytes(content)
            keeping = asyncio.create_task(it.files.keep())
            await it.arrived("job-1")
            keeping.cancel()
        assert service.artifacts == {"job-1/a.txt": b"one"}


async def test_what_cannot_be_read_gives_way_to_no_limit_but_age(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False, max_bytes=len(BIG) + 10) as it:
        it.lease("job-2")
        await it.put("job-1", a_bin=BIG)
        make_unreadable(it.parcels()[0] / ".letter")
        await it.put("job-2", a_bin=BIG)
        await it.arrived("job-2")
        assert (it.files.waiting(), it.dropped()) == (1, (1, 0))
        it.now_s = LIMITS.max_age_s + 1
        assert await it.files.next() is None
        assert it.dropped() == (2, 1)


async def test_what_cannot_be_packed_goes_on_without_its_files(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        workspace = it.files.workspace()
        (workspace.folder / "a.txt").write_bytes(b"one")
        artifact = workspace.artifact("a.txt", "file")
        result = clean("job-1", outcome=an_outcome(artifacts=(artifact,)))
        strange = restore_clean(result.result, b"{}")
        file = a_clean_file(workspace.folder / "a.txt", artifact)
        await it.files.put(strange, [file], lease_s=60)
        await it.arrived("job-1")
        assert it.log_of("job-1")[0].startswith("The file a.txt is missing: Object missing")
        assert (it.parcels(), it.dropped()) == ([], (1, 0))
