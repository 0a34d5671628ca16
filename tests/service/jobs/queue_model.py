"""The queue as a plain model: what becomes of every run, by the rules of the protocol alone.

It shares no code with the service: its figures and its rules are written down here once more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

LEASE_MS = 60_000
IN_QUEUE_MS = 360_000
SECOND_CHANCE_MS = 30_000
FORGIVEN_MS = 30_000
MOST_DELIVERIES = 3
HELD_BACK_MS = 5_000
RETRY_AFTER_MS = 5_000
MOST_RETRIES = 2
RETRIES_END_MS = 600_000

WANTED, SCHEDULED = 0, 1
NOBODY, BROKEN = ("MISSED", "no_agent"), ("ERROR", "agent_error")
Claimed = tuple[int, int, int]
"""Run, fence, attempt: what an agent knows of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that is not over."""

    id: int
    priority: int
    is_scheduled: bool
    scheduled_ms: int
    due_ms: int
    expires_ms: int
    leased: bool = False
    fence: int = 0
    deliveries: int = 0
    attempt: int = 1
    lease_until_ms: int | None = None
    """None: it is not leased."""
    claim: str | None = None
    """The newest. None: it was never claimed."""
    claimed_ms: int = 0
    first_ms: int | None = None
    """When its first attempt began. None: none came back."""
    agent: str = ""
    """Of the newest claim."""
    returned_by: tuple[str, ...] = ()
    """Agents that gave this attempt back, each as often as it did."""

    def is_held_back(self, agent: str, now: int) -> bool:
        """Others may take it before this agent."""
        times = self.returned_by.count(agent)
        return times > 0 and now < self.due_ms + HELD_BACK_MS * 2 ** (times - 1)


@dataclass(slots=True)
class QueueModel:
    """One location, one check of the uptime lane, which is tried again after 5 s, twice at most."""

    now: int
    live: dict[int, Run] = field(default_factory=dict)
    finals: dict[int, tuple[str, str | None, int]] = field(default_factory=dict)
    """By run: status, cause, fence of the claim whose result it is; 0: nobody's."""
    attempts: set[tuple[int, int]] = field(default_factory=set)
    """Run and fence of failed looks that were tried again."""
    late: set[tuple[int, int]] = field(default_factory=set)
    is_paused: bool = False
    runs: int = 0
    """How many were queued."""
    number: int = 0
    """Of the newest run; one that was there already uses up a number too."""

    def queue(self, *, is_scheduled: bool, fence: int) -> None:
        """A scheduled run that is there already stays as it is; fences begin anywhere."""
        self.number += 1
        known = (run for run in self.live.values() if run.is_scheduled)
        if is_scheduled and any(run.scheduled_ms == self.now for run in known):
            return
        self.runs += 1
        self.live[self.number] = Run(
            id=self.number,
            fence=fence,
            priority=SCHEDULED if is_scheduled else WANTED,
            is_scheduled=is_scheduled,
            scheduled_ms=self.now,
            due_ms=self.now,
            expires_ms=self.now + IN_QUEUE_MS,
        )

    def claim(self, claim: str, agent: str, *, slots: int, repeated: bool) -> list[Claimed]:
        """What the claim gets, in order; a repeated one what it had got, with a whole lease."""
        dealt = [one for one in self.live.values() if one.leased and one.claim == claim]
        if repeated and dealt:
            dealt = [replace(one, lease_until_ms=self.now + LEASE_MS) for one in dealt]
        else:
            ready = [one for one in self.live.values() if not one.leased and one.due_ms <= self.now]
            ready.sort(key=lambda one: (one.priority, one.due_ms, one.id))
            mine = [one for one in ready if not one.is_held_back(agent, self.now)]
            dealt = [self._dealt(one, claim, agent) for one in mine[:slots]]
        self._put(dealt)
        return [(one.id, one.fence, one.attempt) for one in dealt]

    def renew(self, jobs: Iterable[Claimed]) -> list[bool]:
        """Which leases hold; those hold for another full length."""
        found = [self._held(one) for one in jobs]
        self._put(replace(run, lease_until_ms=self.now + LEASE_MS) for run in found if run)
        return [run is not None for run in found]

    def submit(self, jobs: Sequence[Claimed], status: str) -> list[bool]:
        """Which results count."""
        return [self._take(one, status) for one in jobs]

    def release(self, jobs: Iterable[Claimed], *, is_counted: bool, gives_up_as: str) -> None:
        """Agents give jobs back; `is_counted`: whether that says something against the job."""
        for one in jobs:
            if (run := self._held(one)) is not None:
                self._come_back(run, is_counted=is_counted, gives_up_as=gives_up_as)

    def let_out(self) -> None:
        """The key of the agents ended: what they hold goes back."""
        for run in [one for one in self.live.values() if one.leased]:
            self._come_back(run, is_counted=False, gives_up_as="")

    def reap(self) -> None:
        """Time has passed: leases and waits run out."""
        runs = list(self.live.values())
        for run in runs:
            if run.leased and run.lease_until_ms is not None and run.lease_until_ms <= self.now:
                self._lose(run)
            elif not run.leased and run.expires_ms <= self.now:
                self._end(run, *(BROKEN if run.returned_by else NOBODY))

    def forgive(self) -> None:
        """The service was away, and is back."""
        until_ms = self.now + FORGIVEN_MS
        self._put(
            replace(one, lease_until_ms=max(one.lease_until_ms or 0, until_ms))
            for one in list(self.live.values())
            if one.leased
        )

    def pause(self) -> None:
        """The check is cancelled for now: its scheduled runs that wait end."""
        self.is_paused = True
        for run in list(self.live.values()):
            if run.is_scheduled and not run.leased:
                self._end(run, "MISSED", "paused")

    def resume(self) -> None:
        """The check goes on."""
        self.is_paused = False

    def _dealt(self, run: Run, claim: str, agent: str) -> Run:
        return replace(
            run,
            leased=True,
            fence=run.fence + 1,
            deliveries=run.deliveries + 1,
            lease_until_ms=self.now + LEASE_MS,
            claim=claim,
            agent=agent,
            claimed_ms=self.now,
        )

    def _held(self, job: Claimed) -> Run | None:
        """The run, if this claim of it is the newest and still holds it. None: it does not."""
        run = self.live.get(job[0])
        return run if run is not None and run.leased and run.fence == job[1] else None

    def _take(self, job: Claimed, status: str) -> bool:
        run_id, fence, attempt = job
        run = self.live.get(run_id)
        if run is None or run.fence != fence or not (run.leased or run.attempt == attempt):
            known = (run_id, fence) in self.attempts
            ended = run_id in self.finals and self.finals[run_id][2] == fence
            if not (known or ended):
                self.late.add((run_id, fence))
            return False
        first_ms = run.claimed_ms if run.first_ms is None else run.first_ms
        failed = status in {"FAILED", "TIMED_OUT"}
        in_time = run.claimed_ms - first_ms + RETRY_AFTER_MS <= RETRIES_END_MS
        if failed and run.attempt <= MOST_RETRIES and in_time and not self.is_paused:
            self.attempts.add((run_id, fence))
            self._try_again(run, first_ms)
        else:
            self._end(run, status, None)
        return True

    def _try_again(self, run: Run, first_ms: int) -> None:
        due_ms = self.now + RETRY_AFTER_MS
        again = replace(run, priority=WANTED, deliveries=0, attempt=run.attempt + 1)
        again = replace(again, returned_by=())
        self._requeue(replace(again, first_ms=first_ms), due_ms, due_ms + IN_QUEUE_MS)

    def _come_back(self, run: Run, *, is_counted: bool, gives_up_as: str) -> None:
        if is_counted and run.agent in run.returned_by:
            returned_by = (*run.returned_by, run.agent)
            again = replace(run, deliveries=run.deliveries - 1, returned_by=returned_by)
            self._requeue(again, self.now, run.expires_ms)
            return
        if is_counted and run.deliveries >= MOST_DELIVERIES:
            self._end(run, "ERROR" if gives_up_as == "agent_error" else "MISSED", gives_up_as)
            return
        if is_counted:
            run = replace(run, returned_by=(*run.returned_by, run.agent))
        else:
            run = replace(run, deliveries=run.deliveries - 1)
        self._requeue(run, self.now, max(run.expires_ms, self.now + SECOND_CHANCE_MS))

    def _lose(self, run: Run) -> None:
        if run.deliveries >= MOST_DELIVERIES:
            self._end(run, "MISSED", "agent_lost")
        else:
            self._requeue(run, self.now, self.now + IN_QUEUE_MS)

    def _requeue(self, run: Run, due_ms: int, expires_ms: int) -> None:
        if self.is_paused and run.is_scheduled:
            self._end(run, "MISSED", "paused")
        else:
            back = replace(run, leased=False, lease_until_ms=None)
            self._put([replace(back, due_ms=due_ms, expires_ms=expires_ms)])

    def _end(self, run: Run, status: str, cause: str | None) -> None:
        del self.live[run.id]
        self.finals[run.id] = (status, cause, 0 if cause else run.fence)

    def _put(self, runs: Iterable[Run]) -> None:
        self.live.update({run.id: run for run in list(runs)})
