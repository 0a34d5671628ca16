import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from agent.api_client.proxies import Proxy
from agent.self_test import Trial, TypeChecked
from agent.settings import Settings, read_settings
from contract.agent_api import UnavailableType
from contract.checks import CheckType
from contract.requests import IpFamily
from picket.__main__ import main
from picket.doctor.command import examine, find_unknown_settings
from picket.doctor.connection import check_clock, check_proxy, check_service
from picket.doctor.findings import Finding, Health
from picket.doctor.host import (
    check_data_folder,
    check_egress_rules,
    check_file_limit,
    check_memory,
    check_ping_port,
    check_ping_privilege,
    check_port,
    check_process_limit,
    check_temporary_folder,
)
from tests.builders.patience import LONG_S
from tests.builders.rights import can_ping
from tests.builders.scripts import runtimes_here
from tests.fakes.service import KEY, FakeService
from tests.servers.tcp import refusing_port

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def some_settings(**environ: str) -> Settings:
    needed = {"API_KEY": KEY, "SERVICE_URL": "http://127.0.0.1:9"}
    return read_settings(needed | environ)


LOOK_AS_NOBODY = """
import os, sys
from picket.doctor.host import check_data_folder
from agent.settings import read_settings
if os.getuid() == 0:
    os.setgroups([])
    os.setuid(65534)
needed = {"API_KEY": "pl_none", "SERVICE_URL": "http://127.0.0.1:9"}
print(check_data_folder(read_settings({**needed, "AGENT_DATA_DIR": sys.argv[1]})).seen)
"""


LOOK_WITH_ONE_TEMPORARY_FOLDER = """
import asyncio, tempfile
tempfile._candidate_tempdir_list = lambda: [{disk!r}]
from picket.doctor.command import examine
for one in asyncio.run(examine({environ})):
    print(one.health, one.what, one.seen)
"""


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.what: finding for finding in findings}


@pytest.fixture
def light(tmp_path: Path) -> dict[str, str]:
    """Of an agent without ports and scripts: to try these takes a browser."""
    return {"AGENT_HEALTH_PORT": "0", "HEARTBEAT_PORT": "0", "PICKET_RUNTIMES": str(tmp_path)}


@pytest.fixture(autouse=True)
def _far_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("picket.doctor.connection._LIMIT_S", LONG_S)


async def test_a_good_key_and_a_right_clock_are_ok() -> None:
    async with FakeService() as service:
        settings = some_settings(SERVICE_URL=service.url)
        found = by_name(await check_service(settings, None))
    assert found["key"].health is Health.OK
    assert found["clock"].health is Health.OK


async def test_a_refused_key_fails_without_being_shown() -> None:
    async with FakeService() as service:
        settings = some_settings(SERVICE_URL=service.url, API_KEY="pl_a_wrong_key")
        key = by_name(await check_service(settings, None))["key"]
    assert key.health is Health.FAIL
    assert "API_KEY_FILE" in key.fix
    assert "pl_a_wrong_key" not in key.line()


async def test_a_service_that_is_away_fails_with_its_cause() -> None:
    with refusing_port() as port:
        settings = some_settings(SERVICE_URL=f"http://127.0.0.1:{port}")
        (found,) = await check_service(settings, None)
    assert found.health is Health.FAIL
    assert found.seen == f"http://127.0.0.1:{port}: connection refused: nothing listens there"


async def test_a_proxy_that_is_away_is_not_told_as_the_services_fault() -> None:
    settings = read_settings({"API_KEY": "pl_key", "SERVICE_URL": "http://service.test"})
    with refusing_port() as port:
        proxy = Proxy(url=f"http://127.0.0.1:{port}")
        (found,) = await check_service(settings, proxy)
    assert found.seen == (
        "http://service.test: its proxy cannot be reached "
        "(connection refused: nothing listens there)"
    )
    assert found.fix == "check HTTPS_PROXY and HTTP_PROXY"


async def test_a_proxy_that_is_away_fails() -> None:
    with refusing_port() as port:
        found = await check_proxy(Proxy(url=f"http://127.0.0.1:{port}"))
    assert found.health is Health.FAIL
    assert f"127.0.0.1:{port}" in found.seen


@pytest.mark.parametrize(
    ("ahead_s", "health", "words"),
    [
        (0, Health.OK, "agrees"),
        (-4, Health.OK, "agrees"),
        (90, Health.WARN, "90 s ahead of"),
        (-90, Health.WARN, "90 s behind"),
    ],
)
def test_a_clock_that_is_off_is_a_warning(ahead_s: int, health: Health, words: str) -> None:
    ours = NOW + timedelta(seconds=ahead_s)
    found = check_clock(format_datetime(NOW, usegmt=True), asked=ours, now=ours)
    assert found.health is health
    assert words in found.seen


@pytest.mark.parametrize("told_after_s", [0, 15, 30])
def test_an_answer_that_took_long_is_no_skew(told_after_s: int) -> None:
    told = format_datetime(NOW + timedelta(seconds=told_after_s), usegmt=True)
    assert check_clock(told, asked=NOW, now=NOW + timedelta(seconds=30)).health is Health.OK


def test_a_service_without_a_clock_is_a_warning() -> None:
    assert check_clock("", asked=NOW, now=NOW).health is Health.WARN


@pytest.mark.skipif(not can_ping(), reason="this user may not send pings here")
async def test_this_host_may_ping() -> None:
    assert (await check_ping_privilege(IpFamily.IPV4)).health is Health.OK


def test_a_data_folder_that_can_be_made_is_ok(tmp_path: Path) -> None:
    settings = some_settings(AGENT_DATA_DIR=str(tmp_path / "a" / "b"), SPOOL_MAX_BYTES="1")
    assert check_data_folder(settings).health is Health.OK
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = check_data_folder(some_settings(AGENT_DATA_DIR=str(tmp_path / "file" / "data")))
    assert found.health is Health.WARN
    assert "AGENT_DATA_DIR" in found.fix


def test_a_folder_below_a_file_is_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    below = check_data_folder(some_settings(AGENT_DATA_DIR=str(file / "data")))
    assert below.seen.startswith(f"{file} is a file, so {file / 'data'} cannot be created;")
    itself = check_data_folder(some_settings(AGENT_DATA_DIR=str(file)))
    assert itself.seen.startswith(f"{file} is a file;")


def test_a_place_that_takes_no_files_is_a_warning() -> None:
    found = check_data_folder(some_settings(AGENT_DATA_DIR="/proc/picket"))
    assert found.health is Health.WARN
    assert found.seen.startswith("/proc/picket cannot be created: /proc accepts no files;")


def test_a_folder_that_this_user_may_not_look_into_is_a_warning(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "data").mkdir()
    closed.chmod(0)
    looking = subprocess.run(
        [sys.executable, "-c", LOOK_AS_NOBODY, str(closed / "data" / "more")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cannot be created: this user cannot write there" in looking.stdout, looking.stderr


BY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")


@contextmanager
def a_disk(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path) -> None:
    with suppress(OSError), (disk / "fill").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@BY_ROOT
def test_a_full_disk_of_the_data_folder_is_a_failure(tmp_path: Path) -> None:
    with a_disk(tmp_path / "disk", "256k") as disk:
        fill(disk)
        found = check_data_folder(some_settings(AGENT_DATA_DIR=str(disk)))
    assert found.health is Health.FAIL
    assert found.seen.startswith(f"{disk} cannot be written: the disk is full;")
    assert found.fix == "free some space there, or set AGENT_DATA_DIR to another folder"


@BY_ROOT
def test_a_read_only_disk_of_the_data_folder_is_a_failure(tmp_path: Path) -> None:
    with a_disk(tmp_path / "disk", "256k") as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        found = check_data_folder(some_settings(AGENT_DATA_DIR=str(disk / "data")))
    assert found.health is Health.FAIL
    assert found.seen.startswith(
        f"{disk / 'data'} cannot be created: the file system is read-only;"
    )
    assert found.fix.startswith("remount it read-write, or set AGENT_DATA_DIR")


@BY_ROOT
def test_a_full_folder_for_temporary_files_is_a_failure(tmp_path: Path) -> None:
    with a_disk(tmp_path / "disk", "256k") as disk:
        fill(disk)
        found = check_temporary_folder(str(disk))
    assert found.health is Health.FAIL
    assert found.seen == f"{disk} cannot be written: the disk is full"
    assert found.fix == "free some space there, or set TMPDIR to another folder"


@BY_ROOT
def test_a_machine_whose_only_folder_for_temporary_files_is_full_is_still_looked_over(
    tmp_path: Path, light: dict[str, str]
) -> None:
    with a_disk(tmp_path / "disk", "256k") as disk:
        fill(disk)
        program = LOOK_WITH_ONE_TEMPORARY_FOLDER.format(environ=light, disk=str(disk))
        looking = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
    assert "fail temporary files" in looking.stdout, looking.stderr
    assert "ok URL checks" in looking.stdout


def test_a_folder_for_temporary_files_that_takes_files_is_ok(tmp_path: Path) -> None:
    assert check_temporary_folder(str(tmp_path)).health is Health.OK
    missing = check_temporary_folder(str(tmp_path / "none"))
    assert missing.health is Health.FAIL
    assert missing.seen == f"{tmp_path / 'none'} is missing"


@pytest.mark.parametrize(
    ("deny", "health"),
    [
        ("", Health.OK),
        ("10.0.0.0/8", Health.OK),
        ("::/0", Health.WARN),
        ("0.0.0.0/0", Health.WARN),
        ("0.0.0.0/0,::/0", Health.FAIL),
        ("*", Health.FAIL),
    ],
)
def test_rules_that_leave_nothing_to_reach_are_a_failure(deny: str, health: Health) -> None:
    assert check_egress_rules(some_settings(EGRESS_DENY=deny)).health is health


def test_more_browsers_at_once_than_fit_into_memory_are_a_warning() -> None:
    settings = some_settings(JOB_CONCURRENCY="4")
    found = check_memory(settings, free_bytes=3_100_000_000)
    assert found.health is Health.WARN
    assert found.seen == (
        "3.1 GB free, room for 2 browsers at once (1.5 GB each); JOB_CONCURRENCY is 4"
    )
    assert found.fix == "set JOB_CONCURRENCY to 2, or give the agent more memory"
    assert check_memory(settings, free_bytes=6_000_000_000).health is Health.OK


def test_too_few_processes_for_the_browsers_are_a_warning_with_a_number_that_fits(
    tmp_path: Path,
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text("0::/agents/ours\n")
    above, ours = tmp_path / "agents", tmp_path / "agents/ours"
    ours.mkdir(parents=True)
    for folder, limit in ((above, "400"), (ours, "max")):
        (folder / "pids.max").write_text(f"{limit}\n")
        (folder / "pids.current").write_text("100\n")
    settings = some_settings(JOB_CONCURRENCY="4")
    found = check_process_limit(settings, proc=tmp_path, cgroup=tmp_path)
    assert found.health is Health.WARN
    assert found.seen.startswith(f"pids.max of {above} leaves 300, ")
    assert found.fix == "raise it, or set JOB_CONCURRENCY to 2"
    (above / "pids.max").write_text("max\n")
    assert check_process_limit(settings, proc=tmp_path, cgroup=tmp_path).health is Health.OK


def test_too_little_space_is_a_warning(tmp_path: Path) -> None:
    found = check_data_folder(some_settings(AGENT_DATA_DIR=str(tmp_path), SPOOL_MAX_BYTES="900TiB"))
    assert found.health is Health.WARN


@pytest.fixture
def few_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_files")
def test_too_few_open_files_are_a_warning_with_a_number_that_fits() -> None:
    found = check_file_limit(some_settings(UPTIME_CONCURRENCY="256"))
    assert found.health is Health.WARN
    assert "UPTIME_CONCURRENCY to 64" in found.fix
    assert check_file_limit(some_settings(UPTIME_CONCURRENCY="64")).health is Health.OK


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_taken_port_is_a_warning(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as taken:
        found = check_port("HEARTBEAT_PORT", taken.getsockname()[1])
    assert found.health is Health.WARN
    assert check_port("HEARTBEAT_PORT", 0).health is Health.OK


def test_two_settings_of_one_port_are_a_failure() -> None:
    found = check_ping_port(some_settings(AGENT_HEALTH_PORT="1", HEARTBEAT_PORT="1"))
    assert found.health is Health.FAIL
    assert found.seen == "port 1 is also AGENT_HEALTH_PORT"


def test_the_same_port_of_two_addresses_is_no_failure() -> None:
    hosts = {"AGENT_HEALTH_HOST": "127.0.0.1", "HEARTBEAT_HOST": "127.0.0.2"}
    found = check_ping_port(some_settings(AGENT_HEALTH_PORT="1", HEARTBEAT_PORT="1", **hosts))
    assert found.seen != "port 1 is also AGENT_HEALTH_PORT"


def test_an_address_of_another_machine_is_a_failure() -> None:
    found = check_port("HEARTBEAT_PORT", 18_082, host="192.0.2.1")
    assert found.health is Health.FAIL
    assert found.seen == "HEARTBEAT_HOST is 192.0.2.1, but this machine does not have the address"
    assert found.fix == "use an address of this machine, as in 127.0.0.1"


async def test_every_wrong_setting_is_a_finding_and_the_rest_is_still_looked_at(
    light: dict[str, str],
) -> None:
    findings = await examine({**light, "AGENT_HEALTH_PORT": "99999"})
    wrong = [each.seen for each in findings if each.what == "settings"]
    assert wrong == ["API_KEY is not set", "SERVICE_URL is not set", "AGENT_HEALTH_PORT is 99999"]
    found = by_name(findings)
    assert found["URL checks"].health is Health.OK
    skipped = {each.what: each.seen for each in findings if each.health is Health.SKIP}
    needed = "not checked until API_KEY and SERVICE_URL are right"
    url, port = (
        "not checked until SERVICE_URL is right",
        "not checked until AGENT_HEALTH_PORT is right",
    )
    assert skipped == {
        "service's name": url,
        "proxy": url,
        "key": needed,
        "clock": needed,
        "AGENT_HEALTH_PORT": port,
        "HEARTBEAT_PORT": port,
    }


@pytest.mark.parametrize(
    ("name", "value", "skipped"),
    [
        ("EGRESS_ALLOW", "10.0.0.0/99", {"egress"}),
        ("EGRESS_DENY", "10.0.0.0/99", {"egress"}),
        ("JOB_CONCURRENCY", "lots", {"memory", "processes"}),
        ("UPTIME_CONCURRENCY", "lots", {"open files"}),
        ("SPOOL_MAX_BYTES", "lots", {"data directory"}),
        ("HEARTBEAT_PORT", "99999", {"HEARTBEAT_PORT"}),
        ("USE_OS_DNS_RESOLVER", "perhaps", {"service's name"}),
        ("HTTPS_PROXY", "http://[", {"proxy", "key", "clock"}),
    ],
)
async def test_nothing_is_said_of_the_default_behind_a_wrong_setting(
    light: dict[str, str], name: str, value: str, skipped: set[str]
) -> None:
    needed = {"API_KEY": KEY, "SERVICE_URL": "http://127.0.0.1:9"}
    findings = await examine({**light, **needed, name: value})
    rest = [each for each in findings if each.what != "settings"]
    assert {each.what for each in rest if each.health is Health.SKIP} == skipped
    looked_at = [each.line() for each in rest if each.health is Health.OK]
    assert not [line for line in looked_at if name in line]


async def test_types_that_need_a_wrong_setting_are_not_tried(light: dict[str, str]) -> None:
    found = by_name(await examine({**light, "EXTRA_CA_CERTS": "/nonexistent.pem"}))
    assert found["URL checks"].health is Health.OK
    scripted = ("BROWSER checks", "MULTI_STEP checks", "PLAYWRIGHT checks")
    assert {found[one].seen for one in scripted} == {"not checked until EXTRA_CA_CERTS is right"}


async def test_a_key_in_a_file_does_not_hide_another_wrong_setting(
    light: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("pl_none")
    environ = {**light, "API_KEY_FILE": str(tmp_path / "key"), "JOB_CONCURRENCY": "x"}
    wrong = [each.seen for each in await examine(environ) if each.what == "settings"]
    assert wrong == ["SERVICE_URL is not set", "JOB_CONCURRENCY is x"]


async def test_missing_roots_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent.pem")
    roots = by_name(await examine({"AGENT_HEALTH_PORT": "0", "HEARTBEAT_PORT": "0"}))["roots"]
    assert roots.health is Health.FAIL
    assert roots.seen == "SSL_CERT_FILE is /nonexistent.pem, which is not a file"
    assert "ca-certificates" in roots.fix


async def test_a_bundle_without_certificates_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/passwd")
    roots = by_name(await examine({"AGENT_HEALTH_PORT": "0", "HEARTBEAT_PORT": "0"}))["roots"]
    assert roots.seen == "/etc/passwd has no readable certificates"


async def test_a_rule_that_is_none_is_told_apart_from_its_mend(light: dict[str, str]) -> None:
    findings = await examine({**light, "EGRESS_DENY": "10.0.0.0/99"})
    found = findings[2]
    assert found.seen == "EGRESS_DENY has the rule '10.0.0.0/99'"
    assert found.fix.startswith("write a network")


def test_a_misspelt_setting_is_a_warning_with_the_nearest_name() -> None:
    settings = some_settings(AGENT_HEALTH_PROT="what-nobody-reads")
    (found,) = find_unknown_settings(settings)
    assert found.health is Health.WARN
    assert found.seen == "AGENT_HEALTH_PROT is not a setting"
    assert found.fix == "did you mean AGENT_HEALTH_PORT?"


async def test_secrets_that_cannot_be_hidden_are_a_warning(light: dict[str, str]) -> None:
    findings = await examine(
        {**light, "SERVICE_SECRET_PIN": "q7z", "SERVICE_SECRET_DB": "long-enough"}
    )
    (found,) = [each for each in findings if each.what == "secrets"]
    assert found.health is Health.WARN
    assert "SERVICE_SECRET_PIN" in found.seen
    assert "q7z" not in found.line()


def test_the_command_ends_with_2_when_a_setting_is_wrong(
    light: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("API_KEY", raising=False)
    monkeypatch.setenv("PICKET_RUNTIMES", light["PICKET_RUNTIMES"])
    assert main(["doctor", "--json"]) == 2
    findings = json.loads(capsys.readouterr().out)
    assert {"health", "what", "seen", "fix"} == set(findings[0])
    assert main(["doctor"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("fail  settings")
    assert "  fix: use the key of a private location" in lines[0]


@BY_ROOT
async def test_runtimes_that_the_users_of_runs_cannot_enter_are_a_failure(
    tmp_path: Path, light: dict[str, str]
) -> None:
    closed = linked_runtime(tmp_path / "closed")
    found = by_name(await examine({**light, "PICKET_RUNTIMES": str(closed)}))["MULTI_STEP checks"]
    assert found.health is Health.FAIL
    assert "cannot run here: the users that scripts run as (60600 to 60799) cannot enter " in (
        found.seen
    )
    assert found.fix.startswith("run `chmod o+x /")


def linked_runtime(folder: Path) -> Path:
    """A folder that only root can enter, with links to an installed runtime."""
    runtime = next(iter(runtimes_here().by_id.values()))
    installed = runtime.node.parents[1]
    (folder / runtime.id).mkdir(parents=True)
    folder.chmod(0o700)
    for path in installed.iterdir():
        (folder / runtime.id / path.name).symlink_to(path)
    return folder


def test_the_command_ends_with_1_when_something_else_fails(
    light: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**light, "EGRESS_DENY": "*"}.items():
        monkeypatch.setenv(name, value)
    with refusing_port() as port:
        monkeypatch.setenv("SERVICE_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("API_KEY", KEY)
        assert main(["doctor"]) == 1
    assert "EGRESS_DENY denies everything" in capsys.readouterr().out


async def test_a_check_that_is_late_on_a_busy_machine_is_no_failure(
    light: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    why = UnavailableType(type=CheckType.URL, cause="the machine is busy", remedy="wait")
    trial = Trial(check_type=CheckType.URL)

    async def late(*_args: object, **_named: object) -> tuple[TypeChecked, ...]:
        return (TypeChecked(trial=trial, unavailable=why, is_busy=True, took_ms=1),)

    monkeypatch.setattr("picket.doctor.command.boot_check", late)
    found = by_name(await examine(light))["URL checks"]
    assert found.health is Health.WARN
    assert found.seen == "cannot run here: the machine is busy"


async def test_the_command_ends_with_3_when_the_key_is_refused(
    light: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PICKET_RUNTIMES", light["PICKET_RUNTIMES"])
    async with FakeService() as service:
        monkeypatch.setenv("SERVICE_URL", service.url)
        monkeypatch.setenv("API_KEY", "pl_a_wrong_key")
        assert await asyncio.to_thread(main, ["doctor"]) == 3
    assert "refuses API_KEY" in capsys.readouterr().out


async def test_types_that_a_machine_lacks_something_for_are_warned_of(
    light: dict[str, str],
) -> None:
    found = by_name(await examine(light))
    assert found["BROWSER checks"].health is Health.WARN
    assert found["BROWSER checks"].seen.startswith("cannot run here: there is no Node runtime")
    assert found["API checks with scripts"].health is Health.WARN
    assert found["URL checks"].health is Health.OK
