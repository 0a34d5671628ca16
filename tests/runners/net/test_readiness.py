"""Waiting for sockets on both event loops: they report errors in different ways."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import trustme
import uvloop

from contract.assertions import Comparison, Source
from contract.checks import CheckSpec, DnsRequest, TcpRequest
from contract.requests import IpFamily
from contract.result import FailureKind
from runners.net.sockets import Readiness, connect, readable
from runners.registry import runner_for
from runners.runner import Observation
from tests.builders.context import a_context
from tests.builders.patience import LONG_S
from tests.builders.specs import a_dns_spec, a_tcp_spec, an_assertion
from tests.servers.dns import Habit, dns_server
from tests.servers.tcp import echoes, refusing_port, swallowing_port, tcp_server

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    chosen: Run = request.param
    return chosen


async def look(spec: CheckSpec, **context: Any) -> Observation:
    async with a_context(**context) as ctx:
        return await runner_for(spec).observe(spec, ctx)


def dns_at(port: int) -> CheckSpec:
    return a_dns_spec("x.test", request=DnsRequest(query="x.test", name_server="::1", port=port))


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["tcp", "udp"])
def test_a_refusal_is_heard_at_once(run: Run, kind: socket.SocketKind) -> None:
    async def refused() -> None:
        with refusing_port(kind) as port:
            spec = a_tcp_spec(port=port)
            if kind is socket.SOCK_DGRAM:
                request = DnsRequest(query="x.test", name_server="127.0.0.1", port=port)
                spec = a_dns_spec(request=request)
            for _ in range(3):
                seen = await look(spec)
                assert seen.failure is not None
                assert seen.failure.kind is FailureKind.CONNECT

    run(refused())


def test_silence_ends_with_the_time(run: Run) -> None:
    async def silent() -> None:
        with swallowing_port() as port:
            for _ in range(3):
                seen = await look(a_tcp_spec(port=port), timeout_s=0.05)
                assert seen.failure is not None
                assert seen.failure.kind is FailureKind.TIMEOUT

    run(silent())


def test_tls_and_data_go_both_ways(run: Run) -> None:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)

    async def talk() -> None:
        async with tcp_server(echoes, tls=context) as port:
            request = TcpRequest(hostname="127.0.0.1", port=port, data="hello", tls=True)
            reads = (an_assertion(Source.RESPONSE_DATA, Comparison.CONTAINS, "hello"),)
            seen = await look(
                a_tcp_spec(request=request, assertions=reads),
                extra_ca_pem=ca.cert_pem.bytes().decode(),
            )
        assert seen.failure is None
        assert seen.evidence is not None

    run(talk())


@pytest.mark.parametrize("habit", [Habit.ANSWERS, Habit.TRUNCATES])
def test_answers_come_over_udp_and_tcp(run: Run, habit: Habit) -> None:
    async def ask() -> None:
        zone = {("x.test.", "A"): ("10.0.0.1",)}
        async with dns_server(zone, host="::1", habit=habit) as server:
            seen = await asyncio.gather(*(look(dns_at(server.port)) for _ in range(20)))
        assert [one.failure for one in seen] == [None] * 20

    run(ask())


def test_a_cancelled_wait_stops_watching(run: Run) -> None:
    async def cancel() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            waiting = asyncio.create_task(readable(ours, at_most_s=LONG_S))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert not asyncio.get_running_loop().remove_reader(ours.fileno())

    run(cancel())


def test_many_sockets_are_waited_for_at_once(run: Run) -> None:
    async def connect_all() -> None:
        readiness = Readiness()
        with socket.create_server(("127.0.0.1", 0), backlog=200) as server:
            port = server.getsockname()[1]
            for _ in range(2):  # the second time with the first one's descriptors
                found = await asyncio.gather(
                    *(
                        connect("127.0.0.1", port, IpFamily.IPV4, wait=readiness.writable)
                        for _ in range(50)
                    )
                )
                for sock in found:
                    assert sock.getpeername() == ("127.0.0.1", port)
                    sock.close()
        readiness.close()

    run(connect_all())


def test_a_wait_that_was_cancelled_leaves_nothing_watched(run: Run) -> None:
    async def cancel() -> None:
        readiness = Readiness()
        with swallowing_port() as port:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(
                        connect("127.0.0.1", port, IpFamily.IPV4, wait=readiness.writable), 0.02
                    )
                assert repr(readiness) == "Readiness(0 waiting)"
        readiness.close()

    run(cancel())


def test_closing_while_somebody_waits_is_no_crash(run: Run) -> None:
    async def close() -> None:
        readiness = Readiness()
        with swallowing_port() as port:
            waiting = asyncio.create_task(
                connect("127.0.0.1", port, IpFamily.IPV4, wait=readiness.writable)
            )
            await asyncio.sleep(0.01)
            readiness.close()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    run(close())
