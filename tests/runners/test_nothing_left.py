"""Browser jobs in a row leave no process, folder, descriptor or shared memory behind.

`BROWSER_JOBS=200` runs as many as a release is to stand.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from contract.result import Status
from sandbox.processes import all_pids, read_process, read_tag, read_uid
from sandbox.users import SLOT_UIDS
from sandbox.workspace import Workspace
from tests.builders.agents import until
from tests.builders.browser_checks import a_test, look
from tests.builders.patience import LONG_S, descriptors
from tests.builders.scripts import a_scripted_context

JOBS = int(os.environ.get("BROWSER_JOBS", "4"))
OPEN_TO_ALL = ("/dev/shm", "/tmp", "/var/tmp")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for runs alone, which their users can pass."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.mark.timeout(120 + 30 * JOBS)
async def test_browser_jobs_in_a_row_leave_nothing_behind(site: str, runs: Path) -> None:
    await jobs(site, 1)  # whatever is opened once is open
    before, strangers = descriptors(), our_processes()  # those of agents that other tests ended
    users = await jobs(site, JOBS) & set(SLOT_UIDS)
    assert names(runs) == []
    await until(lambda: descriptors() <= before)
    for found in (
        lambda: our_processes() - strangers,
        partial(processes_of, users),
        partial(files_of, users),
    ):
        await nothing_stays(found)


async def jobs(site: str, number: int) -> set[int]:
    """Run a page's test as an agent does, so many times; whom it ran as."""
    users = set()
    script = a_test(f"await page.goto('{site}/plain'); console.log(`uid=${{process.getuid()}}`);")
    async with a_scripted_context(keeps_files=True, loads_ahead=True) as ctx:
        for _ in range(number):
            workspace = Workspace()
            outcome = await look(msgspec.structs.replace(ctx, workspace=workspace), script)
            assert outcome.status is Status.PASSED, outcome
            (uid,) = re.findall(r"uid=(\d+)", " ".join(line.message for line in outcome.log))
            users.add(int(uid))
            await asyncio.to_thread(workspace.remove)
    return users


async def nothing_stays(found: Callable[[], set[str]]) -> None:
    """Another test may have the same user for a while; what is left behind is there for good."""
    async with asyncio.timeout(LONG_S):
        seen = found()
        while seen := seen & found():  # noqa: ASYNC110 - other processes tell us nothing
            await asyncio.sleep(0.1)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def our_processes() -> set[str]:
    """Those below this process that a sandbox has started."""
    return {str(pid) for pid in all_pids() if read_tag(pid) is not None and is_below_us(pid)}


def is_below_us(pid: int) -> bool:
    while (seen := read_process(pid)) is not None:
        if seen.parent == os.getpid():
            return True
        pid = seen.parent
    return False


def processes_of(users: set[int]) -> set[str]:
    return {str(pid) for pid in all_pids() if read_uid(pid) in users}


def files_of(users: set[int]) -> set[str]:
    paths = (path for folder in OPEN_TO_ALL for path in Path(folder).iterdir())
    return {str(path) for path in paths if owner(path) in users}


def owner(path: Path) -> int | None:
    """None: it is gone."""
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return None
