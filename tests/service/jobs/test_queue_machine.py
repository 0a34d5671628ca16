"""Whatever agents, clocks and crashes do, each run ends in exactly one FINAL result."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from sqlalchemy import create_engine, insert, select

from contract.agent_api import ReleaseReason
from contract.checks import Lane
from contract.job import Job, RunSource
from contract.result import Status
from contract.wire import decode, encode
from service.db.tables import (
    account,
    check_,
    job,
    late_result,
    metadata,
    private_location,
    result,
    run_final,
)
from service.jobs.actions import WantedRuns, enqueue
from service.jobs.claims import deal
from service.jobs.endings import GivenBack, reap, release
from service.jobs.engines import queue_of
from service.jobs.model import JobState
from service.results.ingest import Arrived, Verdict, take_results
from tests.builders.specs import a_url_spec
from tests.builders.world import a_claimant, a_result
from tests.fakes.clock import START_MS

RETRY = {"type": "FIXED", "baseBackoffSeconds": 5, "maxRetries": 2}


class QueueMachine(RuleBasedStateMachine):
    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.engine = create_engine("sqlite://")  # in memory: hundreds of them are made
        self.connection = self.engine.connect()
        metadata.create_all(self.connection)
        self.now = START_MS
        self.claims = 0
        self.queued = 0
        self.accepted: set[tuple[str, int]] = set()
        self.newest: dict[str, int] = {}
        """Fence of each job's newest claim."""
        rows: dict[Any, dict[str, Any]] = {
            account: {"id": "a", "name": "Alice", "created_ms": 0},
            private_location: {
                "id": "l",
                "account_id": "a",
                "name": "Cellar",
                "slug_name": "cellar",
                "icon": "",
                "created_ms": 0,
            },
            check_: {
                "id": "c",
                "account_id": "a",
                "type": "URL",
                "lane": "uptime",
                "name": "Front page",
                "activated": True,
                "muted": False,
                "frequency": 1,
                "run_parallel": False,
                "doc": {"retryStrategy": RETRY},
                "spec": encode(a_url_spec()),
                "version": 1,
                "created_ms": 0,
            },
        }
        for table, row in rows.items():
            self.connection.execute(insert(table), row)

    def teardown(self) -> None:
        self.connection.close()
        self.engine.dispose()

    @rule()
    def queue(self) -> None:
        self.queued += 1
        wanted = WantedRuns(
            check_id="c", location_ids=["l"], source=RunSource.TRIGGER_API, session_id=None
        )
        enqueue(self.connection, wanted, now_ms=self.now)

    @rule(seconds=st.sampled_from((1, 5, 30)))
    def wait(self, seconds: int) -> None:
        self.now += seconds * 1000

    @rule(target=held, slots=st.integers(1, 3))
    def claim(self, slots: int) -> list[Job]:
        self.claims += 1
        claimant = a_claimant(f"claim-{self.claims}", slots={Lane.UPTIME: slots})
        dealt = deal(self.connection, "l", [claimant], now_ms=self.now)
        jobs = [decode(one, Job) for one in dealt.jobs[0]]
        assert len(jobs) <= slots
        for one in jobs:
            assert one.fence > self.newest.get(one.job_id, 0)
            self.newest[one.job_id] = one.fence
        return jobs

    @rule(jobs=held, status=st.sampled_from(Status))
    def submit(self, jobs: list[Job], status: Status) -> None:
        results = [a_result(one, status) for one in jobs]
        arrived = [Arrived(one, encode(one), int(one.job_id)) for one in results]
        verdicts = take_results(self.connection, arrived, location_id="l", now_ms=self.now)
        assert set(verdicts) <= {Verdict.ACCEPTED, Verdict.DUPLICATE}
        for one, verdict in zip(results, verdicts, strict=True):
            if verdict is Verdict.ACCEPTED:
                assert (one.job_id, one.fence) not in self.accepted
                assert one.fence == self.newest[one.job_id]
                self.accepted.add((one.job_id, one.fence))

    @rule(jobs=held, reason=st.sampled_from(ReleaseReason))
    def give_back(self, jobs: list[Job], reason: ReleaseReason) -> None:
        given = [GivenBack(int(one.job_id), one.fence, reason) for one in jobs]
        release(self.connection, given, location_id="l", now_ms=self.now)

    @rule(jobs=held)
    def renew(self, jobs: list[Job]) -> None:
        leases = [(int(one.job_id), one.fence) for one in jobs]
        found = queue_of(self.connection).renew(self.connection, "l", leases, now_ms=self.now)
        for one, holds in zip(jobs, found, strict=True):
            assert holds == (one.job_id in self._leased() and one.fence == self.newest[one.job_id])

    def _leased(self) -> set[str]:
        leased = select(job.c.id).where(job.c.state == JobState.LEASED.value)
        return {str(one) for one in self.connection.execute(leased).scalars()}

    @rule(away_s=st.sampled_from((0, 60, 360)))
    def reap(self, away_s: int) -> None:
        self.now += away_s * 1000
        reap(self.connection, now_ms=self.now)

    @invariant()
    def live_jobs_and_finals_are_the_queued_runs(self) -> None:
        live = set(self.connection.execute(select(job.c.id)).scalars())
        finals = list(
            self.connection.execute(
                select(result.c.run_id).where(result.c.result_type == "FINAL")
            ).scalars()
        )
        settled = set(self.connection.execute(select(run_final.c.run_id)).scalars())
        assert len(finals) == len(set(finals))
        assert set(finals) == settled
        assert not live & settled
        assert len(live) + len(settled) == self.queued

    @invariant()
    def no_result_counts_and_is_late_too(self) -> None:
        late = {
            (str(row.run_id), row.fence)
            for row in self.connection.execute(select(late_result.c.run_id, late_result.c.fence))
        }
        assert not late & self.accepted


QueueMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestQueue = pytest.mark.timeout(600)(QueueMachine.TestCase)  # a failure takes long to shrink
