"""The images' health checks, as they are written there, against the real programs' ports."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.telemetry.health import STUCK_AFTER_S, HealthServer, Pulse
from agent.telemetry.metrics import Metrics
from tests.deploy.dockerfile import ROOT, read_stages
from tests.servers.service import serve_service

TRIES = 10
"""The script waits for 5 s; a machine that stands still for longer proves nothing."""


class Vitals:
    """What the agent's probes ask about."""

    overdue_s = 0.0

    def unready_because(self) -> str | None:
        return None

    def longest_overdue_s(self) -> float:
        return self.overdue_s


async def check(file: str, port: int, **environ: str) -> tuple[int | None, str]:
    """The exit code and what it said, of the image's health check with the port put elsewhere."""
    _, *words = read_stages(ROOT / file)[-1].health_command
    options, (_, variable, *rest) = words[:-4], words[-4:]
    command = [sys.executable, *options, str(ROOT / "deploy/alive.py"), variable, *rest]
    return await patient(command, {variable: str(port), **environ})


async def patient(command: list[str], environ: dict[str, str]) -> tuple[int | None, str]:
    """What came out at the first try that did not time out."""
    code, said = await outcome(command, environ)
    for _ in range(TRIES):
        if "timed out" not in said:
            break
        code, said = await outcome(command, environ)
    return code, said


async def outcome(command: list[str], environ: dict[str, str]) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *command, env=environ, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


@pytest.fixture
def vitals() -> Vitals:
    return Vitals()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="1.2.3", runtime="cpython-3.11")


@pytest.fixture
def pulse(vitals: Vitals, metrics: Metrics) -> Pulse:
    return Pulse(vitals, metrics, clock=lambda: 0.0)


@pytest.fixture
async def agent_port(vitals: Vitals, pulse: Pulse, metrics: Metrics) -> AsyncIterator[int]:
    server = HealthServer(
        lifecycle=vitals, pulse=pulse, metrics_text=metrics.text, port=0, host="127.0.0.1"
    )
    server.start()
    yield server.port
    await server.stop()


async def test_an_agent_that_lives_is_healthy(agent_port: int) -> None:
    code, said = await check("Dockerfile.uptime", agent_port)
    assert (code, said) == (0, f"port {agent_port} answered /-/liveness with 200\n")


async def test_an_agent_that_is_stuck_is_not(agent_port: int, vitals: Vitals, pulse: Pulse) -> None:
    vitals.overdue_s = STUCK_AFTER_S + 1
    pulse.beat_once(lag_s=0.0)
    code, said = await check("Dockerfile.uptime", agent_port)
    assert (code, said) == (1, f"port {agent_port} answered /-/liveness with 503\n")


async def test_a_proxy_of_the_environment_is_left_aside(agent_port: int) -> None:
    code, said = await check("Dockerfile.uptime", agent_port, http_proxy="http://127.0.0.1:9")
    assert code == 0, said


async def test_the_usual_port_is_asked_when_the_variable_is_not_set(agent_port: int) -> None:
    script = str(ROOT / "deploy/alive.py")
    command = [sys.executable, "-IS", script, "AGENT_HEALTH_PORT", str(agent_port), "/health"]
    code, said = await patient(command, {})
    assert code == 0, said


async def test_a_service_that_lives_is_healthy(tmp_path: Path) -> None:
    async with serve_service(tmp_path) as service:
        port = int(service.url.rpartition(":")[2])
        code, said = await check("Dockerfile.service", port)
    assert (code, said) == (0, f"port {port} answered /health with 200\n")


async def test_a_port_where_nobody_listens_is_unhealthy() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # taken, so that nobody else listens there
        port = bound.getsockname()[1]
        code, said = await check("Dockerfile.service", port)
    assert code == 1
    assert said.startswith(f"port {port} did not answer /health: ")
