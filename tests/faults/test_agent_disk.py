"""The disk on which results wait is full, read-only, or deleted."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.processes import ROOT, AgentChild
from tests.faults.scene import Scene

SIZE_KB = 256


def _can_mount() -> bool:
    if os.geteuid() != 0:
        return False
    tried = subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    )
    return tried.returncode == 0


pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
needs_mounts = pytest.mark.skipif(not _can_mount(), reason="no right to mount here")


class SmallDisk:
    """A file system of a few KB that only agents see that are started `within` it."""

    def __init__(self, folder: Path, holder: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._holder = holder

    @property
    def within(self) -> tuple[str, ...]:
        """The command that gives an agent this disk."""
        return ("nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", f"--wd={ROOT}", "--")

    @property
    def folder(self) -> Path:
        """As this process sees it."""
        return Path(f"/proc/{self._holder.pid}/root") / self._folder.relative_to("/")

    def files(self) -> list[str]:
        return _files(self.folder)

    def remount(self, how: str) -> None:
        command = [*self.within, "mount", "-o", f"remount,{how}", str(self._folder)]
        subprocess.run(command, check=True)


@pytest.fixture
def disk(scene: Scene) -> Iterator[SmallDisk]:
    """The agent's data directory; a process that sleeps keeps it when the agent is killed."""
    folder = scene.spool().parent
    folder.mkdir()
    script = f"mount -t tmpfs -o size={SIZE_KB}k none {folder} && echo && exec sleep infinity"
    holder = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline()
    yield SmallDisk(folder, holder)
    holder.kill()
    holder.wait()
    holder.stdout.close()


def fill(folder: Path) -> Path:
    """Leave no byte free."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return filler


async def hold_results(scene: Scene, agent: AgentChild, count: int) -> None:
    """So many runs end while the service cannot be reached."""
    await scene.check("/held", count=count)
    await scene.target.held(count)
    await scene.proxy.refuse()
    scene.target.release()
    await scene.until(lambda: _spooled(agent, count))


async def _spooled(agent: AgentChild, count: int) -> bool:
    return await agent.metric("results_spooled") == count


@needs_mounts
async def test_results_wait_in_memory_while_the_disk_is_full(scene: Scene, disk: SmallDisk) -> None:
    agent = await scene.start_agent(within=disk.within)
    filler = fill(disk.folder / "results")
    await hold_results(scene, agent, 5)
    line = await agent.logged("spool.not_written")
    assert line["because"] == "No space left on device"
    await scene.until(lambda: disk.files() == [filler.name])  # nothing half written stays
    await scene.settle()
    assert scene.target.seen["/held"] == 5


@needs_mounts
async def test_a_full_disk_that_has_room_again_is_used_again(scene: Scene, disk: SmallDisk) -> None:
    agent = await scene.start_agent(within=disk.within)
    filler = fill(disk.folder / "results")
    await hold_results(scene, agent, 5)
    await agent.logged("spool.not_written")
    filler.unlink()
    await scene.until(disk.files)
    await scene.settle()
    assert scene.target.seen["/held"] == 5


@needs_mounts
async def test_a_disk_that_is_read_only_from_the_start_is_said_and_borne(
    scene: Scene, disk: SmallDisk
) -> None:
    disk.remount("ro")
    agent = await scene.start_agent(within=disk.within)
    assert agent.events("spool.memory_only")
    await hold_results(scene, agent, 5)
    await scene.settle()
    assert scene.target.seen["/held"] == 5


@needs_mounts
async def test_results_on_a_disk_that_turned_read_only_are_sent_again_and_count_once(
    scene: Scene, disk: SmallDisk
) -> None:
    agent = await scene.start_agent(within=disk.within)
    await hold_results(scene, agent, 3)
    await scene.until(disk.files)
    disk.remount("ro")
    await scene.proxy.accept()
    await agent.logged("spool.not_removed")
    await scene.until(lambda: scene.ledger().final == 3)
    await agent.kill()
    disk.remount("rw")
    again = await scene.start_agent(within=disk.within)
    await again.logged("spool.taken_over")
    await scene.until(lambda: disk.files() == [])
    ledger = await scene.settle()
    assert (ledger.final, ledger.late) == (3, 0)


async def test_a_folder_that_is_deleted_under_the_agent_is_made_again(scene: Scene) -> None:
    agent = await scene.start_agent()
    shutil.rmtree(scene.spool())
    await hold_results(scene, agent, 3)
    await scene.on_disk(3)
    await agent.kill()
    await scene.proxy.accept()
    await scene.start_agent()
    await scene.settle()
    assert scene.target.seen["/held"] == 3


async def test_runs_whose_results_were_deleted_under_the_agent_end_all_the_same(
    scene: Scene,
) -> None:
    agent = await scene.start_agent()
    await hold_results(scene, agent, 3)
    await scene.on_disk(3)
    shutil.rmtree(scene.spool())
    scene.leases_run_out()
    await scene.proxy.accept()
    ledger = await scene.settle()
    assert ledger.final == 3


async def test_a_file_that_rotted_is_set_aside_and_its_runs_run_again(scene: Scene) -> None:
    agent = await scene.start_agent()
    await hold_results(scene, agent, 3)
    await scene.on_disk(3)
    await agent.kill()
    for file in scene.spool().glob("*.jsonl"):
        file.write_bytes(file.read_bytes()[:-10])
    await scene.proxy.accept()
    again = await scene.start_agent()
    await again.logged("results.dropped")
    scene.leases_run_out()
    ledger = await scene.settle(may_drop=True)
    assert ledger.final == 3
    assert await again.metric("results_dropped_total") == 3
    assert list(scene.spool().glob("*.broken"))


async def test_the_oldest_results_go_when_there_is_no_room_and_their_runs_run_again(
    scene: Scene,
) -> None:
    agent = await scene.start_agent(SPOOL_MAX_BYTES="1KB")
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await scene.proxy.refuse()
    scene.target.release()
    await agent.logged("results.dropped")
    await scene.until(lambda: _bytes(scene.spool()) <= 1024)  # it says so, then deletes
    await agent.kill()  # with so little room it drops what it runs again, if it waits to send
    scene.leases_run_out()
    await scene.proxy.accept()
    await scene.start_agent()
    ledger = await scene.settle()
    assert ledger.final == 3
    assert scene.target.seen["/held"] > 3


def _bytes(spool: Path) -> int:
    found = 0
    for path in spool.glob("*.jsonl"):
        with suppress(FileNotFoundError):  # it went meanwhile
            found += path.stat().st_size
    return found


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "results").glob("*"))
