"""Users for runs are lent to one run at a time."""

import os
from pathlib import Path

import pytest

from runners.kit.folder_owner import give_folder, take_folder
from runners.kit.slot_users import SLOT_UIDS, SlotUsers
from runners.kit.workspace import Workspace
from tests.runners.kit.isolation.worlds import needs_root


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


@needs_root
def test_a_folder_is_its_users_while_it_runs_and_shut_afterwards() -> None:
    workspace, uid = Workspace(), SLOT_UIDS[0]
    inside = workspace.folder / "inside"
    inside.mkdir()
    (inside / "file").write_text("x")
    give_folder(workspace.folder, uid)
    assert {path.stat().st_uid for path in (workspace.folder, inside, inside / "file")} == {uid}
    take_folder(workspace.folder)
    assert workspace.folder.stat().st_uid == os.geteuid()
    assert workspace.folder.stat().st_mode & 0o777 == 0o700
    workspace.remove()


@needs_root
def test_a_second_name_of_somebody_elses_file_and_a_links_target_are_not_given_away() -> None:
    workspace, theirs = Workspace(), Workspace()
    secret = theirs.folder / "secret"
    secret.write_text("x")
    (workspace.folder / "second-name").hardlink_to(secret)
    (workspace.folder / "link").symlink_to(secret)
    give_folder(workspace.folder, SLOT_UIDS[0])
    assert secret.stat().st_uid == os.geteuid()
    workspace.remove()
    theirs.remove()


@needs_root
def test_a_folder_that_its_user_could_not_enter_is_refused_in_a_sentence() -> None:
    closed = Workspace()
    inside = Workspace(closed.folder)
    with pytest.raises(PermissionError, match=f"chmod o\\+x {closed.folder}"):
        give_folder(inside.folder, SLOT_UIDS[0])
    inside.remove()
    closed.remove()
