"""Agents that share a disk: each has its folder, and takes over only what is nobody's any more."""

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from agent.data_folder import alone
from agent.outbox.artifact_files import ArtifactFolder, TakenOver, list_files
from contract.result import Artifact
from sandbox.spawn import can_have_own_users
from sandbox.workspace import temporary_folder
from tests.builders.agents import a_clean_file, clean
from tests.builders.artifacts import make_unreadable
from tests.builders.observations import an_outcome
from tests.builders.patience import LONG_S

ROOT = Path(__file__).parents[3]
FLOCK = fcntl.flock
AN_AGENT = """
import sys
from pathlib import Path
from agent.outbox.artifact_files import ArtifactFolder
folder = ArtifactFolder(Path(sys.argv[1]), agent_id=sys.argv[2])
print("made", flush=True)
sys.stdin.readline()
folder.open()
print("open", flush=True)
sys.stdin.readline()
"""


def packed(folder: ArtifactFolder, job_id: str = "job-1", *, put_at_s: float = 1) -> Path:
    """A parcel with one file."""
    assert folder.own is not None
    path = folder.own / "a.txt"
    path.write_bytes(b"one")
    artifact = Artifact(name="a.txt", kind="file", size_bytes=3, sha256="0" * 64)
    result = clean(job_id, outcome=an_outcome(artifacts=(artifact,)))
    file = a_clean_file(path, artifact)
    return folder.pack(result, [file], lease_s=60, put_at_s=put_at_s).folder


@contextmanager
def opened(shared: Path, agent_id: str) -> Iterator[ArtifactFolder]:
    folder = ArtifactFolder(shared, agent_id=agent_id)
    folder.open()
    yield folder
    folder.close()


def jobs_of(left: TakenOver) -> list[str]:
    return [parcel.lease.job_id for parcel in left.batches]


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


def test_an_agent_that_starts_takes_no_folder_that_another_one_is_just_making(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (ArtifactFolder(tmp_path, agent_id=one) for one in ("a1", "b2"))
    starting: list[Future[TakenOver]] = []

    def slow(descriptor: int, how: int) -> None:
        if not starting and Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path / "a1":
            starting.append(pool.submit(second.open))
            with suppress(NotYetError):  # it waits until the first one is done
                starting[0].result(timeout=0.5)
        FLOCK(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    with ThreadPoolExecutor() as pool:
        first.open()
        inode = (tmp_path / "a1").stat().st_ino
        assert first._lock is not None
        assert os.fstat(first._lock).st_ino == inode
        starting[0].result(timeout=LONG_S)
        assert (tmp_path / "a1").stat().st_ino == inode
    first.close()
    second.close()


def test_agents_that_start_together_each_have_their_folder(tmp_path: Path) -> None:
    ids = [f"{number:012x}" for number in range(1, 7)]
    agents = [
        Popen(
            [sys.executable, "-c", AN_AGENT, str(tmp_path), one], stdin=PIPE, stdout=PIPE, cwd=ROOT
        )
        for one in ids
    ]
    try:
        tell_all(agents, "made")
        tell_all(agents, "open")
        assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ids
    finally:
        for agent in agents:
            agent.communicate()


def tell_all(agents: list[Popen[bytes]], heard: str) -> None:
    """Go on with all of them once each has said this."""
    for agent in agents:
        assert agent.stdout is not None
        assert agent.stdout.readline().decode().strip() == heard
    for agent in agents if heard == "made" else ():
        assert agent.stdin is not None
        agent.stdin.write(b"\n")
        agent.stdin.flush()


def test_an_agent_that_nobody_lets_look_around_looks_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.outbox.artifact_files._LOCK_LIMIT_S", 0.1)
    with opened(tmp_path, "a1") as first:
        packed(first)
    second = ArtifactFolder(tmp_path, agent_id="b2")
    with alone(tmp_path / ".lock", limit_s=0):
        assert jobs_of(second.open()) == []
    assert jobs_of(second.retry_take_over()) == ["job-1"]
    second.close()


def test_what_is_left_is_taken_over_oldest_first_and_the_rest_goes(tmp_path: Path) -> None:
    with opened(tmp_path, "a1") as first:
        packed(first, "newer", put_at_s=2)
        packed(first, "older", put_at_s=1)
        assert first.own is not None
        (first.own / "picket-run-1").mkdir()
    second = ArtifactFolder(tmp_path, agent_id="b2")
    assert jobs_of(second.open()) == ["older", "newer"]
    assert not (tmp_path / "a1").exists()
    second.close()


def test_an_agent_with_the_folder_of_an_earlier_one_mixes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, "a1") as first:
        packed(first, "job-1")
        packed(first, "job-2")
    again = ArtifactFolder(tmp_path, agent_id="a1")
    assert jobs_of(again.open()) == ["job-1", "job-2"]
    assert packed(again, "job-3").name.endswith("-000003")
    again.close()


@pytest.mark.usefixtures("no_locks")
def test_on_a_disk_without_locks_a_living_agent_loses_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, "a1") as first:
        parcel = packed(first)
        assert first.own is not None
        (first.own / "picket-run-1").mkdir()
        with opened(tmp_path, "b2") as second:
            assert jobs_of(second.retry_take_over()) == []
        assert (parcel / "a.txt").exists()
        assert (first.own / "picket-run-1").exists()


@pytest.mark.usefixtures("no_locks")
def test_on_a_disk_without_locks_what_nobody_touched_for_long_is_taken_over(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, "a1") as first:
        packed(first)
    second = ArtifactFolder(tmp_path, agent_id="b2")
    assert jobs_of(second.open()) == []
    long_ago = time.time() - 4000
    os.utime(tmp_path / "a1", (long_ago, long_ago))
    assert jobs_of(second.retry_take_over()) == ["job-1"]
    assert not (tmp_path / "a1").exists()
    second.close()


@pytest.mark.usefixtures("no_locks")
def test_an_agent_that_has_nothing_to_do_shows_that_it_lives(tmp_path: Path) -> None:
    with opened(tmp_path, "a1") as first:
        os.utime(tmp_path / "a1", (0, 0))
        first.retry_take_over()
        with opened(tmp_path, "b2"):
            assert (tmp_path / "a1").exists()


def test_a_parcel_that_cannot_be_read_now_is_kept_and_tried_again(tmp_path: Path) -> None:
    with opened(tmp_path, "a1") as first:
        content = make_unreadable(packed(first) / ".letter")
    with opened(tmp_path, "b2") as second:
        assert second.retry_take_over() == TakenOver()
    third = ArtifactFolder(tmp_path, agent_id="c3")
    assert third.open() == TakenOver()
    (letter,) = tmp_path.glob("c3/*/.letter")
    letter.rmdir()
    letter.write_bytes(content)
    assert jobs_of(third.retry_take_over()) == ["job-1"]
    third.close()


@pytest.mark.parametrize("letter", [b"{", b"\xff", b"[" * 100_000, b'{"result":{},"leaseS":1}'])
def test_a_parcel_that_nobody_will_ever_read_is_counted_and_goes(
    tmp_path: Path, letter: bytes
) -> None:
    with opened(tmp_path, "a1") as first:
        (packed(first) / ".letter").write_bytes(letter)
    second = ArtifactFolder(tmp_path, agent_id="b2")
    (broken,) = second.open().broken
    assert (broken.files, broken.is_finished) == (1, True)
    assert list(tmp_path.glob("*/parcel-*")) == []
    second.close()


def test_a_parcel_that_its_agent_died_on_counts_its_files_and_no_result(tmp_path: Path) -> None:
    with opened(tmp_path, "a1") as first:
        (packed(first) / ".letter").unlink()
    second = ArtifactFolder(tmp_path, agent_id="b2")
    (broken,) = second.open().broken
    assert (broken.files, broken.is_finished) == (1, False)
    second.close()


def test_a_link_among_the_files_is_measured_and_not_followed(tmp_path: Path) -> None:
    with opened(tmp_path, "a1") as first:
        file = packed(first) / "a.txt"
        file.unlink()
        file.symlink_to("/proc/kcore")
    second = ArtifactFolder(tmp_path, agent_id="b2")
    (parcel,) = second.open().batches
    assert (parcel.size_bytes, list_files(parcel.folder)) == (len("/proc/kcore"), {"a.txt"})
    second.close()


def test_runs_work_where_the_users_of_their_scripts_can_get_to(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with opened(closed / "artifacts", "a1") as folder:
        assert folder.runs == (None if can_have_own_users() else folder.own)


def test_what_a_run_of_a_killed_agent_nested_without_end_keeps_no_agent_from_starting() -> None:
    with temporary_folder() as shared:
        with opened(shared, "ag_1") as folder:
            assert folder.own is not None
            left = folder.own / "picket-run-left"
            left.mkdir()
            handle = os.open(left, os.O_RDONLY)
            for _ in range(1400):
                os.mkdir("d", dir_fd=handle)
                deeper = os.open("d", os.O_RDONLY, dir_fd=handle)
                os.close(handle)
                handle = deeper
            os.close(handle)
        with opened(shared, "ag_1"):
            assert not left.exists()


def test_files_that_no_disk_keeps_are_gone_after_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, used = tmp_path / "picket-files-left", ArtifactFolder(tmp_path / "no", agent_id="b")
    left.mkdir()
    used.open_elsewhere()
    (tmp_path / "a.txt").write_bytes(b"one")
    artifact = Artifact(name="a.txt", kind="file", size_bytes=3, sha256="0" * 64)
    result = clean("job-1", outcome=an_outcome(artifacts=(artifact,)))
    kept = used.pack(result, [a_clean_file(tmp_path / "a.txt", artifact)], lease_s=60, put_at_s=1)
    with opened(tmp_path / "shared", "a"):
        assert not left.exists()
        assert kept.folder.is_dir()
    used.close()
    assert not kept.folder.exists()
