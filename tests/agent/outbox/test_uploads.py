"""Uploads go on, whatever one of them meets, and end in time."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from agent.outbox.artifact_sender import DIRECT_BYTES
from contract.result import Artifact
from tests.builders.agents import a_clean_file, clean, until
from tests.builders.artifacts import BIG, Bench, bench, make_readable, make_unreadable
from tests.builders.observations import an_outcome
from tests.builders.patience import LONG_S
from tests.fakes.service import FakeService, Fault


async def test_a_flush_waits_for_the_last_byte(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        it.service.fail("artifacts", Fault(delay_s=0.2), Fault(delay_s=0.2), Fault(cut="after"))
        await it.put("job-1", a_bin=BIG)
        await it.uploads.flush(limit_s=LONG_S)
        assert it.service.artifacts["job-1/a.bin"] == BIG
        assert it.files.waiting() == 0


async def test_a_service_of_an_earlier_release_gets_large_files_itself(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        await it.put("job-1", a_bin=BIG * 4)
        await it.arrived("job-1")
        assert len(BIG * 4) > DIRECT_BYTES
        assert it.service.artifacts["job-1/a.bin"] == BIG * 4


async def test_a_flush_does_not_wait_for_a_service_that_stays_away(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.service.fail_always("artifacts", Fault(status=503))
        await it.put("job-1", a_bin=BIG)
        await it.uploads.flush(limit_s=0.5)
        assert (it.files.waiting(), len(it.parcels())) == (1, 1)


async def test_a_flush_ends_when_it_is_told_to(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.service.fail_always("artifacts", Fault(delay_s=100))
        await it.put("job-1", a_bin=BIG)
        flush = asyncio.create_task(it.uploads.flush(limit_s=LONG_S))
        await it.service.until(lambda: it.service.calls("artifacts") > 0)
        it.uploads.abandon()
        await flush
        assert it.files.waiting() == 1


async def test_a_flush_does_not_wait_for_a_service_that_is_silent(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.service.fail_always("artifacts", Fault(delay_s=LONG_S))
        await it.put("job-1", a_bin=BIG)
        await it.service.until(lambda: it.service.calls("artifacts") > 0)
        await it.uploads.flush(limit_s=0.1)
        assert (it.files.waiting(), it.service.calls("artifacts")) == (1, 1)


async def test_a_flush_is_not_cut_short_while_the_service_takes_pieces(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1")
        it.service.fail_always("artifacts", Fault(delay_s=0.05))
        it.uploads._clock = lambda: 0.02 * it.service.calls("artifacts")  # each piece takes so long
        await it.put("job-1", a_bin=BIG * 10)
        await it.uploads.flush(limit_s=0.03)
        assert it.service.artifacts["job-1/a.bin"] == BIG * 10
        assert it.service.calls("artifacts") > 3


async def test_after_a_flush_nothing_is_uploaded_any_more(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await it.uploads.flush(limit_s=LONG_S)
        await it.put("job-1", a_txt=b"one")
        assert it.uploads._running is not None
        assert it.uploads._running.done()
        assert (it.files.waiting(), len(it.parcels())) == (1, 1)


class PickyService(FakeService):
    """Takes no file of `job-1` now, until it is said that it does."""

    is_picky = True

    async def _artifact(self, request: web.Request) -> bytes:
        if self.is_picky and request.match_info["job"] == "job-1":
            raise web.HTTPServiceUnavailable
        return await super()._artifact(request)


async def test_a_parcel_that_is_always_put_off_holds_up_no_other(tmp_path: Path) -> None:
    async with PickyService() as service, bench(tmp_path, service=service) as it:
        it.lease("job-1", "job-2", "job-3")
        for job_id in ("job-1", "job-2", "job-3"):
            await it.put(job_id, a_txt=job_id.encode())
        await it.arrived("job-2", "job-3")
        assert it.files.waiting() == 1
        service.is_picky = False
        await it.arrived("job-1")


async def test_a_parcel_that_cannot_be_read_now_holds_up_no_other(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        it.lease("job-1", "job-2")
        await it.put("job-1", a_txt=b"one")
        letter = it.parcels()[0] / ".letter"
        content = make_unreadable(letter)
        await it.put("job-2", a_txt=b"two")
        uploading = asyncio.create_task(it.uploads.run())
        await it.arrived("job-2")
        make_readable(letter, content)
        await it.arrived("job-1")
        assert it.dropped() == (0, 0)
        uploading.cancel()


async def put_strange(it: Bench, job_id: str, **changes: Any) -> None:
    """A run left a file of which it says what no request can carry."""
    workspace = it.files.workspace()
    (workspace.folder / "a.txt").write_bytes(b"one")
    artifact = msgspec.structs.replace(workspace.artifact("a.txt", "file"), **changes)
    result = clean(job_id, outcome=an_outcome(artifacts=(artifact,)))
    file = a_clean_file(workspace.folder / "a.txt", artifact)
    await it.files.put(result, [file], lease_s=60)


async def test_a_parcel_that_breaks_the_agent_is_given_up_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with bench(tmp_path) as it:
        it.lease("job-1", "job-2")
        await put_strange(it, "job-1", content_type="text/plain\r\nx-fence: 9")
        await it.put("job-2", a_txt=b"two")
        await it.arrived("job-1", "job-2")
        assert it.log_of("job-1") == ["The file a.txt is missing: ValueError in the agent."]
        assert it.service.artifacts == {"job-2/a.txt": b"two"}
        await until(lambda: not it.parcels())  # the result goes first
        assert it.dropped() == (1, 0)
    assert "artifacts.broke" in capsys.readouterr().out


async def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"one")
    async with bench(tmp_path, works=False) as it:
        it.lease("job-1")
        await it.put("job-1", a_txt=b"one")
        file = it.parcels()[0] / "a.txt"
        file.unlink()
        file.symlink_to(tmp_path / "outside")
        await uploaded(it, "job-1")
        assert it.service.calls("artifacts") == 0
        assert it.log_of("job-1") == ["The file a.txt is missing: it is not a regular file."]
        assert (tmp_path / "outside").read_bytes() == b"one"


async def test_a_link_to_nowhere_is_no_file_that_arrived(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        it.lease("job-1")
        await it.put("job-1", a_txt=b"one")
        file = it.parcels()[0] / "a.txt"
        file.unlink()
        file.symlink_to(tmp_path / "nowhere")
        await uploaded(it, "job-1")
        assert it.dropped() == (1, 0)


async def test_a_pipe_in_the_place_of_a_file_stops_nobody(tmp_path: Path) -> None:
    async with bench(tmp_path, works=False) as it:
        it.lease("job-1")
        await it.put("job-1", a_txt=b"one")
        file = it.parcels()[0] / "a.txt"
        file.unlink()
        os.mkfifo(file)
        await uploaded(it, "job-1")
        assert it.dropped() == (1, 0)


async def uploaded(it: Bench, job_id: str) -> None:
    uploading = asyncio.create_task(it.uploads.run())
    await it.arrived(job_id)
    uploading.cancel()


async def test_a_refused_file_is_counted_once_though_the_disk_takes_no_note_of_it(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, works=False) as it:
        it.lease("job-1")
        await it.put("job-1", a_txt=b"one", b_txt=b"two")
        (it.parcels()[0] / ".letter.part").mkdir()  # as on a full disk
        refused, away = Fault(status=413), Fault(status=503)
        it.service.fail("artifacts", refused, refused, away, away, away)
        await uploaded(it, "job-1")
        assert it.service.artifacts == {"job-1/b.txt": b"two"}
        assert len(it.log_of("job-1")) == 1
        assert it.dropped() == (1, 0)
        await until(lambda: it.parcels() == [])


async def test_a_refusal_that_was_not_noted_is_no_delivery_for_the_next_agent(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, works=False) as it:
        await it.put("job-1", a_txt=b"one")
        (parcel,) = it.parcels()
        (parcel / ".letter.part").mkdir()
        taken = await it.files.next()
        assert taken is not None
        clean_one = await it.files.unpack(taken)
        assert clean_one is not None
        artifact: Artifact = clean_one.result.outcome.artifacts[0]
        await it.files.give_up(taken, clean_one, artifact, "refused")
        assert (parcel / "a.txt").exists()
