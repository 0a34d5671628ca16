"""Who may use a folder: one agent, for as long as it lives."""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.data_folder import NoLocksError, alone, lock_folder, lock_left_folder

FLOCK = fcntl.flock


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", refusing(errno.ENOLCK))


def refusing(number: int) -> Callable[[int, int], None]:
    def flock(descriptor: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    return flock


def test_a_folder_is_one_processs_until_it_is_let_go(tmp_path: Path) -> None:
    held = lock_folder(tmp_path / "own")
    with pytest.raises(BlockingIOError):
        lock_folder(tmp_path / "own")
    with pytest.raises(BlockingIOError):
        lock_left_folder(tmp_path / "own")
    os.close(held)
    os.close(lock_left_folder(tmp_path / "own"))


def test_a_folder_that_was_removed_before_its_lock_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "own"
    tried: list[int] = []

    def late(descriptor: int, how: int) -> None:
        if not tried:  # as an agent does that takes it for a dead one's
            shutil.rmtree(folder)
        tried.append(descriptor)
        FLOCK(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    held = lock_folder(folder)
    assert os.path.samestat(os.fstat(held), folder.stat())
    os.close(held)


def test_a_folder_that_is_removed_each_time_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: shutil.rmtree(tmp_path / "own"))
    with pytest.raises(FileNotFoundError, match="again and again"):
        lock_folder(tmp_path / "own")


@pytest.mark.usefixtures("no_locks")
def test_on_a_disk_without_locks_nobodys_folder_is_taken_for_free(tmp_path: Path) -> None:
    os.close(lock_folder(tmp_path / "own"))
    with pytest.raises(NoLocksError):
        lock_left_folder(tmp_path / "own")


@pytest.mark.usefixtures("no_locks")
def test_on_a_disk_without_locks_nobody_waits(tmp_path: Path) -> None:
    with alone(tmp_path / ".lock", limit_s=60) as first, alone(tmp_path / ".lock", limit_s=60):
        assert first


def test_a_folder_that_is_gone_is_not_made_for_its_heirs(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        lock_left_folder(tmp_path / "gone")
    assert not (tmp_path / "gone").exists()


def test_two_are_never_alone_at_once(tmp_path: Path) -> None:
    with (
        alone(tmp_path / ".lock", limit_s=0) as first,
        alone(tmp_path / ".lock", limit_s=0.1) as second,
    ):
        assert (first, second) == (True, False)
    with alone(tmp_path / ".lock", limit_s=0) as third:
        assert third


def test_a_lock_is_no_business_of_a_child_process(tmp_path: Path) -> None:
    held = lock_folder(tmp_path / "own")
    assert not os.get_inheritable(held)
    os.close(held)
