"""What `picket run` prints and with which code it ends, beside the failures of targets."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from picket.__main__ import main
from tests.builders.agent_process import Target
from tests.builders.agents import until
from tests.builders.patience import LONG_S
from tests.builders.rights import can_ping
from tests.servers.broken_web import broken_web
from tests.servers.dns import dns_server
from tests.servers.tcp import says, tcp_server
from tests.system.broken_targets import ZONE, heartbeat
from tests.system.run_command import run

Printed = pytest.CaptureFixture[str]

TIMED = ("URL", "API", "TCP", "DNS")
NEVER_SLOW: dict[str, Any] = {"maxResponseTime": None}


def picket(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "picket", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("patient_pings")
async def test_a_good_target_of_each_type_passes(tmp_path: Path) -> None:
    async with (
        broken_web() as address,
        tcp_server(says(b"SSH-2.0\r\n")) as port,
        dns_server(ZONE) as server,
    ):
        good: list[dict[str, Any]] = [
            {"type": "URL", "request": {"url": f"{address}/ok"}},
            {"type": "API", "request": {"url": f"{address}/json", "method": "POST"}},
            {"type": "TCP", "request": {"hostname": "127.0.0.1", "port": port}},
            {
                "type": "DNS",
                "request": {"query": "shop.test", "nameServer": "127.0.0.1", "port": server.port},
            },
            {"type": "ICMP", "request": {"hostname": "127.0.0.1", "pingCount": 1}},
            {"type": "HEARTBEAT", "periodSeconds": 60, "graceSeconds": 30},
        ]
        possible = [each for each in good if each["type"] != "ICMP" or can_ping()]
        patient = [each | NEVER_SLOW if each["type"] in TIMED else each for each in possible]
        assert [await run(document, tmp_path) for document in patient] == [0] * len(possible)


def test_missing_roots_are_said_and_end_it_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent.pem")
    file = tmp_path / "check.json"
    file.write_text('{"type": "URL", "request": {"url": "https://127.0.0.1/"}}')
    assert main(["run", str(file)]) == 2
    assert capsys.readouterr().err == (
        "picket: SSL_CERT_FILE is /nonexistent.pem, which is not a file.\n"
    )


async def test_a_degraded_check_ends_with_0(tmp_path: Path, capsys: Printed) -> None:
    async with broken_web() as address:
        document = {
            "type": "URL",
            "request": {"url": f"{address}/slow"},
            "degradedResponseTime": 50,
            "maxResponseTime": None,
        }
        assert await run(document, tmp_path) == 0
    assert json.loads(capsys.readouterr().out)["outcome"]["status"] == "DEGRADED"


@pytest.mark.parametrize("silent_for_s", [None, 0, 60, 90], ids=str)
async def test_a_heartbeat_within_period_and_grace_passes(
    silent_for_s: float | None, tmp_path: Path
) -> None:
    async with heartbeat(silent_for_s)() as document:
        assert await run(document, tmp_path) == 0


async def test_no_secret_is_printed(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_SECRET_TOKEN", "env/secret value")
    async with broken_web() as address:
        document = {
            "type": "API",
            "request": {
                "method": "POST",
                "url": f"{address}/secret?a=env/secret value&b={{{{TOKEN}}}}",
                "bodyType": "RAW",
                "body": "env/secret value {{TOKEN}} plain-value",
                "basicAuth": {"username": "ops", "password": "auth-secret-value"},
                "headers": [{"key": "authorization-x", "value": "{{TOKEN}}", "locked": True}],
            },
            "variables": [
                {"key": "TOKEN", "value": "variable-secret-value", "secret": True},
                {"key": "PLAIN", "value": "plain-value"},
            ],
            "assertions": [
                {"source": "TEXT_BODY", "comparison": "EQUALS", "target": "variable-secret-value"}
            ],
        }
        assert await run(document, tmp_path) == 1
    out = capsys.readouterr().out
    for secret in ("env/secret", "env%2Fsecret", "variable-secret", "auth-secret"):
        assert secret not in out
    assert "plain-value" in out


def test_the_check_may_come_from_standard_input() -> None:
    ping = "type: HEARTBEAT\nperiodSeconds: 60\ngraceSeconds: 5\n"
    done = picket("run", "--json", "-", stdin=ping)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["checkType"] == "HEARTBEAT"


def test_a_bad_file_ends_with_2_and_one_sentence() -> None:
    done = picket("run", "-", stdin='{"type": "TCP", "request": {"hostname": "a", "port": 0}}')
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "picket: standard input: $.request.port is 0; use at least 1\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run"], "Missing argument 'FILE'; see picket run --help"),
        (["run", "--timeout", "0", "x.yaml"], "see picket run --help"),
        (["walk"], "No such command 'walk'; see picket --help"),
        (["up", "--until-results", "0"], "see picket up --help"),
    ],
)
def test_a_wrong_option_ends_with_2_and_one_sentence(
    arguments: list[str], sentence: str, capsys: Printed
) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("picket: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_wrong_setting_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: Printed, tmp_path: Path
) -> None:
    monkeypatch.setenv("EGRESS_DENY", "10.0.0.0/99")
    file = tmp_path / "check.yaml"
    file.write_text("type: HEARTBEAT\nperiodSeconds: 60\ngraceSeconds: 5\n")
    assert main(["run", str(file)]) == 2
    assert "EGRESS_DENY" in capsys.readouterr().err


def test_a_type_without_a_runner_is_our_fault(tmp_path: Path, capsys: Printed) -> None:
    file = tmp_path / "check.yaml"
    file.write_text("type: AGENTIC\nprompt: Log in.")
    assert main(["run", str(file)]) == 70
    assert "has no runner for" in capsys.readouterr().err


ALONE = """
import fcntl, runpy, socket, struct, sys
from pathlib import Path

def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, 0x8914, struct.pack("16sH22x", b"lo", 0x1 | 0x40))

def deaf():
    loopback_up()
    Path("/proc/sys/net/ipv4/icmp_echo_ignore_all").write_text("1")

{"up": loopback_up, "deaf": deaf, "down": lambda: None}[sys.argv.pop(1)]()
runpy.run_module("picket", run_name="__main__", alter_sys=True)
"""
"""A program in a network of its own: what it does to the network, nobody else feels."""


def picket_alone(network: str, *arguments: str, stdin: str) -> subprocess.CompletedProcess[str]:
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        sys.executable,
        "-c",
        ALONE,
        network,
    ]
    return subprocess.run(
        [*command, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )


def can_be_alone() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--net", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_own_network = pytest.mark.skipif(
    not can_be_alone(), reason="the system makes no network of our own"
)
PING = "type: ICMP\nrequest: { hostname: 127.0.0.1, pingCount: 2 }\n"


@needs_own_network
@pytest.mark.parametrize(
    ("network", "kind", "words"),
    [
        ("deaf", "PACKET_LOSS", ("100 %",)),
        ("down", "PACKET_LOSS", ("100 %", "network-unreachable")),
    ],
)
def test_a_host_that_does_not_answer_pings_fails(
    network: str, kind: str, words: tuple[str, ...]
) -> None:
    done = picket_alone(network, "run", "--json", "--timeout", "60", "-", stdin=PING)
    assert (done.returncode, done.stderr) == (1, ""), done.stderr
    failure = json.loads(done.stdout)["outcome"]["failure"]
    assert kind in failure["kind"]
    for word in words:
        assert word in failure["message"]


@needs_own_network
def test_a_host_that_answers_passes_in_the_same_network() -> None:
    assert picket_alone("up", "run", "-", stdin=PING).returncode == 0


async def test_a_second_run_does_not_wait_for_the_first(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    async with broken_web() as address:
        document = {"type": "URL", "request": {"url": f"{address}/hanging"}, **NEVER_SLOW}
        hanging = asyncio.create_task(run(document, tmp_path / "one", "--timeout", "1"))
        assert await run({**document, "request": {"url": f"{address}/ok"}}, tmp_path) == 0
        assert await hanging == 1


@needs_own_network
def test_a_host_that_may_not_ping_is_our_fault_and_says_so() -> None:
    command = ["unshare", "--user", "--net", sys.executable, "-m", "picket", "run", "-"]
    done = subprocess.run(
        command,
        input=PING,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (done.returncode, done.stdout) == (70, ""), done.stderr
    assert "ping" in done.stderr
    assert "Traceback" not in done.stderr


def hear_ctrl_c() -> None:
    """As programs of a terminal do; background jobs of a shell, as these tests may be, do not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


async def test_ctrl_c_ends_a_run_at_once(tmp_path: Path) -> None:
    async with Target() as target:
        (tmp_path / "check.json").write_text(
            json.dumps({"type": "URL", "request": {"url": f"{target.url}/slow"}})
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "picket",
            "run",
            "--timeout",
            "600",
            str(tmp_path / "check.json"),
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=hear_ctrl_c,
        )
        await until(lambda: target.waiting)
        process.send_signal(signal.SIGINT)
        try:
            _, err = await asyncio.wait_for(process.communicate(), LONG_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    assert process.returncode == 130
    assert err.decode().strip() == "picket: stopped"
