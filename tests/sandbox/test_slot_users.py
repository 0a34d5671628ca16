"""Users for runs are lent to one run at a time."""

from pathlib import Path

import pytest

from sandbox import users as slot_users
from sandbox.users import SLOT_UIDS, SlotUsers

NOBODYS_UIDS = range(60800, 60805)


def test_a_user_is_lent_to_one_agent_at_a_time(tmp_path: Path) -> None:
    ours, theirs = SlotUsers(tmp_path), SlotUsers(tmp_path)
    uid = ours.borrow()
    assert uid in SLOT_UIDS
    assert not theirs.lock(uid)
    ours.give_back(uid)
    assert theirs.lock(uid)
    theirs.give_back(uid)


def test_agents_that_share_processes_but_no_folder_get_different_users(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    ours, theirs = SlotUsers(tmp_path / "ours"), SlotUsers(tmp_path / "theirs")
    uid = ours.borrow()
    assert not theirs.lock(uid)
    assert not theirs.lock(uid), "an attempt leaves the lock as it was"
    ours.give_back(uid)
    assert theirs.lock(uid)
    theirs.give_back(uid)


def test_no_two_runs_get_the_same_user_and_the_last_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_users, "SLOT_UIDS", NOBODYS_UIDS)
    users, lent = SlotUsers(tmp_path), set()
    with pytest.raises(OSError, match="All 5 users for scripts are in use"):  # noqa: PT012
        while True:
            uid = users.borrow()
            assert uid not in lent
            lent.add(uid)
    for uid in lent:
        users.give_back(uid)
