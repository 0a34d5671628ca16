"""TCP checks against real peers on loopback."""

import asyncio
import errno
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.assertions import Assertion, Comparison, Source
from contract.checks import TcpRequest
from contract.requests import IpFamily
from contract.result import FailureKind, Outcome, Status, TcpEvidence
from runners.judging.assertions import evaluate
from runners.judging.judge import judge
from runners.net.egress.rules import EgressRules
from runners.runner import Number, Text
from runners.tcp import LIMIT_BYTES, PAUSE_S, TcpRunner, _PlainChannel, _receive, is_decided
from tests.builders.context import a_context
from tests.builders.patience import LONG_S
from tests.builders.specs import a_tcp_spec, an_assertion
from tests.builders.tcp_checks import READS, evidence, kind, look
from tests.servers.tcp import (
    Serve,
    closes,
    echoes,
    keeps_silent,
    refusing_port,
    resets,
    says,
    swallowing_port,
    tcp_server,
)


async def test_the_response_time_is_that_of_the_connect() -> None:
    async with tcp_server(closes) as port:
        seen = await look(port)
    assert seen.failure is None
    assert seen.response_time_ms == seen.timings.tcp
    assert seen.facts[Source.RESPONSE_TIME] == Number(seen.timings.tcp or -1)
    assert Source.RESPONSE_DATA not in seen.facts
    assert (seen.timings.tls, seen.timings.data) == (None, None)


async def test_sent_data_is_answered_and_kept() -> None:
    async with tcp_server(echoes) as port:
        seen = await look(port, data="PING é\r\n", reads=True)
    assert seen.failure is None
    assert seen.facts[Source.RESPONSE_DATA] == Text("PING é\r\n")
    assert evidence(seen).response == "PING é\r\n"
    assert seen.timings.data is not None


@pytest.fixture
def _reads_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer ends its answer itself; a pause is no end."""
    monkeypatch.setattr("runners.tcp.PAUSE_S", LONG_S)
    monkeypatch.setattr("runners.tcp.MAX_PAUSE_S", LONG_S)


@pytest.fixture
def _pauses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause is over before the peer's next piece comes."""
    monkeypatch.setattr("runners.tcp.PAUSE_S", 0.001)
    monkeypatch.setattr("runners.tcp.MAX_PAUSE_S", 0.001)


def data(comparison: Comparison, target: str = "", **more: str) -> Assertion:
    return an_assertion(Source.RESPONSE_DATA, comparison, target, **more)


async def run(port: int, *assertions: Assertion, timeout_s: float = LONG_S) -> Outcome:
    spec = a_tcp_spec(request=TcpRequest(hostname="127.0.0.1", port=port), assertions=assertions)
    async with a_context(timeout_s=timeout_s) as ctx:
        return judge(spec, await TcpRunner().observe(spec, ctx))


def ended(outcome: Outcome) -> str | None:
    assert isinstance(outcome.evidence, TcpEvidence)
    return outcome.evidence.reading_ended


@pytest.mark.usefixtures("_pauses_at_once")
async def test_a_greeting_in_pieces_is_read_until_the_assertion_holds() -> None:
    greeting = says(b"2", b"2", b"0 ready\r\n", pause_s=0.05, then_closes=False)
    async with tcp_server(greeting) as port:
        outcome = await run(port, data(Comparison.CONTAINS, "220"))
    assert outcome.failure is None
    assert ended(outcome) == "decided"


@pytest.mark.usefixtures("_pauses_at_once")
async def test_what_must_not_come_is_waited_for() -> None:
    late = says(b"+OK\r\n", b"-ERR denied\r\n", pause_s=0.05, then_closes=False)
    async with tcp_server(late) as port:
        outcome = await run(port, data(Comparison.NOT_CONTAINS, "-ERR"))
    assert outcome.failure is not None
    assert ended(outcome) == "decided"


async def test_what_did_not_come_while_we_had_patience_passes_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runners.tcp.PATIENCE_S", 0.2)
    async with tcp_server(says(b"+OK\r\n", then_closes=False)) as port:
        outcome = await run(port, data(Comparison.NOT_CONTAINS, "-ERR"))
    assert outcome.failure is None
    assert ended(outcome) == "patience"


async def test_what_did_not_come_before_the_peer_closed_passes_and_says_so() -> None:
    async with tcp_server(says(b"+OK\r\n")) as port:
        outcome = await run(port, data(Comparison.NOT_CONTAINS, "-ERR"))
    assert outcome.failure is None
    assert ended(outcome) == "closed"


async def talks_on(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says something every few milliseconds, forever."""
    while True:
        writer.write(b"tick\n")
        await writer.drain()
        await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("comparison", "target", "end"),
    [(Comparison.CONTAINS, "tick", "decided"), (Comparison.NOT_CONTAINS, "tock", "patience")],
)
async def test_a_service_that_keeps_talking_is_judged_when_patience_ends(
    comparison: Comparison, target: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.tcp.PATIENCE_S", 0.2)
    async with tcp_server(talks_on) as port:
        outcome = await run(port, data(comparison, target))
    assert (outcome.status, ended(outcome)) == (Status.PASSED, end)


async def test_an_answer_that_has_begun_is_judged_before_the_runs_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runners.tcp.RESERVE_S", LONG_S - 0.2)
    async with tcp_server(says(b"+OK\r\n", then_closes=False)) as port:
        outcome = await run(port, data(Comparison.CONTAINS, "-ERR"))
    assert outcome.status is Status.FAILED
    assert ended(outcome) == "patience"


TEXTS = st.text(alphabet="ab1 ", max_size=4)


@given(
    st.sampled_from(Comparison),
    TEXTS,
    st.sampled_from(["", "a+", "(a*)b", "[0-9]$"]),
    TEXTS.filter(bool),
    TEXTS,
)
def test_what_is_decided_stays_decided_whatever_comes(
    comparison: Comparison, target: str, pattern: str, text: str, more: str
) -> None:
    assertion = data(comparison, target, property=pattern)
    if is_decided(assertion, text):
        now, later = (
            evaluate((assertion,), {Source.RESPONSE_DATA: Text(seen)})[0].error is None
            for seen in (text, text + more)
        )
        assert now == later


@pytest.mark.usefixtures("_reads_to_the_end")
async def test_a_banner_is_read_when_an_assertion_asks_for_it() -> None:
    async with tcp_server(says(b"220 ", b"ready\r\n", pause_s=0.02)) as port:
        seen = await look(port, reads=True)
    assert seen.facts[Source.RESPONSE_DATA] == Text("220 ready\r\n")


async def test_an_answer_without_an_end_has_ended_when_nothing_more_comes() -> None:
    async with tcp_server(says(b"220 ready\r\n", then_closes=False)) as port:
        seen = await look(port, reads=True)
    assert seen.facts[Source.RESPONSE_DATA] == Text("220 ready\r\n")


async def test_what_came_while_the_loop_stood_still_is_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)  # noqa: FBT003 - takes no keyword
        channel = _PlainChannel(ours, ("127.0.0.1", 1))
        reading = asyncio.create_task(_receive(channel, ours, 0.01))
        await asyncio.sleep(0)
        time.sleep(0.05)  # noqa: ASYNC251 - a loop that stands still is the case under test
        theirs.send(b"late for us alone")
        assert await reading == b"late for us alone"
        assert await _receive(channel, ours, 0.01) is None


async def test_silence_is_an_empty_answer_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.tcp.UNASKED_PATIENCE_S", 0.05)
    async with tcp_server(keeps_silent) as port:
        seen = await look(port, data="hello")
    assert seen.failure is None
    assert seen.facts[Source.RESPONSE_DATA] == Text("", "nothing came within 0.05 s")


@pytest.mark.usefixtures("_reads_to_the_end")
async def test_an_endless_answer_is_cut_and_said_to_be() -> None:
    async with tcp_server(says(*(b"x" * 4096 for _ in range(100)))) as port:
        seen = await look(port, reads=True)
    assert evidence(seen).truncated
    assert len(evidence(seen).response or "") == LIMIT_BYTES


async def test_bytes_that_are_no_text_do_no_harm() -> None:
    async with tcp_server(says(b"\xff\xfe\x00ok")) as port:
        seen = await look(port, reads=True)
    assert (evidence(seen).response or "").endswith("ok")


async def test_a_refused_connection_names_address_and_port() -> None:
    with refusing_port() as port:
        seen = await look(
            port, hostname="localhost", context={"names": {"localhost": ("127.0.0.1",)}}
        )
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.CONNECT
    assert (
        seen.failure.message == f"127.0.0.1:{port} refused the connection (nothing listens there)."
    )
    assert seen.failure.detail == {
        "code": "ECONNREFUSED",
        "errno": -errno.ECONNREFUSED,
        "syscall": "connect",
        "address": "127.0.0.1",
        "port": port,
    }
    assert seen.response_time_ms is None
    assert evidence(seen).remote_address == "127.0.0.1"


async def test_a_peer_that_swallows_is_a_timeout_that_says_what_it_waited_for() -> None:
    with swallowing_port() as port:
        seen = await look(port, context={"timeout_s": 0.2})
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TIMEOUT
    assert seen.failure.message == f"Waited 0.2 s for 127.0.0.1:{port} to accept the connection."


async def test_a_reset_in_the_answer_is_the_targets_fault_and_keeps_the_timings() -> None:
    async with tcp_server(resets) as port:
        seen = await look(port, data="hello", reads=True)
    assert seen.failure is not None
    assert seen.failure.detail["code"] in {"ECONNRESET", "EPIPE"}
    assert seen.timings.tcp is not None


async def test_a_name_without_an_address_is_a_dns_failure() -> None:
    seen = await look(9, hostname="nowhere.test")
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.DNS
    assert seen.failure.detail == {
        "code": "ENOTFOUND",
        "syscall": "queryA",
        "hostname": "nowhere.test",
    }


async def test_the_next_address_is_tried_and_the_first_one_noted() -> None:
    names = {"both.test": ("127.0.0.2", "127.0.0.1")}
    async with tcp_server(closes) as port:
        seen = await look(port, hostname="both.test", context={"names": names})
    assert seen.failure is None
    assert evidence(seen).remote_address == "127.0.0.1"
    assert [line.message for line in seen.log] == [
        f"127.0.0.2:{port} refused the connection (nothing listens there). Trying the next address."
    ]


async def test_ipv6_is_used_when_asked_for() -> None:
    async with tcp_server(closes, host="::1") as port:
        seen = await look(port, hostname="[::1]", ip_family=IpFamily.IPV6)
    assert seen.failure is None
    assert evidence(seen).remote_address == "::1"


async def test_a_forbidden_address_is_not_connected_to() -> None:
    rules = EgressRules.parse(allow=(), deny=("127.0.0.0/8",))
    async with tcp_server(closes) as port:
        seen = await look(
            port,
            hostname="inner.test",
            context={"egress": rules, "names": {"inner.test": ("127.0.0.1",)}},
        )
    assert kind(seen) is FailureKind.EGRESS
    assert seen.timings.tcp is None


@pytest.mark.parametrize(
    ("peer", "first_byte_s", "why"),
    [
        (keeps_silent, 0.05, "nothing came within 0.05 s"),
        (closes, LONG_S, "the connection was closed without a byte"),
    ],
)
async def test_silence_is_told_from_a_connection_that_was_closed(
    peer: Serve, first_byte_s: float, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.tcp.PATIENCE_S", first_byte_s)
    async with tcp_server(peer) as port:
        seen = await look(port, reads=True)
    outcome = judge(a_tcp_spec(assertions=READS), seen)
    assert outcome.failure is not None
    assert outcome.failure.message == f"RESPONSE_DATA should not be empty, but {why}."


async def test_silence_that_an_assertion_waited_for_is_part_of_the_total(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runners.tcp.PATIENCE_S", 0.05)
    async with tcp_server(keeps_silent) as port:
        seen = await look(port, reads=True)
    assert seen.timings.data is not None
    assert seen.timings.total is not None
    assert seen.timings.total >= seen.timings.data >= 50


async def test_times_are_told_to_the_microsecond() -> None:
    async with tcp_server(echoes) as port:
        seen = await look(port, data="hello", reads=True)
    times = seen.timings
    for time_ms in (times.dns, times.tcp, times.data, times.total, seen.response_time_ms):
        assert time_ms == round(time_ms or 0, 3)


async def test_our_patience_after_the_last_byte_is_no_part_of_the_total() -> None:
    async with tcp_server(says(b"hello", then_closes=False)) as port:
        began = time.perf_counter()
        seen = await look(port, reads=True)
        took_ms = (time.perf_counter() - began) * 1000
    times = seen.timings
    assert times.total is not None
    assert times.total <= took_ms - PAUSE_S * 1000
    rounding_ms = 0.01
    assert times.total + rounding_ms >= sum(one or 0 for one in (times.dns, times.tcp, times.data))


async def test_a_connection_that_is_reset_later_was_made_all_the_same() -> None:
    async with tcp_server(resets) as port, a_context() as ctx:
        request = TcpRequest(hostname="127.0.0.1", port=port, data="hello")
        spec = a_tcp_spec(request=request, should_fail=True)
        outcome = judge(spec, await TcpRunner().observe(spec, ctx))
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.EXPECTED_FAILURE


class HangingResolver:
    """A resolver whose servers never answer."""

    async def resolve(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        del hostname, family
        await asyncio.sleep(3600)
        raise AssertionError


async def test_a_name_that_hangs_is_no_port_that_fails_as_it_should() -> None:
    async with a_context(timeout_s=0.1, resolver=HangingResolver()) as ctx:
        request = TcpRequest(hostname="nowhere.test", port=80)
        spec = a_tcp_spec(request=request, should_fail=True)
        outcome = judge(spec, await TcpRunner().observe(spec, ctx))
    assert outcome.status is Status.TIMED_OUT
