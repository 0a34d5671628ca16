"""Whatever agents, clocks and crashes do, the queue does at each step what the model does."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)
from sqlalchemy import create_engine, insert, select, update

from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.job import Job, RunSource
from contract.result import Status
from contract.wire import decode, encode
from service.db.tables.accounts import account
from service.db.tables.checks import check_
from service.db.tables.locations import private_location
from service.db.tables.metadata import metadata
from service.db.tables.runs import job, late_result, result, run_final
from service.jobs import actions as jobs_of
from service.jobs.actions import WantedRuns, enqueue
from service.jobs.claims import ClaimScope, assign_jobs
from service.jobs.model import JobState, NewRun, Priority
from service.jobs.settle import (
    Release,
    end_queued,
    expire_jobs,
    extend_leases_after_gap,
    release,
    release_held_by,
)
from service.results.ingest import Arrived, Verdict, take_results
from service.results.model import ResultType
from tests.builders.specs import a_url_spec
from tests.builders.vaults import a_vault
from tests.builders.world import a_claimant, a_result
from tests.fakes.clock import START_MS
from tests.service.jobs.queue_model import IN_QUEUE_MS, Claimed, QueueModel

RETRY = {"type": "FIXED", "baseBackoffSeconds": 5, "maxRetries": 2}
AGENTS = ("agent-1", "agent-2", "agent-3")
_UNCOUNTED = {ReleaseReason.DRAINING, ReleaseReason.CANCELLED}
_GIVES_UP_AS = {ReleaseReason.NO_ROOM: "overloaded", ReleaseReason.UNCONFIRMED: "agent_lost"}


class QueueMachine(RuleBasedStateMachine):
    """Each rule changes the real store and the model; all that is stored is compared after it."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.engine = create_engine("sqlite://")  # in memory: hundreds of them are made
        self.connection = self.engine.connect()
        metadata.create_all(self.connection)
        self.model = QueueModel(now=START_MS)
        self.made = 0
        """Claims."""
        self.newest: dict[int, Job] = {}
        """Each job as its newest claim got it: most of what is `held` is out of date soon."""
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

    @property
    def now(self) -> int:
        return self.model.now

    @initialize(target=held)
    def begin_with_two_runs_of_which_one_runs(self) -> MultipleResults[Any]:
        self.queue_wanted()
        self.queue_scheduled(times=1)
        return self.claim(slots=1)

    @rule()
    def queue_wanted(self) -> None:
        wanted = WantedRuns(
            check_id="c", location_ids=["l"], source=RunSource.TRIGGER_API, session_id=None
        )
        enqueue(self.connection, wanted, now_ms=self.now)
        self.model.queue(is_scheduled=False, fence=self._first_fence())

    @precondition(lambda self: not self.model.is_paused)
    @rule(times=st.integers(1, 2))
    def queue_scheduled(self, times: int) -> None:
        run = NewRun(
            check_id="c",
            check_type=CheckType.URL,
            lane=Lane.UPTIME,
            location_id="l",
            source=RunSource.SCHEDULER,
            session_id=None,
            scheduled_ms=self.now,
            due_ms=self.now,
            expires_ms=self.now + IN_QUEUE_MS,
            priority=Priority.SCHEDULED,
        )
        for _ in range(times):
            jobs_of.add(self.connection, [run])
            self.model.queue(is_scheduled=True, fence=self._first_fence())

    def _first_fence(self) -> int:
        """The fence of the run that was queued last, a random number."""
        query = select(job.c.fence).order_by(job.c.id.desc()).limit(1)
        return self.connection.execute(query).scalar_one()

    @rule(seconds=st.sampled_from((5, 30, 345)))
    def wait(self, seconds: int) -> None:
        self.model.now += seconds * 1000

    @rule(target=held, slots=st.integers(1, 3))
    def claim(self, slots: int) -> MultipleResults[Any]:
        self.made += 1
        return self._claimed(self.made, slots, repeated=False)

    @rule(target=held, slots=st.integers(1, 3), back=st.integers(0, 2))
    def repeat_a_claim(self, slots: int, back: int) -> MultipleResults[Any]:
        return self._claimed(max(self.made - back, 1), slots, repeated=True)

    def _claimed(self, number: int, slots: int, *, repeated: bool) -> MultipleResults[Any]:
        claim, agent = f"claim-{number}", AGENTS[number % len(AGENTS)]
        claimant = a_claimant(claim, agent_id=agent, slots={Lane.UPTIME: slots}, repeated=repeated)
        dealt = assign_jobs(
            self.connection, ClaimScope("l", a_vault()), [claimant], now_ms=self.now
        )
        jobs = [decode(one, Job) for one in dealt.jobs[0]]
        assert known(jobs) == self.model.claim(claim, agent, slots=slots, repeated=repeated)
        self.newest.update({int(one.job_id): one for one in jobs})
        return multiple(*([jobs] if jobs else []))

    @rule(jobs=held, status=st.sampled_from(Status))
    def submit(self, jobs: list[Job], status: Status) -> None:
        results = [a_result(one, status) for one in jobs]
        arrived = [Arrived(one, encode(one), int(one.job_id)) for one in results]
        verdicts = take_results(self.connection, arrived, location_id="l", now_ms=self.now)
        counts = self.model.submit(known(jobs), status.value)
        assert verdicts == [Verdict.ACCEPTED if one else Verdict.DUPLICATE for one in counts]

    @rule(status=st.sampled_from(Status))
    def submit_what_runs(self, status: Status) -> None:
        self.submit(self._running()[:1], status)

    @rule(jobs=held, reason=st.sampled_from(ReleaseReason))
    def requeue(self, jobs: list[Job], reason: ReleaseReason) -> None:
        given = [Release(int(one.job_id), one.fence, reason) for one in jobs]
        release(self.connection, given, location_id="l", now_ms=self.now)
        self.model.release(
            known(jobs),
            is_counted=reason not in _UNCOUNTED,
            gives_up_as=_GIVES_UP_AS.get(reason, "agent_error"),
        )

    @rule(reason=st.sampled_from(ReleaseReason))
    def give_back_what_runs(self, reason: ReleaseReason) -> None:
        self.requeue(self._running(), reason)

    def _running(self) -> list[Job]:
        return [self.newest[number] for number, run in self.model.live.items() if run.leased]

    @rule(reason=st.sampled_from(ReleaseReason), agents=st.integers(1, 3))
    def agents_come_and_give_back(self, reason: ReleaseReason, agents: int) -> None:
        for _ in range(agents):
            for jobs in self.claim(slots=1).values:
                self.requeue(jobs, reason)

    @rule(jobs=held)
    def renew(self, jobs: list[Job]) -> None:
        leases = [(int(one.job_id), one.fence) for one in jobs]
        found = jobs_of.renew(self.connection, "l", leases, now_ms=self.now)
        assert found == self.model.renew(known(jobs))

    @rule()
    def end_the_key(self) -> None:
        release_held_by(self.connection, "l", AGENTS, now_ms=self.now)
        self.model.let_out()

    @rule(away_s=st.sampled_from((0, 60, 360)))
    def reap(self, away_s: int) -> None:
        self.model.now += away_s * 1000
        expire_jobs(self.connection, watched_since_ms=0, now_ms=self.now)
        self.model.reap()

    @rule(away_s=st.sampled_from((0, 60)))
    def restart_the_service(self, away_s: int) -> None:
        self.model.now += away_s * 1000
        extend_leases_after_gap(self.connection, now_ms=self.now)
        self.model.forgive()

    @rule()
    def cancel_the_check_or_go_on_with_it(self) -> None:
        is_active = self.model.is_paused
        self.connection.execute(update(check_).values(activated=is_active))
        if is_active:
            self.model.resume()
        else:
            end_queued(self.connection, "c", now_ms=self.now)
            self.model.pause()

    @invariant()
    def each_job_is_where_the_model_has_it(self) -> None:
        rows = self.connection.execute(select(job).order_by(job.c.id)).all()
        leased = JobState.LEASED.value
        stored = [
            (row.id, row.state == leased, row.fence, row.deliveries, row.attempt, row.priority)
            for row in rows
        ]
        times = [
            (row.due_ms, row.expires_ms, row.lease_until_ms if row.state == leased else None)
            for row in rows
        ]
        runs = [self.model.live[number] for number in sorted(self.model.live)]
        assert stored == [
            (run.id, run.leased, run.fence, run.deliveries, run.attempt, run.priority)
            for run in runs
        ]
        assert times == [(run.due_ms, run.expires_ms, run.lease_until_ms) for run in runs]

    @invariant()
    def each_run_ended_as_the_model_says_and_once(self) -> None:
        rows = self.connection.execute(select(result)).all()
        finals = [row for row in rows if row.result_type == ResultType.FINAL]
        ended = {row.run_id: (row.status, row.cause, row.fence) for row in finals}
        assert ended == self.model.finals
        assert len(ended) == len(finals)
        assert {(row.run_id, row.fence) for row in rows if row not in finals} == self.model.attempts
        settled = self.connection.execute(select(run_final.c.run_id)).scalars()
        assert set(settled) == set(ended)
        assert len(self.model.live) + len(ended) == self.model.runs

    @invariant()
    def history_is_what_the_model_says(self) -> None:
        rows = self.connection.execute(select(late_result.c.run_id, late_result.c.fence))
        assert {(row.run_id, row.fence) for row in rows} == self.model.late


def known(jobs: list[Job]) -> list[Claimed]:
    """What the agent knows of its jobs, for the model."""
    return [(int(one.job_id), one.fence, one.attempt) for one in jobs]


QueueMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestQueue = pytest.mark.timeout(600)(QueueMachine.TestCase)  # a failure takes long to shrink
