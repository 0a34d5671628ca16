"""`picket up` as a person starts it: a real process, in a folder of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from contract.checks import CheckType
from picket.api_client import PublicApi
from picket.check_file.load import parse
from picket.up.demo_target import DemoPorts
from picket.up.starter_checks import starter_checks
from tests.builders.patience import eventually
from tests.builders.rights import can_ping

CHECKS = sum(
    check.kind is not CheckType.ICMP or can_ping()
    for check in starter_checks(DemoPorts(), location="default")
)
LIMIT_S = 120.0
LISTENING = "0A"
"""The state of a listening socket in the system's tables."""
LOOKS = {"PASSED", "DEGRADED", "FAILED"}
"""What each look at the target ends as, on a machine that goes on."""


class Up:
    """A running `picket up`; `light` is one without scripts, whose set-up takes half of a start."""

    def __init__(self, folder: Path, *options: str, light: bool = False) -> None:
        self.data = folder / "data"
        self._out = folder / "out.txt"
        self._err = folder / "err.txt"
        command = [sys.executable, "-m", "picket", "up", "--data-dir", str(self.data), *options]
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                command,
                env=without_scripts(folder) if light else None,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def results(self) -> list[str]:
        return re.findall(r"^\d\d:\d\d:\d\d  .*$", self.out, re.MULTILINE)

    def wait(self) -> int:
        return self.process.wait(LIMIT_S)

    def until_results(self, count: int) -> None:
        deadline = time.monotonic() + LIMIT_S
        while len(self.results()) < count:
            assert self.process.poll() is None, self.err
            assert time.monotonic() < deadline, self.out + self.err
            time.sleep(0.1)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.wait()

    def api(self) -> PublicApi:
        url = re.search(r"^API +(http://\S+)/v1", self.out, re.MULTILINE)
        assert url is not None, self.out
        return PublicApi(url[1], (self.data / "api-key").read_text())

    def children(self, module: str = "") -> list[int]:
        """Processes that were started with settings that name our folder."""
        return [
            int(process.name)
            for process in Path("/proc").glob("[0-9]*")
            if _is_of(self.data, process) and module.encode() in _read(process / "cmdline")
        ]


def listening_addresses(processes: list[int]) -> set[str]:
    """Where these processes listen by TCP, as the system has it."""
    inodes = {
        target.removeprefix("socket:[").removesuffix("]")
        for process in processes
        for link in Path(f"/proc/{process}/fd").glob("*")
        if (target := _link(link)).startswith("socket:[")
    }
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in inodes:
                words = bytes.fromhex(fields[1].partition(":")[0])
                parts = [words[at : at + 4][::-1] for at in range(0, len(words), 4)]
                found.add(socket.inet_ntop(family, b"".join(parts)))
    return found


def _link(file: Path) -> str:
    with suppress(OSError):
        return str(file.readlink())
    return ""


def without_scripts(folder: Path) -> dict[str, str]:
    """The environment of a machine that has no runtime."""
    empty = folder / "no-runtimes"
    empty.mkdir(exist_ok=True)
    return os.environ | {"PICKET_RUNTIMES": str(empty)}


def _is_of(data: Path, process: Path) -> bool:
    return str(data).encode() in _read(process / "environ")


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except (OSError, ProcessLookupError):
        return b""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose processes are gone afterwards, however the test ended."""
    yield tmp_path
    for process in Path("/proc").glob("[0-9]*"):
        named = _read(process / "environ") + _read(process / "cmdline")
        if str(tmp_path).encode() in named and int(process.name) != os.getpid():
            with suppress(ProcessLookupError):  # it ended by itself
                os.kill(int(process.name), signal.SIGKILL)


def until_30_results(folder: Path) -> Up:
    folder.mkdir()
    up = Up(folder, "--until-results", "30")
    assert up.wait() == 0, up.out + up.err
    return up


def statuses(up: Up) -> set[str]:
    return {line.split()[1] for line in up.results()}


@pytest.mark.timeout(600)
def test_results_of_all_six_types_come_and_it_ends_by_itself(folder: Path) -> None:
    for attempt in ("first", "second", "third"):
        up = until_30_results(folder / attempt)
        # On a machine that stands still runs are late, and then it is right to say so.
        if statuses(up) <= LOOKS:
            break
    assert statuses(up) == LOOKS
    assert up.err == ""
    assert len(up.results()) >= 30
    summary = up.out.rpartition("type ")[2]
    for kind in ("URL", "API", "TCP", "DNS", "ICMP", "HEARTBEAT"):
        assert CheckType(kind) in summary
    assert re.search(r"\d+ results: \d+ good, \d+ failed, none missed", summary)
    assert up.children() == []


def test_types_that_cannot_run_are_named_above_the_results_and_below_the_summary(
    folder: Path,
) -> None:
    up = Up(folder, "--until-results", "20", light=True)
    assert up.wait() == 0, up.out + up.err
    above, _, below = up.out.partition("\ntype ")
    for what in ("API checks with scripts", "BROWSER checks", "MULTI_STEP checks"):
        line = (
            f"{what} cannot run here: there is no Node runtime for scripts on this machine; "
            "run `picket setup`, then restart the agent."
        )
        assert above.splitlines().count(line) == 1
        assert below.splitlines().count(line) == 1
        assert line in (folder / "data/logs/agent.log").read_text()
    assert not any(line.split()[2] in {"BROWSER", "MULTI_STEP"} for line in up.results())


async def test_a_second_start_creates_nothing_twice_and_deactivates_nothing(folder: Path) -> None:
    keys, said, active = set(), 0, set[str]()
    for number in (signal.SIGINT, signal.SIGTERM):
        were_active, up = active, Up(folder)
        up.until_results(1)
        async with up.api() as api:
            checks = await api.checks()
        assert len(checks) == CHECKS
        active = {check.id for check in checks if check.fields["activated"]}
        for check in checks:
            assert parse(json.dumps(check.fields), "pasted.json").name == check.name
        keys.add((up.data / "api-key").read_text())
        assert up.stop(number) == 0, up.err
        assert up.children() == []
        assert "results:" in up.out
        log = (up.data / "logs/service.log").read_text()
        lines, said = log[said:].splitlines(), len(log)
    assert len(keys) == 1
    changed = {json.loads(line)["resource_id"] for line in lines if '"activated"' in line}
    # What the agent had not tested yet when the first start ended is activated by the second.
    assert not changed & were_active


@pytest.mark.parametrize("module", ["service", "agent"])
def test_the_death_of_a_part_ends_it_with_the_end_of_its_log(module: str, folder: Path) -> None:
    up = Up(folder, "--until-results", "1000", light=True)
    up.until_results(1)
    for child in up.children(f"-m\0{module}"):
        os.kill(child, signal.SIGKILL)
    assert up.wait() == 70
    assert f"the {module} was killed (SIGKILL; perhaps the machine was out of memory)" in up.err
    assert str(up.data / "logs" / f"{module}.log") in up.err
    assert "Traceback" not in up.err
    assert up.children() == []


def test_a_reader_that_has_enough_ends_it_without_a_word(folder: Path) -> None:
    data, err = folder / "data", folder / "err.txt"
    command = [sys.executable, "-m", "picket", "up", "--data-dir", str(data)]
    with err.open("w") as said:
        up = subprocess.Popen(
            command, env=without_scripts(folder), stdout=subprocess.PIPE, stderr=said, text=True
        )
        assert up.stdout is not None
        assert up.stdout.readline().startswith("starting")
        assert up.stdout.readline().startswith("API")
        up.stdout.close()
        assert up.wait(LIMIT_S) == 70
    assert err.read_text() == ""
    assert not [process for process in Path("/proc").glob("[0-9]*") if _is_of(data, process)]


def test_a_lost_key_is_said_with_the_way_out(folder: Path) -> None:
    assert Up(folder, "--until-results", "1", light=True).wait() == 0
    (folder / "data" / "api-key").unlink()
    up = Up(folder, "--until-results", "1", light=True)
    assert up.wait() == 3
    assert "start over with --fresh" in up.err
    assert up.children() == []


def test_silence_ends_it_when_results_are_wanted(folder: Path) -> None:
    up = Up(folder, "--until-results", "1000", "--patience", "3", light=True)
    eventually(lambda: up.results() or up.process.poll() is not None)
    for child in up.children("-m\0agent"):
        os.kill(child, signal.SIGSTOP)
    assert up.wait() == 1
    assert "no result arrived within 3 s" in up.err
    assert up.children() == []


def test_nothing_is_left_when_it_is_killed_itself(folder: Path) -> None:
    up = Up(folder, light=True)
    up.until_results(1)
    up.process.kill()
    up.process.wait()
    eventually(lambda: up.children() == [])


def test_a_start_keeps_its_port_unless_that_is_taken(folder: Path) -> None:
    urls, pings = [], []
    for _ in range(2):
        up = Up(folder, light=True)
        up.until_results(1)
        urls.append((up.data / "service-url").read_text().strip())
        pings.append((up.data / "ping-url").read_text().strip())
        assert f"API      {urls[-1]}/v1" in up.out
        assert f"agent    pings at {pings[-1]}/ping/TOKEN" in up.out
        assert listening_addresses(up.children()) == {"127.0.0.1"}
        assert up.stop() == 0, up.err
    assert urls[0] == urls[1]
    assert pings[0] == pings[1]
    with socket.create_server(("127.0.0.1", int(urls[0].rpartition(":")[2]))):
        up = Up(folder, "--until-results", "1", light=True)
        assert up.wait() == 0, up.err
    assert f"API      {urls[0]}/v1" not in up.out
    assert f"note     The API moved from {urls[0]} to http://127.0.0.1:" in up.out
    assert f"another program uses port {urls[0].rpartition(':')[2]}." in up.out
    assert "ping port moved" not in up.out


def test_a_taken_port_is_said_before_anything_starts(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = Up(folder, "--port", str(port))
        assert up.wait() == 2
    assert f"--port is {port}, but that port cannot be used" in up.err
    assert not up.data.exists()
