"""SIGTERM: once, twice, three times, and while something is under way."""

import asyncio
import hashlib
import signal

import pytest

from tests.faults.processes import Child
from tests.faults.scene import LOCATION_KEY, RELEASE, RESULTS, Scene, leases_of
from tests.servers.fault_proxy import BLACK_HOLE, HELD_ANSWERS, Fault

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

LONGER_THAN_WE_WAIT_S = 300


async def test_the_first_signal_lets_runs_end_and_delivers_them(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=5)
    await scene.target.held(5)
    agent.signal(signal.SIGTERM)
    await agent.logged("agent.draining")
    assert await agent.health("/-/readiness") == 503
    assert await agent.health("/-/liveness") == 200
    scene.target.release()
    assert await agent.ended() == 0
    ledger = scene.ledger()
    assert (ledger.final, ledger.most_claims) == (5, 1)
    await scene.settle()


@leases_of(LONGER_THAN_WE_WAIT_S)
async def test_the_second_signal_gives_running_jobs_to_another_agent_at_once(scene: Scene) -> None:
    first = await scene.start_agent("first")
    await scene.check("/held", count=5)
    await scene.target.held(5)
    await scene.start_agent("second")
    first.signal(signal.SIGTERM)
    await first.logged("agent.draining")
    first.signal(signal.SIGTERM)
    assert await first.ended() == 0
    await scene.until(lambda: scene.target.seen["/held"] == 10)
    scene.target.release()
    await scene.until(lambda: scene.ledger().final == 5)
    await scene.settle()


async def test_after_the_third_signal_the_leases_run_out(scene: Scene) -> None:
    first = await scene.start_agent("first")
    await scene.check("/held", count=5)
    await scene.target.held(5)
    scene.proxy.arm(BLACK_HOLE, when=RELEASE, times=100)
    for event in ("agent.draining", "agent.cancelling"):
        first.signal(signal.SIGTERM)
        await first.logged(event)
    first.signal(signal.SIGTERM)
    assert await first.ended() == 1
    scene.leases_run_out()
    await scene.start_agent("second")
    await scene.until(lambda: scene.target.seen["/held"] == 10)
    ledger = await scene.settle()
    assert ledger.final == 5


async def test_an_agent_that_stops_without_its_service_leaves_results_to_the_next(
    scene: Scene,
) -> None:
    first = await scene.start_agent(QUICK_FLUSH_S="1")
    await scene.check("/held", count=5)
    await scene.target.held(5)
    await scene.proxy.refuse()
    first.signal(signal.SIGTERM)
    scene.target.release()
    assert await first.ended() == 0
    assert first.events("agent.stopped")[0]["results_left"] == 5
    await scene.proxy.accept()
    await scene.start_agent()
    await scene.until(lambda: scene.ledger().final == 5)
    await scene.settle()
    assert scene.target.seen["/held"] == 5


async def test_an_agent_that_stops_while_its_results_wait_for_a_receipt_counts_once(
    scene: Scene,
) -> None:
    first = await scene.start_agent(QUICK_FLUSH_S="1")
    await scene.check("/held", count=5)
    await scene.target.held(5)
    armed = scene.proxy.arm(HELD_ANSWERS, when=RESULTS)
    scene.target.release()
    await scene.proxy.struck(armed)
    assert await first.stop() == 0
    await scene.start_agent()
    ledger = await scene.settle()
    assert (ledger.final, ledger.late) == (5, 0)


# An upload is two requests: one asks how much is stored, the other one goes on from there.


class Upload:
    """A client of the artifact endpoint as a process of its own.

    Checks of the uptime types leave no files, so no agent uploads yet: this client keeps the
    protocol that the agent will keep, and is stopped in the agent's place.
    """

    def __init__(self, scene: Scene, job: int, content: bytes) -> None:
        self._scene, self._job = scene, job
        self._file = scene.folder / "artifact"
        self._file.write_bytes(content)

    async def start(self) -> Child:
        environ = {
            "URL": f"{self._scene.proxy.url}/agent/v1/artifacts/{self._job}/trace.zip",
            "KEY": LOCATION_KEY,
            "FILE": str(self._file),
        }
        return await Child.start("tests.faults.uploader", environ)

    def stored(self) -> bytes:
        (path,) = self._scene.database.parent.glob("artifacts/*/*/trace.zip")
        return path.read_bytes()

    def unfinished_bytes(self) -> int:
        paths = self._scene.database.parent.glob("artifacts/*/*/trace.zip.part")
        return sum(path.stat().st_size for path in paths)

    async def quiet(self) -> int:
        """Wait until nothing arrives any more; how many bytes did."""
        while True:
            before = self.unfinished_bytes()
            await asyncio.sleep(1)
            if self.unfinished_bytes() == before:
                return before


@pytest.fixture
async def upload(scene: Scene) -> Upload:
    await scene.start_agent()
    await scene.check("/held")
    await scene.target.held(1)
    content = b"".join(hashlib.sha256(bytes([n % 251])).digest() for n in range(40_000))
    return Upload(scene, scene.ledger().runs, content)


async def test_an_upload_that_sigterm_broke_goes_on_where_it_broke(
    scene: Scene, upload: Upload
) -> None:
    scene.proxy.arm(Fault(stops_after=200_000), when=b"PUT ", times=2)
    first = await upload.start()
    await scene.until(lambda: upload.unfinished_bytes() > 100_000)
    assert await first.stop() != 0
    kept = await upload.quiet()
    second = await upload.start()
    assert await second.ended() == 0, second.output() + scene.service.output()
    assert (await second.logged("uploaded"))["began_at"] >= kept
    assert upload.stored() == upload._file.read_bytes()
    await scene.settle()


async def test_an_upload_that_the_service_died_on_goes_on_where_it_broke(
    scene: Scene, upload: Upload
) -> None:
    scene.proxy.arm(Fault(stops_after=200_000), when=b"PUT ", times=2)
    first = await upload.start()
    await scene.until(lambda: upload.unfinished_bytes() > 100_000)
    await scene.service.kill()
    assert await first.ended() == 1
    await scene.start_service()
    second = await upload.start()
    assert await second.ended() == 0, second.output() + scene.service.output()
    assert (await second.logged("uploaded"))["began_at"] > 0
    assert upload.stored() == upload._file.read_bytes()
    await scene.settle()


async def test_an_upload_on_a_line_that_breaks_again_and_again_arrives_whole(
    scene: Scene, upload: Upload
) -> None:
    scene.proxy.arm(Fault(cut_after=200_000), when=b"PUT ", times=1_000)
    for _ in range(4):
        assert await (await upload.start()).ended() == 1
    scene.proxy.heal()
    assert await upload.quiet() > 0, "what arrived was kept; a reset takes along what nobody read"
    last = await upload.start()
    assert await last.ended() == 0, last.output() + scene.service.output()
    assert upload.stored() == upload._file.read_bytes()
    await scene.settle()
