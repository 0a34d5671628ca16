"""Users for runs are lent to one run at a time."""

from pathlib import Path

import pytest

from sandbox.users import SLOT_UIDS, SlotUsers


def test_a_user_is_lent_to_one_agent_at_a_time(tmp_path: Path) -> None:
    ours, theirs = SlotUsers(tmp_path), SlotUsers(tmp_path)
    uid = ours.borrow()
    assert uid in SLOT_UIDS
    assert not theirs.lock(uid)
    ours.give_back(uid)
    assert theirs.lock(uid)
    theirs.give_back(uid)


def test_no_two_runs_get_the_same_user_and_the_last_one_is_told(tmp_path: Path) -> None:
    users, lent = SlotUsers(tmp_path), set()
    with pytest.raises(OSError, match="All 200 users for scripts are in use"):  # noqa: PT012
        while True:
            uid = users.borrow()
            assert uid not in lent
            lent.add(uid)
    for uid in lent:
        users.give_back(uid)
