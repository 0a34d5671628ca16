"""A file of a run on its way, and whatever breaks under it: it arrives whole, before its result."""

import asyncio
import hashlib
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.filing import NAME, content
from tests.faults.processes import AgentChild
from tests.faults.scene import RESULTS, Scene
from tests.servers.fault_proxy import Fault, http_answer

pytestmark = pytest.mark.faults

FILE_BYTES = 3_000_000
PUT = b"PUT /agent/v1/artifacts/"
STUCK = Fault(stops_after=300_000)
ENOUGH = 200_000
"""So much of a file is there when a line got stuck."""


class Shelf:
    """What the service has of the files."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._folder = scene.database.parent / "artifacts"

    def begun_bytes(self) -> int:
        paths = self._folder.glob(f"*/*/{NAME}.*.part")
        return sum(path.stat().st_size for path in paths)

    async def quiet(self) -> int:
        """Wait until nothing arrives any more; how many bytes did."""
        while True:
            before = self.begun_bytes()
            await asyncio.sleep(1)
            if self.begun_bytes() == before:
                return before

    def assert_whole(self, *, runs: int = 1) -> None:
        """Each run's file is there once, as its result says."""
        paths = sorted(path for path in self._folder.rglob("*") if path.is_file())
        assert [path.name for path in paths] == [NAME] * runs
        for path in paths:
            assert path.read_bytes() == content(FILE_BYTES)
        assert named_digests(self._scene.database) == [digest_of(path) for path in paths]


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def named_digests(database: Path) -> list[str]:
    """What the results say that count."""
    with closing(sqlite3.connect(database, timeout=60)) as file:
        rows = file.execute("SELECT body FROM run_final WHERE body NOT NULL").fetchall()
    outcomes = [json.loads(body)["outcome"] for (body,) in rows]
    return [one["sha256"] for outcome in outcomes for one in outcome["artifacts"]]


@pytest.fixture
def shelf(scene: Scene) -> Shelf:
    return Shelf(scene)


async def start_agent(scene: Scene, **environ: str) -> AgentChild:
    return await scene.start_agent(QUICK_FILE_BYTES=str(FILE_BYTES), **environ)


async def get_stuck(scene: Scene, shelf: Shelf) -> AgentChild:
    """An agent whose upload stands still in the middle."""
    agent = await start_agent(scene)
    armed = scene.proxy.arm(STUCK, when=PUT)
    await scene.check()
    await scene.proxy.struck(armed)
    await scene.until(lambda: shelf.begun_bytes() > ENOUGH)
    return agent


async def resumed_at(agent: AgentChild) -> int:
    return int((await agent.logged("artifact.resumed"))["at_bytes"])


async def test_a_file_arrives_before_its_result_and_once(scene: Scene, shelf: Shelf) -> None:
    agent = await start_agent(scene)
    await scene.check(count=3)
    await scene.settle()
    shelf.assert_whole(runs=3)
    assert await agent.metric("artifacts_dropped_total") == 0
    assert scene.target.seen["/"] == 3
    await scene.until(lambda: not list((scene.spool().parent / "artifacts").glob("*/*")))


async def test_an_agent_that_is_told_to_stop_brings_its_file_first(
    scene: Scene, shelf: Shelf
) -> None:
    agent = await get_stuck(scene, shelf)
    agent.signal(signal.SIGTERM)
    await agent.logged("agent.draining")
    scene.proxy.heal()
    assert await agent.ended() == 0
    assert agent.events("agent.stopped")[0]["results_left"] == 0
    shelf.assert_whole()
    await scene.settle()


async def test_an_agent_that_is_told_twice_leaves_its_file_to_the_next(
    scene: Scene, shelf: Shelf
) -> None:
    first = await get_stuck(scene, shelf)
    for event in ("agent.draining", "agent.cancelling"):
        first.signal(signal.SIGTERM)
        await first.logged(event)
    assert await first.ended() == 0
    assert first.events("agent.stopped")[0]["results_left"] == 1
    kept = await shelf.quiet()
    second = await start_agent(scene)
    assert await resumed_at(second) >= kept
    await scene.settle()
    shelf.assert_whole()
    assert scene.target.seen["/"] == 1, "the result was sent, not made again"


async def test_a_file_survives_the_agent_that_was_killed_as_it_uploaded(
    scene: Scene, shelf: Shelf
) -> None:
    first = await get_stuck(scene, shelf)
    await first.kill()
    kept = await shelf.quiet()
    second = await start_agent(scene)
    assert await resumed_at(second) >= kept
    await scene.settle()
    shelf.assert_whole()
    assert scene.target.seen["/"] == 1


async def test_a_file_arrives_whole_on_a_line_that_breaks_again_and_again(
    scene: Scene, shelf: Shelf
) -> None:
    await start_agent(scene)
    armed = scene.proxy.arm(Fault(cut_after=200_000), when=PUT, times=6)
    await scene.check()
    await scene.until(lambda: armed.struck == 6)
    await scene.settle()
    shelf.assert_whole()
    assert scene.target.seen["/"] == 1


async def test_an_upload_that_the_service_died_on_goes_on_where_it_broke(
    scene: Scene, shelf: Shelf
) -> None:
    agent = await get_stuck(scene, shelf)
    await scene.service.kill()
    kept = shelf.begun_bytes()
    scene.proxy.heal()
    await scene.start_service()
    assert await resumed_at(agent) >= kept
    await scene.settle()
    shelf.assert_whole()
    assert scene.target.seen["/"] == 1


async def test_files_for_which_there_is_no_room_are_counted_and_their_results_arrive(
    scene: Scene, shelf: Shelf
) -> None:
    agent = await start_agent(scene, SPOOL_MAX_BYTES=str(FILE_BYTES - 1))
    await scene.check(count=2)
    ledger = await scene.settle()
    assert ledger.final == 2
    assert named_digests(scene.database) == []
    assert await agent.metric("artifacts_dropped_total") == 2
    assert (await agent.logged("artifacts.dropped"))["reason"] == "no room"


async def test_an_agent_that_stops_leaves_a_file_that_stands_still_to_the_next(
    scene: Scene, shelf: Shelf
) -> None:
    scene.proxy.arm(STUCK, when=PUT)
    agent = await start_agent(scene, QUICK_FLUSH_S="1")
    await scene.check()
    await scene.until(lambda: shelf.begun_bytes() > ENOUGH)
    agent.signal(signal.SIGTERM)
    assert await agent.ended() == 0
    assert agent.events("artifacts.not_delivered") == [], "it did not wait for the line to end"
    assert agent.events("agent.stopped")[0]["results_left"] == 1
    await start_agent(scene)
    await scene.settle()
    shelf.assert_whole()
    assert scene.target.seen["/"] == 1


async def test_an_agent_that_stops_where_no_disk_keeps_files_brings_the_results(
    scene: Scene, shelf: Shelf
) -> None:
    scene.spool().parent.mkdir()
    (scene.spool().parent / "artifacts").write_text("no folder")
    scene.proxy.arm(http_answer(503), when=PUT, times=10_000)
    agent = await start_agent(scene, QUICK_FLUSH_S="1")
    await scene.check()
    await agent.logged("artifacts.not_delivered")
    agent.signal(signal.SIGTERM)
    assert await agent.ended() == 0
    assert agent.events("agent.stopped")[0]["results_left"] == 0
    assert agent.events("artifacts.dropped")[0]["count"] == 1
    assert (scene.ledger().final, named_digests(scene.database)) == (1, [])
    assert scene.target.seen["/"] == 1


async def test_an_agent_that_stops_tries_results_before_files(scene: Scene, shelf: Shelf) -> None:
    agent = await start_agent(scene, QUICK_FLUSH_S="1")
    scene.proxy.arm(http_answer(503), when=RESULTS, times=10_000)
    await scene.check()
    await agent.logged("results.not_delivered")
    scene.proxy.arm(http_answer(503), when=PUT, times=10_000)
    await scene.check()
    await agent.logged("artifacts.not_delivered")
    agent.signal(signal.SIGTERM)
    assert await agent.ended() == 0
    said = [json.loads(line)["event"] for line in agent.lines if line.startswith("{")]
    assert said.index("results.left") < said.index("artifacts.left")
    await start_agent(scene)
    await scene.settle()
    shelf.assert_whole(runs=2)
