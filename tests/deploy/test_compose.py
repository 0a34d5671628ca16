"""The compose file starts what the images are, with settings that the programs have."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

import agent.settings
import service.settings
from agent.settings import BadSettingsError
from tests.deploy.dockerfile import ROOT, read_stages

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
REPLICAS = yaml.safe_load((ROOT / "compose.postgresql.yaml").read_text())
KEYS = "/var/lib/picket-keys"
KEY_FILE = f"{KEYS}/location"
READERS: dict[str, Callable[[Mapping[str, str]], object]] = {
    "agent": agent.settings.read_settings,
    "full-agent": agent.settings.read_settings,
    "service": service.settings.read_settings,
}


class Asked(Mapping[str, str]):
    """An empty environment that remembers which names it was asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def mounts(name: str) -> dict[str, str]:
    """Where each volume is mounted, by the place."""
    parts = [volume.split(":") for volume in SERVICES[name]["volumes"]]
    return {part[1]: part[0] for part in parts}


@pytest.mark.parametrize("name", READERS)
def test_each_variable_is_a_setting_of_the_program(name: str) -> None:
    asked = Asked()
    with suppress(BadSettingsError):  # an agent needs some
        READERS[name](asked)
    assert set(SERVICES[name]["environment"]) <= asked.names


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_is_built_from_a_file_of_ours(name: str) -> None:
    build = SERVICES[name]["build"]
    (here,) = [one for one in SERVICES.values() if one["image"] == SERVICES[name]["image"]][:1]
    assert (ROOT / build["dockerfile"]).is_file()
    assert here["build"] == build


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_has_a_read_only_root_and_no_capability_it_began_with(name: str) -> None:
    container = SERVICES[name]
    assert container["read_only"] is True
    assert [place.partition(":")[0] for place in container["tmpfs"]] == ["/tmp"]
    assert container["cap_drop"] == ["ALL"]
    assert ("cap_add" in container) == (name == "full-agent")
    assert container["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_fork_bomb_in_a_container_leaves_the_host_its_processes(name: str) -> None:
    """As user 10001 nothing else stops one: 32,270 processes were seen."""
    assert SERVICES[name]["pids_limit"] == (4096 if name == "full-agent" else 256)


@pytest.mark.parametrize("name", SERVICES)
def test_all_see_the_key_in_the_same_volume_and_only_its_maker_can_write(name: str) -> None:
    folder = str(Path(KEY_FILE).parent)
    assert mounts(name)[folder] == "keys"
    read_only = f"keys:{folder}:ro" in SERVICES[name]["volumes"]
    assert read_only == (name != "first-key")


def test_the_key_is_made_before_it_is_read_and_where_it_is_read() -> None:
    made = SERVICES["first-key"]
    assert f"{made['entrypoint'][-1]}/{made['command'][0]}" == KEY_FILE
    assert SERVICES["service"]["environment"]["FIRST_LOCATION_KEY_FILE"] == KEY_FILE
    assert SERVICES["agent"]["environment"]["API_KEY_FILE"] == KEY_FILE
    assert SERVICES["service"]["depends_on"] == {
        "first-key": {"condition": "service_completed_successfully"}
    }
    assert SERVICES["agent"]["depends_on"] == ["service"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_volume_is_mounted_where_the_image_made_a_folder_for_its_user(name: str) -> None:
    final = read_stages(ROOT / SERVICES[name]["build"]["dockerfile"])[-1]
    made = {word for one in final.all("RUN") for word in one.words}
    writable = {place for place in mounts(name) if f"{place}:ro" not in str(SERVICES[name])}
    assert writable
    assert writable <= made


def test_each_program_keeps_its_data_in_a_volume_of_its_own() -> None:
    own = {"API_KEY": "pl_" + "x" * 43, "SERVICE_URL": "http://service:8080"}
    assert mounts("agent")[str(agent.settings.read_settings(own).data_dir)] == "agent-data"
    final = read_stages(ROOT / "Dockerfile.service")[-1]
    assert mounts("service")[final.environment["SERVICE_DATA_DIR"]] == "service-data"
    assert set(COMPOSE["volumes"]) == {"agent-data", "full-agent-data", "service-data", "keys"}


def test_the_agent_is_told_the_services_own_name_and_port() -> None:
    address = urlsplit(SERVICES["agent"]["environment"]["SERVICE_URL"])
    assert address.hostname in SERVICES
    assert address.port == service.settings.Settings().port


def test_the_full_agent_is_started_as_the_light_one_and_only_where_it_is_asked_for() -> None:
    light, full = SERVICES["agent"], SERVICES["full-agent"]
    assert {key for key in light if light[key] != full[key]} == {
        *("image", "build", "tmpfs", "volumes", "pids_limit")
    }
    assert set(full) - set(light) == {"profiles", "user", "cap_add", "mem_limit"}
    assert full["profiles"] == ["scripts"]


def test_packages_may_be_started_as_programs_and_no_script_fills_the_memory_with_files() -> None:
    assert SERVICES["full-agent"]["tmpfs"] == ["/tmp:exec,size=2g"]


def test_agents_of_different_users_keep_what_they_leave_behind_apart() -> None:
    data_dir = "/var/lib/picket"
    assert mounts("agent")[data_dir] == "agent-data"
    assert mounts("full-agent")[data_dir] == "full-agent-data"


def test_the_service_is_published_on_this_host_only() -> None:
    settings = service.settings.Settings()
    ports = (settings.port, settings.trace_viewer_port)
    assert SERVICES["service"]["ports"] == [f"127.0.0.1:{port}:{port}" for port in ports]


def test_the_agent_is_given_more_time_to_stop_than_it_takes() -> None:
    given_s = int(SERVICES["agent"]["stop_grace_period"].removesuffix("s"))
    own = {"API_KEY": "pl_" + "x" * 43, "SERVICE_URL": "http://service:8080"}
    assert given_s > agent.settings.read_settings(own).shutdown_grace_s


def extended(name: str) -> dict[str, Any]:
    """A container of the second file, with what it takes from the first."""
    own = REPLICAS["services"][name]
    base = SERVICES[own["extends"]["service"]] if "extends" in own else {}
    volumes = [*base.get("volumes", []), *own.get("volumes", [])]
    return {**base, **own, "volumes": volumes}


SECOND = {name: extended(name) for name in REPLICAS["services"]}
OURS = ["service", "second-service"]


@pytest.mark.parametrize("name", SECOND)
def test_a_container_beside_postgresql_is_as_hardened_as_one_without(name: str) -> None:
    for rule in ("read_only", "cap_drop", "security_opt"):
        assert SECOND[name][rule] == SERVICES["service"][rule]
    assert SECOND[name]["pids_limit"] == (4096 if name == "full-agent" else 256)
    declared = {volume.partition(":")[0] for volume in SECOND[name]["volumes"]}
    assert declared <= set(REPLICAS["volumes"])
    assert set(SECOND[name].get("depends_on", ())) <= set(SECOND)


@pytest.mark.parametrize("name", OURS)
def test_two_services_share_their_database_and_their_keys_and_no_folder(
    tmp_path: Path, name: str
) -> None:
    container = SECOND[name]
    asked = Asked()
    service.settings.read_settings(asked)
    assert set(container["environment"]) <= {f"{setting}_FILE" for setting in asked.names}
    make_secrets(tmp_path, *REPLICAS["services"]["first-secrets"]["command"])
    assert all(Path(file).parent == Path(KEYS) for file in container["environment"].values())
    here = {
        setting: str(tmp_path / Path(file).name)
        for setting, file in container["environment"].items()
    }
    settings = service.settings.read_settings(here)
    assert isinstance(settings.database, service.settings.PostgresUrl)
    address = urlsplit(settings.database.value)
    assert address.hostname in SECOND
    assert address.username == SECOND["postgresql"]["environment"]["POSTGRES_USER"]
    password = SECOND["postgresql"]["environment"]["POSTGRES_PASSWORD_FILE"]
    assert address.password == (tmp_path / Path(password).name).read_text()
    assert settings.key_pepper
    assert settings.master_keys
    other = SECOND[next(one for one in OURS if one != name)]
    assert set(container["volumes"]) & set(other["volumes"]) == {f"keys:{KEYS}:ro"}
    assert container["environment"] == other["environment"]


def test_agents_find_both_services_by_one_name_and_cannot_reach_the_database() -> None:
    address = urlsplit(SECOND["agent"]["environment"]["SERVICE_URL"])
    assert SECOND["second-service"]["networks"]["default"]["aliases"] == [address.hostname]
    assert SECOND["postgresql"]["networks"] == ["database"]
    assert REPLICAS["networks"]["database"]["internal"] is True
    for name in ("agent", "full-agent"):
        assert "networks" not in SECOND[name]
    assert SECOND["agent"]["deploy"]["replicas"] > 1


def test_the_services_are_published_on_two_ports_of_this_host_only() -> None:
    ports = [port for name in OURS for port in SECOND[name]["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports)


def make_secrets(folder: Path, *names: str, data_dir: Path | None = None) -> None:
    command = (sys.executable, str(ROOT / "deploy/first_secrets.py"), str(folder), *names)
    kept = {} if data_dir is None else {"SERVICE_DATA_DIR": str(data_dir)}
    subprocess.run(command, check=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT), **kept})


def make_key(folder: Path) -> str:
    make_secrets(folder, "location")
    return (folder / "location").read_text()


def test_a_first_key_is_taken_by_both_programs(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    environ = {"FIRST_LOCATION_KEY_FILE": str(tmp_path / "location")}
    assert service.settings.read_settings(environ).first_location_key == key
    environ = {"API_KEY_FILE": str(tmp_path / "location"), "SERVICE_URL": "http://service:8080"}
    assert agent.settings.read_settings(environ).api_key == key


def test_a_first_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    assert make_key(tmp_path) == key
    assert (tmp_path / "location").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["location"]


def test_the_server_of_the_database_can_read_its_password_and_no_other_secret(
    tmp_path: Path,
) -> None:
    make_secrets(tmp_path, *REPLICAS["services"]["first-secrets"]["command"])
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes.pop("database-password") == 0o640
    assert set(modes.values()) == {0o600}
    assert tmp_path.stat().st_mode & 0o777 == 0o710
    assert SECOND["postgresql"]["group_add"] == [read_uid()]


def test_a_service_that_moves_keeps_its_pepper_and_its_master_key(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    (old / "key-pepper").write_text("p" * 40)
    (old / "master-key").write_text("ab" * 32 + "\n")
    make_secrets(new, "key-pepper", "master-key", data_dir=old)
    assert (new / "key-pepper").read_text() == "p" * 40
    assert (new / "master-key").read_text() == "ab" * 32


def read_uid() -> str:
    """The group of the services, as their image has it."""
    final = read_stages(ROOT / "Dockerfile.service")[-1]
    return final.only("USER").text.rpartition(":")[2]
