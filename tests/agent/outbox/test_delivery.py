"""Delivery: batches, retries, and no result that holds up another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.outbox.result_files import ResultFolder
from agent.outbox.result_sender import ResultSender
from agent.outbox.results import DiskSpool, SpoolLimits, make_steady_clock
from contract.agent_api import Limits
from tests.builders.agents import QUICK, a_client, clean, files, ids, metrics, until
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job
from tests.fakes.service import FakeService, Fault

LIMITS = SpoolLimits(max_bytes=10**9, max_age_s=3600)


class Bench:
    def __init__(self, service: FakeService, spool: DiskSpool, delivery: ResultSender) -> None:
        self.service = service
        self.spool = spool
        self.delivery = delivery

    def lease(self, *job_ids: str) -> None:
        """Let the service know jobs as handed out."""
        for job_id in job_ids:
            self.service.book.offer(a_job(job_id=job_id))
            entry = self.service.book.entries[job_id]
            self.service.book.queue[entry.lane].remove(entry)
            entry.fence = 1

    def put(self, *job_ids: str) -> None:
        for job_id in job_ids:
            self.spool.put(clean(job_id))


@asynccontextmanager
async def bench(folder: Path, *, known: int = 0) -> AsyncIterator[Bench]:
    async with FakeService() as service, a_client(service) as client:
        spool = DiskSpool(
            ResultFolder(folder, agent_id="a1"),
            limits=LIMITS,
            metrics=metrics(),
            wall_clock=make_steady_clock(),
        )
        await spool.open()
        delivery = ResultSender(client, spool, metrics=metrics(), pace=QUICK)
        it = Bench(service, spool, delivery)
        it.lease(*(f"job-{number}" for number in range(known)))
        task = asyncio.create_task(delivery.run())
        try:
            yield it
        finally:
            task.cancel()


def names(count: int) -> list[str]:
    return [f"job-{number}" for number in range(count)]


async def test_results_of_one_moment_go_together(tmp_path: Path) -> None:
    async with bench(tmp_path, known=10) as it:
        it.put(*names(10))
        await it.service.until(lambda: len(it.service.results) == 10)
        assert it.service.batches == [10]
        await it.delivery.flush(limit_s=LONG_S)
        assert it.spool.waiting() == 0


async def test_no_batch_is_larger_than_the_service_takes(tmp_path: Path) -> None:
    async with bench(tmp_path, known=700) as it:
        it.put(*names(700))
        await it.service.until(lambda: len(it.service.results) == 700)
        assert max(it.service.batches) <= 256
        it.delivery.keep_to(Limits(results=3))
        it.lease("a", "b", "c", "d")
        it.put("a", "b", "c", "d")
        await it.service.until(lambda: len(it.service.results) == 704)
    assert it.service.batches[-2:] == [3, 1]


async def test_a_service_that_was_away_gets_everything_once(tmp_path: Path) -> None:
    async with bench(tmp_path, known=30) as it:
        await it.service.down()
        it.put(*names(30))
        await until(lambda: files(tmp_path))
        await it.service.up()
        await it.service.until(lambda: len(it.service.results) == 30)
        assert ids(it.service.results) == set(names(30))
        assert it.service.book.duplicates == []
        await it.delivery.flush(limit_s=LONG_S)
    assert files(tmp_path) == []


async def test_a_lost_answer_makes_duplicates_and_no_loss(tmp_path: Path) -> None:
    async with bench(tmp_path, known=3) as it:
        it.service.fail("results", Fault(cut="after"))
        it.put(*names(3))
        await it.delivery.flush(limit_s=LONG_S)
        assert ids(it.service.results) == set(names(3))
        assert len(it.service.book.duplicates) == 3


async def test_a_rejected_result_is_settled(tmp_path: Path) -> None:
    async with bench(tmp_path, known=2) as it:
        it.put("job-0", "unknown", "job-1")
        await it.delivery.flush(limit_s=LONG_S)
        assert ids(it.service.results) == {"job-0", "job-1"}
        assert [refused.job_id for refused in it.service.book.rejected] == ["unknown"]
        assert it.spool.waiting() == 0


async def test_a_result_that_the_service_cannot_read_holds_up_no_other(tmp_path: Path) -> None:
    async with bench(tmp_path, known=4) as it:
        # 4 together, then 2 and 2: the first half fails again, then its first result alone.
        refuse = Fault(status=413)
        it.service.fail("results", refuse, refuse, refuse)
        it.put(*names(4))
        await it.delivery.flush(limit_s=LONG_S)
        assert ids(it.service.results) == {"job-1", "job-2", "job-3"}
        assert it.spool.waiting() == 0


async def test_a_flush_ends_at_its_limit_and_loses_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path, known=1) as it:
        it.service.fail_always("results", Fault(status=503))
        it.put("job-0")
        await it.delivery.flush(limit_s=0.1)
        await until(lambda: it.spool.waiting() == 1)  # a batch that is out comes back
