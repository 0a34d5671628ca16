"""The health port says what an orchestrator needs to know."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest

from agent.telemetry.health import STUCK_AFTER_S, HealthServer, Pulse
from agent.telemetry.http_server import PortUnavailableError
from agent.telemetry.metrics import Metrics
from tests.builders.agents import until
from tests.builders.patience import LONG_S


class Vitals:
    """What the probes ask about, to be set by a test."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.missing: tuple[str, ...] = ()
        self.overdue_s = 0.0
        self.now = 1000.0

    def unready_because(self) -> str | None:
        return self.reason

    def longest_overdue_s(self) -> float:
        return self.overdue_s

    def clock(self) -> float:
        return self.now


@pytest.fixture
def vitals() -> Vitals:
    return Vitals()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="1.2.3", runtime="cpython-3.11")


@pytest.fixture
def pulse(vitals: Vitals, metrics: Metrics) -> Pulse:
    return Pulse(vitals, metrics, clock=vitals.clock)


@pytest.fixture
async def server(vitals: Vitals, pulse: Pulse, metrics: Metrics) -> AsyncIterator[HealthServer]:
    server = HealthServer(
        lifecycle=vitals, pulse=pulse, metrics_text=metrics.text, port=0, host="127.0.0.1"
    )
    server.start()
    yield server
    await server.stop()


@pytest.fixture
async def http(server: HealthServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        yield session


async def status_of(http: aiohttp.ClientSession, path: str, method: str = "GET") -> int:
    async with http.request(method, path) as answer:
        return answer.status


@pytest.mark.parametrize("path", ["/-/readiness", "/-/liveness", "/health", "/metrics"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_healthy_agent_says_200(
    http: aiohttp.ClientSession, path: str, method: str
) -> None:
    assert await status_of(http, path, method) == 200


async def test_an_unready_agent_says_503_and_why(
    http: aiohttp.ClientSession, vitals: Vitals
) -> None:
    vitals.reason = "The agent is shutting down."
    async with http.get("/-/readiness") as answer:
        assert (answer.status, await answer.text()) == (503, "The agent is shutting down.\n")


async def test_an_agent_that_shuts_down_is_still_live_and_healthy(
    http: aiohttp.ClientSession, vitals: Vitals
) -> None:
    vitals.reason = "The agent is shutting down."
    assert await status_of(http, "/-/liveness") == 200
    assert await status_of(http, "/health") == 200


async def test_a_job_far_past_its_deadline_makes_the_agent_not_live(
    http: aiohttp.ClientSession, vitals: Vitals, pulse: Pulse
) -> None:
    vitals.overdue_s = 31
    pulse.beat_once(lag_s=0)
    async with http.get("/-/liveness") as answer:
        assert (answer.status, await answer.text()) == (503, "A job is 31 s past its deadline.\n")


async def test_a_job_a_little_past_its_deadline_is_borne(
    http: aiohttp.ClientSession, vitals: Vitals, pulse: Pulse
) -> None:
    vitals.overdue_s = 29
    pulse.beat_once(lag_s=0)
    assert await status_of(http, "/-/liveness") == 200


async def test_a_loop_that_does_not_turn_makes_the_agent_not_live(
    http: aiohttp.ClientSession, vitals: Vitals, pulse: Pulse
) -> None:
    vitals.now += STUCK_AFTER_S + 1
    async with http.get("/-/liveness") as answer:
        assert answer.status == 503
        assert await answer.text() == "The event loop has been stuck for 31 s.\n"
    pulse.beat_once(lag_s=31)
    assert await status_of(http, "/-/liveness") == 200


async def test_a_blocked_loop_cannot_silence_the_probes(server: HealthServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=LONG_S) as probe:
        probe.sendall(b"GET /health HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n\r\n")
        assert probe.recv(64).startswith(b"HTTP/1.1 200")


async def test_the_pulse_beats_and_measures_lag(vitals: Vitals, metrics: Metrics) -> None:
    pulse = Pulse(vitals, metrics)
    beating = asyncio.create_task(pulse.beat(), name="pulse")

    def lag_s() -> float:
        lines = metrics.text().decode().splitlines()
        (lag,) = (line for line in lines if line.startswith("picket_agent_event_loop_lag_seconds "))
        return float(lag.split()[1])

    await asyncio.sleep(0)
    time.sleep(0.7)  # noqa: ASYNC251 - a loop that is held up is the case under test
    await until(lambda: lag_s() > 0.1)
    beating.cancel()
    assert "picket_agent_tasks 2.0" in metrics.text().decode()


@pytest.mark.parametrize("path", ["/", "/-/readiness/", "/-/ready", "/healthz", "/-/metrics"])
async def test_an_unknown_path_is_404(http: aiohttp.ClientSession, path: str) -> None:
    assert await status_of(http, path) == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/-/readiness", "/-/liveness", "/health", "/metrics"])
async def test_another_method_is_405_and_says_what_is_allowed(
    http: aiohttp.ClientSession, path: str, method: str
) -> None:
    async with http.request(method, path) as answer:
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_a_query_does_not_change_a_probe(http: aiohttp.ClientSession) -> None:
    assert await status_of(http, "/health?from=lb") == 200


async def test_metrics_are_prometheus_text(http: aiohttp.ClientSession) -> None:
    async with http.get("/metrics") as answer:
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'picket_agent_info{runtime="cpython-3.11",version="1.2.3"} 1.0' in (
            await answer.text()
        )


async def test_garbage_on_the_port_is_answered_400_and_logged_nowhere(
    server: HealthServer, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"\x16\x03\x01 what is this\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.0 400")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_a_taken_port_is_one_clear_line(
    vitals: Vitals, pulse: Pulse, metrics: Metrics, host: str
) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        server = HealthServer(
            lifecycle=vitals, pulse=pulse, metrics_text=metrics.text, port=port, host=host
        )
        with pytest.raises(PortUnavailableError) as caught:
            server.start()
    assert str(caught.value) == (
        f"AGENT_HEALTH_PORT is {port}, but another program listens there; "
        "use a free port, or 0 for any"
    )


def test_an_address_of_another_machine_is_one_clear_line(
    vitals: Vitals, pulse: Pulse, metrics: Metrics
) -> None:
    server = HealthServer(
        lifecycle=vitals, pulse=pulse, metrics_text=metrics.text, port=0, host="192.0.2.1"
    )
    with pytest.raises(PortUnavailableError) as caught:
        server.start()
    assert str(caught.value) == (
        "AGENT_HEALTH_HOST is 192.0.2.1, but this machine does not have the address; "
        "use an address of this machine, as in 127.0.0.1"
    )


async def test_every_address_of_the_machine_is_served_by_default(
    vitals: Vitals, pulse: Pulse, metrics: Metrics
) -> None:
    server = HealthServer(lifecycle=vitals, pulse=pulse, metrics_text=metrics.text, port=0)
    server.start()
    async with aiohttp.ClientSession() as http:
        assert await status_of(http, f"http://127.0.0.1:{server.port}/health") == 200
    await server.stop()


async def test_a_stopped_server_has_closed_its_port(server: HealthServer) -> None:
    await server.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", server.port)
