import os
import stat
from pathlib import Path

import pytest

from picket.errors import CommandError
from picket.up import data_dir
from picket.up.addresses import Addresses
from picket.up.data_dir import open_data_dir
from picket.up.demo_target import DemoPorts, make_certificate
from sandbox.users import find_impassable_parent


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_are_made_once_and_kept_for_their_owner_alone(tmp_path: Path) -> None:
    keys = set()
    for _ in range(2):
        with open_data_dir(tmp_path / "data", fresh=False) as folder:
            folder.make_keys()
            keys.add((folder.api_key(), folder.location_key_file.read_text()))
            assert mode(folder.api_key_file) == mode(folder.location_key_file) == 0o600
    ((api_key, location_key),) = keys
    assert api_key.startswith("cu_")
    assert location_key.startswith("pl_")


def test_users_that_scripts_run_as_come_to_their_packages_and_to_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    with open_data_dir(data, fresh=False) as folder:
        folder.logs.chmod(0o755)  # by somebody, meanwhile
    for has_users, passed in ((True, 0o711), (False, 0o700)):
        monkeypatch.setattr(data_dir, "can_have_own_users", lambda has_users=has_users: has_users)
        with open_data_dir(data, fresh=False) as folder:
            folder.make_keys()
            make_certificate(data, host="127.0.0.1")
            shut = find_impassable_parent(folder.agent / "packages")
            assert (shut is None or not shut.is_relative_to(data)) == has_users
            assert mode(folder.path) == mode(folder.agent) == passed
        open_to_others = {path.name for path in data.iterdir() if mode(path) & 0o077}
        assert open_to_others <= {"agent", "demo-authority.pem", "picket-up.json"}


def test_ports_outlive_a_start_and_a_fresh_one(tmp_path: Path) -> None:
    ports = DemoPorts(http=1, https=2, echo=3, dns=4)
    with open_data_dir(tmp_path / "data", fresh=False) as folder:
        assert folder.demo_ports() == DemoPorts()
        folder.keep_demo_ports(ports)
    with open_data_dir(tmp_path / "data", fresh=True) as folder:
        assert folder.demo_ports() == ports


def test_the_addresses_outlive_a_start_and_a_fresh_one(tmp_path: Path) -> None:
    kept = Addresses(service_url="http://127.0.0.1:8123", ping_url="http://127.0.0.1:9123")
    with open_data_dir(tmp_path / "data", fresh=False) as folder:
        assert folder.addresses() == Addresses()
        folder.keep_addresses(kept)
    with open_data_dir(tmp_path / "data", fresh=True) as folder:
        assert folder.service_url() == "http://127.0.0.1:8123"
        assert folder.addresses() == kept
    assert (kept.service_port, kept.ping_port) == (8123, 9123)


@pytest.mark.parametrize("kept", ["", "8080", "http://127.0.0.1:99999", "http://127.0.0.1:0"])
def test_an_address_that_cannot_be_is_forgotten(tmp_path: Path, kept: str) -> None:
    with open_data_dir(tmp_path / "data", fresh=False) as folder:
        folder.service_url_file.write_text(kept)
        folder.ping_url_file.write_text(kept)
        assert folder.addresses() == Addresses()


@pytest.mark.parametrize("kept", ['{"http": 99999}', '{"dns": -1}', "[]", ""])
def test_ports_that_cannot_be_are_forgotten(tmp_path: Path, kept: str) -> None:
    with open_data_dir(tmp_path, fresh=False):
        pass
    (tmp_path / "picket-up.json").write_text(kept)
    with open_data_dir(tmp_path, fresh=False) as folder:
        assert folder.demo_ports() == DemoPorts()


def test_fresh_empties_the_folder(tmp_path: Path) -> None:
    with open_data_dir(tmp_path / "data", fresh=False) as folder:
        folder.make_keys()
        (folder.service / "picket.db").touch()
        before = folder.api_key()
    with open_data_dir(tmp_path / "data", fresh=True) as folder:
        assert list(folder.service.iterdir()) == []
        folder.make_keys()
        assert folder.api_key() != before


@pytest.mark.parametrize("fresh", [True, False])
def test_somebody_elses_folder_is_left_alone(tmp_path: Path, *, fresh: bool) -> None:
    (tmp_path / "letters").write_text("dear")
    before = mode(tmp_path)
    with (
        pytest.raises(CommandError, match="not a folder of `picket up`; use another --data-dir"),
        open_data_dir(tmp_path, fresh=fresh),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]
    assert mode(tmp_path) == before


def test_two_starts_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        open_data_dir(tmp_path, fresh=False),
        pytest.raises(CommandError, match=rf"`picket up` \(process {os.getpid()}\) uses .*ARGS="),
        open_data_dir(tmp_path, fresh=False),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_said_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(CommandError, match=r"file/data cannot be used: Not a directory"),
        open_data_dir(tmp_path / "file" / "data", fresh=False),
    ):
        pass
