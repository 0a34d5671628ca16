"""DNS checks against a real server on loopback."""

import asyncio
import contextlib
import json
import re
import socket
import struct

import dns.rcode
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.assertions import Comparison, Source
from contract.checks import DnsRequest
from contract.requests import DnsProtocol, RecordType
from contract.result import CheckFailed, DnsEvidence, FailureKind
from runners.dns import DnsRunner
from runners.judging.judge import judge
from runners.net.dns.messages import (
    TYPE_NUMBERS,
    MalformedMessageError,
    build_question,
    read_message,
)
from runners.net.dns.name_servers import NameServer
from runners.net.dns.query import ask
from runners.net.egress.rules import EgressRules
from runners.runner import JsonText, Number, Observation, Text
from tests.builders.context import a_context
from tests.builders.patience import GROWING_S
from tests.builders.specs import a_dns_spec, an_assertion
from tests.servers.dns import DnsServer, Habit, dns_server
from tests.servers.tcp import refusing_port, says, swallowing_port, tcp_server

JSON = (an_assertion(Source.JSON_ANSWER, Comparison.NOT_EMPTY),)

RECORDS = {
    RecordType.A: "10.0.0.1",
    RecordType.AAAA: "fd00::1",
    RecordType.CNAME: "other.test.",
    RecordType.MX: "10 mail.test.",
    RecordType.TXT: '"v=spf1 -all" "two"',
    RecordType.SOA: "ns.test. root.test. 7 3600 600 86400 60",
    RecordType.NS: "ns.test.",
    RecordType.CAA: '0 issue "ca.test"',
    RecordType.DNSKEY: "257 3 8 AwEAAQ==",
    RecordType.DS: "1 8 2 " + "ab" * 32,
    RecordType.HTTPS: '1 . alpn="h2"',
    RecordType.NAPTR: '10 100 "S" "SIP+D2U" "" _sip._udp.test.',
    RecordType.PTR: "host.test.",
    RecordType.SRV: "0 5 5060 sip.test.",
    RecordType.SVCB: '1 svc.test. port="8443"',
    RecordType.TLSA: "3 1 1 " + "cd" * 32,
}
ZONE = {("x.test.", kind.value): (value,) for kind, value in RECORDS.items()}


async def look(
    server: DnsServer | int,
    query: str = "x.test",
    *,
    context: dict[str, object] | None = None,
    **request: object,
) -> Observation:
    asked = {
        "name_server": "127.0.0.1",
        "port": server if isinstance(server, int) else server.port,
        **request,
    }
    spec = a_dns_spec(request=DnsRequest(query=query, **asked), assertions=JSON)  # type: ignore[arg-type]
    async with a_context(**(context or {})) as ctx:  # type: ignore[arg-type]
        return await DnsRunner().observe(spec, ctx)


async def look_by_default(*servers: DnsServer | int, query: str = "x.test") -> Observation:
    ports = [server if isinstance(server, int) else server.port for server in servers]
    chain = [NameServer("127.0.0.1", port) for port in ports]
    async with a_context() as ctx:
        return await DnsRunner(lambda: chain).observe(a_dns_spec(query), ctx)


def evidence(seen: Observation) -> DnsEvidence:
    assert isinstance(seen.evidence, DnsEvidence)
    return seen.evidence


@pytest.mark.parametrize("record_type", RecordType)
async def test_every_record_type_is_asked_for_and_read(record_type: RecordType) -> None:
    async with dns_server(ZONE) as server:
        seen = await look(server, record_type=record_type)
    assert seen.failure is None
    assert seen.facts[Source.RESPONSE_CODE] == Text("NOERROR")
    (record,) = (evidence(seen).answer or {})["Answer"]  # type: ignore[misc]  # JSON is loose
    assert record["name"] == "x.test."
    assert record["TTL"] == 60
    assert record["data"] == RECORDS[record_type]


async def test_the_json_answer_has_the_form_that_assertions_expect() -> None:
    async with dns_server(ZONE) as server:
        seen = await look(server, record_type=RecordType.MX)
    fact = seen.facts[Source.JSON_ANSWER]
    assert isinstance(fact, JsonText)
    assert json.loads(fact.raw) == {
        "Status": 0,
        "TC": False,
        "RD": True,
        "RA": True,
        "AD": False,
        "CD": False,
        "Question": [{"name": "x.test.", "type": 15}],
        "Answer": [{"name": "x.test.", "type": 15, "TTL": 60, "data": "10 mail.test."}],
    }


async def test_the_text_answer_reads_like_dig() -> None:
    async with dns_server(ZONE) as server:
        seen = await look(server)
    text = evidence(seen).text
    assert seen.facts[Source.TEXT_ANSWER] == Text(text)
    assert ";; opcode: QUERY, status: NOERROR, id: " in text
    assert ";; flags: qr aa rd ra; QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 0" in text
    assert ";; QUESTION SECTION:\n;x.test.\t\tIN\tA\n" in text
    assert ";; ANSWER SECTION:\nx.test.\t60\tIN\tA\t10.0.0.1\n" in text


async def test_the_evidence_names_server_and_transport() -> None:
    async with dns_server(ZONE) as server:
        seen = await look(server)
        assert evidence(seen).name_server == f"127.0.0.1:{server.port}"
    assert evidence(seen).protocol == "UDP"
    assert seen.response_time_ms is not None
    assert seen.facts[Source.RESPONSE_TIME] == Number(seen.response_time_ms)


async def test_an_alias_is_shown_with_what_it_leads_to() -> None:
    zone = {("www.test.", "CNAME"): ("x.test.",), **ZONE}
    async with dns_server(zone) as server:
        seen = await look(server, "www.test", record_type=RecordType.AAAA)
    answer = (evidence(seen).answer or {})["Answer"]
    assert [record["data"] for record in answer] == ["x.test.", "fd00::1"]  # type: ignore[attr-defined]


async def test_what_does_not_fit_comes_by_tcp() -> None:
    async with dns_server(ZONE, habit=Habit.TRUNCATES) as server:
        seen = await look(server)
        assert [transport for _, _, transport in server.asked] == ["UDP", "TCP"]
    assert evidence(seen).protocol == "TCP"
    assert "10.0.0.1" in evidence(seen).text


async def test_a_refused_fall_back_to_tcp_is_told_as_one() -> None:
    async with dns_server(ZONE, habit=Habit.TRUNCATES, refuses_tcp=True) as server:
        seen = await look(server)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.CONNECT
    assert seen.failure.message == (
        "The answer over UDP was truncated, and over TCP "
        f"127.0.0.1:{server.port} refused the connection (nothing listens there)."
    )


async def test_silence_after_a_truncated_answer_is_told_as_such() -> None:
    async with dns_server(ZONE, habit=Habit.TRUNCATES_IN_VAIN) as running:
        server = NameServer("127.0.0.1", running.port)
        for timeout_s in GROWING_S:
            with pytest.raises(CheckFailed) as caught:
                await ask(build_question("x.test", RecordType.A), server, timeout_s=timeout_s)
            if "truncated" in str(caught.value):
                break
    assert str(caught.value) == (
        "The answer over UDP was truncated, and over TCP "
        f"the name server {server} did not answer within {timeout_s:g} s."
    )


@pytest.mark.parametrize("record_type", [RecordType.MX, RecordType.A])
async def test_a_good_answer_without_records_of_the_type_says_so(record_type: RecordType) -> None:
    zone = {("x.test.", "TXT"): ('"only this"',), ("y.test.", "CNAME"): ("x.test.",)}
    async with dns_server(zone) as server:
        for name in ("x.test", "y.test"):
            seen = await look(server, name, record_type=record_type)
            assert seen.failure is None
            (line,) = seen.log
            assert line.message == (
                f"127.0.0.1:{server.port} answered NOERROR for {name} {record_type}: "
                f"no {record_type} records."
            )


async def test_tcp_is_used_when_asked_for() -> None:
    async with dns_server(ZONE) as server:
        seen = await look(server, protocol=DnsProtocol.TCP)
        assert [transport for _, _, transport in server.asked] == ["TCP"]
    assert evidence(seen).protocol == "TCP"


@pytest.mark.parametrize(
    "code", ["SERVFAIL", "REFUSED", "NOTIMP", "FORMERR", "BADVERS", "BADCOOKIE"]
)
@pytest.mark.parametrize("habit", [Habit.ANSWERS, Habit.DROPS_QUESTION])
async def test_an_error_code_is_an_answer_to_be_judged(code: str, habit: Habit) -> None:
    async with dns_server(rcode=dns.rcode.from_text(code), habit=habit) as server:
        seen = await look(server)
    assert seen.failure is None
    assert seen.facts[Source.RESPONSE_CODE] == Text(code)


async def test_a_code_that_only_an_opt_record_holds_fails_by_its_name() -> None:
    async with dns_server(ZONE, rcode=dns.rcode.BADVERS) as server:
        seen = await look(server)
    outcome = judge(a_dns_spec("x.test"), seen)
    assert outcome.failure is not None
    assert outcome.failure.message == (
        f"127.0.0.1:{server.port} answered BADVERS for x.test A; only NOERROR passes."
    )
    assert (evidence(seen).answer or {})["Status"] == 16


def test_a_code_without_a_name_is_shown_by_its_number() -> None:
    opt = b"\0\0\x29\x04\xd0" + b"\x63\0\0\0" + b"\0\0"
    message = read_message(b"\0\1\x80\0" + b"\0\0\0\0\0\0\0\1" + opt)
    assert (message.rcode, message.response_code) == (0x630, "RCODE1584")


async def test_one_lost_packet_is_no_failure_and_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runners.net.dns.query.ASK_AGAIN_S", 0.05)
    async with dns_server(ZONE, habit=Habit.LOSES_FIRST) as server:
        seen = await look(server)
    asked = evidence(seen).queries
    assert seen.failure is None
    assert evidence(seen).response_code == "NOERROR"
    assert asked is not None
    assert asked > 1
    assert [line.message for line in seen.log] == [
        f"The name server 127.0.0.1:{server.port} was asked {asked} times over UDP."
    ]


async def test_a_server_that_never_answers_is_asked_again_within_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runners.net.dns.query.ASK_AGAIN_S", 0.01)
    monkeypatch.setattr("runners.dns.SERVER_TIMEOUT_S", 0.3)
    async with dns_server(ZONE, habit=Habit.SILENT) as server:
        seen = await look(server)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TIMEOUT
    found = re.search(r"within 0\.3 s \(asked (\d+) times\)\.$", seen.failure.message)
    assert found is not None
    assert int(found[1]) > 1
    assert evidence(seen).queries is None


async def test_a_name_that_does_not_exist_is_an_answer_to_be_judged() -> None:
    async with dns_server(ZONE) as server:
        seen = await look(server, "nowhere.test")
    assert evidence(seen).response_code == "NXDOMAIN"
    assert (evidence(seen).answer or {})["Status"] == 3


async def test_a_silent_server_is_a_timeout_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.dns.SERVER_TIMEOUT_S", 0.1)
    with swallowing_port(socket.SOCK_DGRAM) as port:
        seen = await look(port)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TIMEOUT
    assert seen.failure.message == (
        f"The name server 127.0.0.1:{port} did not answer within 0.1 s."
    )


@pytest.mark.parametrize("closes", [True, False], ids=["closes", "waits"])
async def test_what_is_no_dns_is_shown(monkeypatch: pytest.MonkeyPatch, *, closes: bool) -> None:
    async with tcp_server(says(b"220 mail ready\r\n", then_closes=closes)) as port:
        for timeout_s in GROWING_S:
            monkeypatch.setattr("runners.dns.SERVER_TIMEOUT_S", timeout_s)
            seen = await look(port, protocol=DnsProtocol.TCP)
            assert seen.failure is not None
            if seen.failure.kind is not FailureKind.TIMEOUT:
                break
    assert seen.failure.kind is FailureKind.PROTOCOL
    assert seen.failure.message == (
        f"The name server 127.0.0.1:{port} sent bytes over TCP that are no answer of DNS; "
        "they begin with '220 mail ready\\r\\n'."
    )


async def test_an_answer_that_stalls_over_tcp_is_no_silence() -> None:
    question = build_question("x.test", RecordType.A)

    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.read(100)
        writer.write(b"\0\x20" + asked[2:12])
        await asyncio.sleep(3600)

    async with tcp_server(begin) as port:
        server = NameServer("127.0.0.1", port)
        for timeout_s in GROWING_S:
            with pytest.raises(CheckFailed) as caught:
                await ask(question, server, protocol=DnsProtocol.TCP, timeout_s=timeout_s)
            if "only" in str(caught.value):
                break
    assert caught.value.failure.kind is FailureKind.TIMEOUT
    assert str(caught.value) == (
        f"The name server {server} sent only 10 of the 32 bytes of its answer "
        f"within {timeout_s:g} s."
    )


@pytest.mark.parametrize("protocol", DnsProtocol)
async def test_a_closed_port_is_a_refused_connection(protocol: DnsProtocol) -> None:
    kind = socket.SOCK_DGRAM if protocol is DnsProtocol.UDP else socket.SOCK_STREAM
    with refusing_port(kind) as port:
        seen = await look(port, protocol=protocol)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.CONNECT
    assert seen.failure.detail["code"] == "ECONNREFUSED"


@pytest.mark.parametrize("habit", [Habit.SAYS_GARBAGE, Habit.WRONG_ID, Habit.WRONG_QUESTION])
async def test_packets_that_answer_something_else_are_no_answer(
    habit: Habit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dns_server(ZONE, habit=habit) as server:
        for timeout_s in GROWING_S:
            monkeypatch.setattr("runners.dns.SERVER_TIMEOUT_S", timeout_s)
            seen = await look(server)
            assert seen.failure is not None
            if seen.failure.kind is not FailureKind.TIMEOUT:
                break
    assert seen.failure.kind is FailureKind.PROTOCOL
    assert re.search(
        r"sent (a packet that does not answer|\d+ packets, none of which)", seen.failure.message
    )


async def test_a_wrong_packet_does_not_hide_the_right_one() -> None:
    async with dns_server(ZONE, habit=Habit.WRONG_FIRST) as server:
        seen = await look(server)
    assert seen.failure is None


async def test_a_broken_answer_is_a_protocol_failure() -> None:
    async with dns_server(ZONE, habit=Habit.BREAKS_RECORDS) as server:
        seen = await look(server)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.PROTOCOL
    assert "malformed" in seen.failure.message


async def test_an_answer_that_breaks_off_is_a_protocol_failure() -> None:
    async with dns_server(ZONE, habit=Habit.BREAKS_OFF) as server:
        seen = await look(server, protocol=DnsProtocol.TCP)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.PROTOCOL


async def test_the_default_chain_goes_on_after_failures_and_error_codes() -> None:
    async with dns_server(rcode=dns.rcode.SERVFAIL) as broken, dns_server(ZONE) as good:
        with refusing_port(socket.SOCK_DGRAM) as dead:
            seen = await look_by_default(dead, broken, good)
        assert evidence(seen).name_server == f"127.0.0.1:{good.port}"
    assert evidence(seen).response_code == "NOERROR"
    assert len(seen.log) == 2


async def test_the_default_chain_keeps_an_answer_over_a_failure() -> None:
    async with dns_server(ZONE) as server:
        with refusing_port(socket.SOCK_DGRAM) as dead:
            seen = await look_by_default(server, dead, query="nowhere.test")
    assert seen.failure is None
    assert evidence(seen).response_code == "NXDOMAIN"


async def test_a_custom_server_gets_no_failover() -> None:
    async with dns_server(rcode=dns.rcode.SERVFAIL) as broken:
        seen = await look(broken)
        assert len(broken.asked) == 1
    assert evidence(seen).response_code == "SERVFAIL"


async def test_a_custom_server_may_be_a_name() -> None:
    async with dns_server(ZONE) as server:
        seen = await look(
            server, name_server="ns.test", context={"names": {"ns.test": ("127.0.0.1",)}}
        )
    assert seen.failure is None
    assert seen.timings.dns is not None


async def test_a_custom_server_is_held_to_the_egress_rules() -> None:
    rules = EgressRules.parse(allow=(), deny=("127.0.0.1",))
    async with dns_server(ZONE) as server:
        seen = await look(server, context={"egress": rules})
        assert server.asked == []
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.EGRESS


async def test_a_server_over_ipv6_is_asked() -> None:
    async with dns_server(ZONE, host="::1") as server:
        seen = await look(server, name_server="[::1]")
        assert evidence(seen).name_server == f"[::1]:{server.port}"
    assert seen.failure is None


async def test_an_address_is_looked_up_backwards() -> None:
    async with dns_server({("4.3.2.10.in-addr.arpa.", "PTR"): ("db.test.",)}) as server:
        seen = await look(server, "10.2.3.4", record_type=RecordType.PTR)
    assert "db.test." in evidence(seen).text


async def test_a_name_that_is_none_is_the_targets_fault() -> None:
    seen = await look(53, "a..b")
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.DNS
    assert "a..b is no DNS name" in seen.failure.message


async def test_letters_that_a_server_changed_still_match() -> None:
    async with dns_server(ZONE) as server:
        seen = await look(server, "X.TEST")
    assert evidence(seen).response_code == "NOERROR"


def read(packet: bytes) -> None:
    with contextlib.suppress(MalformedMessageError):
        read_message(packet)


@given(st.binary(max_size=200), st.integers(0, 40))
def test_no_bytes_of_a_server_become_our_fault(noise: bytes, cut: int) -> None:
    question = build_question("x.test", RecordType.A).query()
    read(noise)
    read(question[: len(question) - cut] + noise)
    read(question[:4] + noise)


@given(
    st.sampled_from([*TYPE_NUMBERS.values(), 41, 46, 47, 50, 250, 255, 65280]),
    st.sampled_from([1, 3, 254, 4096]),
    st.binary(max_size=60),
)
def test_no_record_of_a_server_becomes_our_fault(kind: int, of: int, noise: bytes) -> None:
    question = build_question("x.test", RecordType.A).query()
    head = question[:2] + b"\x80\x00\0\1\0\1\0\0\0\0"
    record = b"\xc0\x0c" + struct.pack("!HHIH", kind, of, 60, len(noise)) + noise
    read(head + question[12:] + record)
