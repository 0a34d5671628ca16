"""Submissions that wait are stored together, and one at fault harms no other."""

import asyncio
from collections.abc import Sequence

import pytest
from sqlalchemy import Connection

from contract.result import Result
from contract.wire import encode
from service.agents import submissions
from service.agents.submissions import Submissions
from service.results.ingest import Arrived, Verdict, take_results
from tests.builders.world import World, a_result


async def some_results(world: World, count: int) -> list[Result]:
    for _ in range(count):
        await world.queue(await world.check())
    jobs = [await world.claim(f"claim-{number}") for number in range(count)]
    return [a_result(job) for claimed in jobs for job in claimed]


class Fault:
    """Makes the storing of some results fail, as a defect of the service would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, faulty: Sequence[Result]) -> None:
        self._faulty = {int(one.job_id) for one in faulty}
        self.tried: list[set[int]] = []
        """The runs of each change."""
        monkeypatch.setattr(submissions, "take_results", self._take)

    def _take(
        self, connection: Connection, arrived: Sequence[Arrived], *, location_id: str, now_ms: int
    ) -> list[Verdict]:
        self.tried.append({one.run_id for one in arrived})
        if any(one.run_id in self._faulty for one in arrived):
            raise LookupError("as if")
        return take_results(connection, arrived, location_id=location_id, now_ms=now_ms)


def arrived(results: Sequence[Result]) -> list[Arrived]:
    return [Arrived(one, encode(one), int(one.job_id)) for one in results]


async def test_a_result_that_cannot_be_stored_is_rejected_and_the_others_are_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = await some_results(world, 8)
    Fault(monkeypatch, [results[5]])

    taken = await Submissions(world.database, world.clock).take(world.location_id, arrived(results))

    assert taken.count(Verdict.ACCEPTED) == 7
    assert taken[5] is Verdict.UNSTORABLE


async def test_where_no_result_can_be_stored_their_agents_keep_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = await some_results(world, 3)
    Fault(monkeypatch, results)

    with pytest.raises(LookupError):
        await Submissions(world.database, world.clock).take(world.location_id, arrived(results))


async def test_a_submission_at_fault_fails_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = await some_results(world, 5)
    Fault(monkeypatch, [results[2]])
    made = Submissions(world.database, world.clock)

    done = await asyncio.gather(
        *(made.take(world.location_id, arrived([one])) for one in results), return_exceptions=True
    )

    assert [one for one in done if one != [Verdict.ACCEPTED]] == [done[2]]
    assert isinstance(done[2], LookupError)


async def test_one_that_failed_before_is_tried_without_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty, *others = await some_results(world, 5)
    fault = Fault(monkeypatch, [faulty])
    made = Submissions(world.database, world.clock)
    with pytest.raises(LookupError):
        await made.take(world.location_id, arrived([faulty]))
    fault.tried.clear()

    await asyncio.gather(
        *(made.take(world.location_id, arrived([one])) for one in (faulty, *others)),
        return_exceptions=True,
    )

    assert [runs for runs in fault.tried if int(faulty.job_id) in runs] == [{int(faulty.job_id)}]
