"""`picket run` against targets that are broken in known ways: the code, and the cause it names."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dns.rcode
import pytest
import trustme

from picket.__main__ import main
from tests.builders.patience import GROWING_S, LONG_S
from tests.servers.broken_web import broken_web
from tests.servers.dns import Habit, dns_server
from tests.servers.tcp import (
    echoes,
    keeps_silent,
    refusing_port,
    resets_when_spoken_to,
    says,
    tcp_server,
)

CheckDocument = dict[str, Any]
Target = Callable[[], AbstractAsyncContextManager[CheckDocument]]


@dataclass(frozen=True)
class Broken:
    """A target that is broken in one way, and what must be said about it."""

    how: str
    target: Target
    kind: str
    words: tuple[str, ...]
    runs_out_of_time: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    status: str = "FAILED"


def asserting(source: str, comparison: str, target: str, **more: str) -> dict[str, str]:
    return {"source": source, "comparison": comparison, "target": target, **more}


def a_server_certificate(authority: trustme.CA, *names: str, **more: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, **more).configure_cert(context)
    return context


def web(path: str, *, type: str = "URL", tls: ssl.SSLContext | None = None, **more: Any) -> Target:  # noqa: A002 - the document's word
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        async with broken_web(tls=tls) as address:
            request = {"url": address + path, **more.get("request", {})}
            yield {"type": type, **more, "request": request}

    return target


def nobody(document: Callable[[int], CheckDocument]) -> Target:
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        with refusing_port() as port:
            yield document(port)

    return target


def fixed(document: CheckDocument) -> Target:
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        yield document

    return target


def tcp(serve: Any, *, tls: ssl.SSLContext | None = None, **more: Any) -> Target:
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        async with tcp_server(serve, tls=tls) as port:
            request = {"hostname": "127.0.0.1", "port": port, **more.get("request", {})}
            yield {"type": "TCP", **more, "request": request}

    return target


ZONE = {("shop.test.", "A"): ["10.1.2.3"]}


def names(
    query: str = "shop.test",
    *,
    more: CheckDocument | None = None,
    request: CheckDocument | None = None,
    **habits: Any,
) -> Target:
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        async with dns_server(ZONE, **habits) as server:
            asked = {"query": query, "nameServer": "127.0.0.1", "port": server.port}
            yield {"type": "DNS", "request": {**asked, **(request or {})}, **(more or {})}

    return target


def heartbeat(silent_for_s: float | None, *, period_s: float = 60, grace_s: float = 30) -> Target:
    return fixed(
        {
            "type": "HEARTBEAT",
            "periodSeconds": period_s,
            "graceSeconds": grace_s,
            "silentForSeconds": silent_for_s,
        }
    )


CA = trustme.CA()
OTHER_HOST = a_server_certificate(CA, "elsewhere.test")
EXPIRED = a_server_certificate(CA, "127.0.0.1", not_after=datetime(2020, 1, 1, tzinfo=UTC))
UNTRUSTED = a_server_certificate(trustme.CA(), "127.0.0.1")
TRUST = {"EXTRA_CA_CERTS": "the test's authority"}
NO_LOOPBACK = {"EGRESS_DENY": "127.0.0.0/8"}

URL = [
    Broken(
        "down",
        nobody(lambda port: {"type": "URL", "request": {"url": f"http://127.0.0.1:{port}/"}}),
        "CONNECT",
        ("127.0.0.1", "refused"),
    ),
    Broken("an error status", web("/failing"), "HTTP_STATUS", ("503",)),
    Broken("slow", web("/slow", maxResponseTime=100), "TOO_SLOW", ("100 ms",)),
    Broken(
        "hanging",
        web("/hanging"),
        "TIMEOUT",
        ("{timeout_s:g} s",),
        runs_out_of_time=True,
        status="TIMED_OUT",
    ),
    Broken("a redirect loop", web("/loop"), "REDIRECT", ("10",)),
    Broken("a redirect to nowhere", web("/to-nowhere"), "CONNECT", ("127.0.0.1:1", "refused")),
    Broken("cut off", web("/cut"), "PROTOCOL", ("closed",)),
    Broken(
        "an unknown authority",
        web("/ok", tls=UNTRUSTED),
        "TLS",
        ("certificate",),
        environment=TRUST,
    ),
    Broken("expired", web("/ok", tls=EXPIRED), "TLS", ("expired",), environment=TRUST),
    Broken("another host", web("/ok", tls=OTHER_HOST), "TLS", ("127.0.0.1",), environment=TRUST),
    Broken(
        "no such address",
        web("/ok", request={"ipFamily": "IPv6"}),
        "CONNECT",
        ("127.0.0.1", "IPv6"),
    ),
    Broken("out of bounds", web("/ok"), "EGRESS", ("EGRESS_DENY",), environment=NO_LOOPBACK),
    Broken("good where bad is expected", web("/ok", shouldFail=True), "EXPECTED_FAILURE", ("200",)),
    Broken(
        "another status",
        web("/ok", assertions=[asserting("STATUS_CODE", "EQUALS", "204")]),
        "ASSERTION",
        ("204", "200"),
    ),
]

API = [
    Broken(
        "wrong JSON",
        web(
            "/json",
            type="API",
            assertions=[asserting("JSON_BODY", "EQUALS", "true", property="$.open")],
        ),
        "ASSERTION",
        ("$.open", "true", "false"),
    ),
    Broken(
        "nothing there",
        web(
            "/json",
            type="API",
            assertions=[asserting("JSON_BODY", "NOT_EMPTY", "", property="$.items[0]")],
        ),
        "ASSERTION",
        ("$.items[0]",),
    ),
    Broken(
        "no JSON",
        web(
            "/broken-json",
            type="API",
            assertions=[asserting("JSON_BODY", "EQUALS", "1", property="$.a")],
        ),
        "ASSERTION",
        ("JSON",),
    ),
    Broken(
        "wrong text",
        web("/ok", type="API", assertions=[asserting("TEXT_BODY", "CONTAINS", "closed")]),
        "ASSERTION",
        ("closed",),
    ),
    Broken(
        "wrong header",
        web(
            "/ok",
            type="API",
            assertions=[asserting("HEADERS", "EQUALS", "mall", property="x-shop")],
        ),
        "ASSERTION",
        ("mall", "corner"),
    ),
    Broken(
        "too slow for its assertion",
        web("/slow", type="API", assertions=[asserting("RESPONSE_TIME", "LESS_THAN", "50")]),
        "ASSERTION",
        ("50",),
    ),
    Broken("an error status", web("/failing", type="API"), "HTTP_STATUS", ("503",)),
]

TCP = [
    Broken(
        "down",
        nobody(lambda port: {"type": "TCP", "request": {"hostname": "127.0.0.1", "port": port}}),
        "CONNECT",
        ("127.0.0.1", "refused"),
    ),
    Broken(
        "silent",
        tcp(
            keeps_silent,
            request={"data": "hello"},
            assertions=[asserting("RESPONSE_DATA", "CONTAINS", "hello")],
        ),
        "TIMEOUT",
        ("127.0.0.1", "answer"),
        runs_out_of_time=True,
        status="TIMED_OUT",
    ),
    Broken(
        "another banner",
        tcp(
            says(b"SSH-1.5-old\r\n"), assertions=[asserting("RESPONSE_DATA", "CONTAINS", "SSH-2.0")]
        ),
        "ASSERTION",
        ("SSH-2.0", "SSH-1.5"),
    ),
    Broken("no TLS", tcp(says(b"220 mail\r\n"), request={"tls": True}), "TLS", ("TLS",)),
    Broken(
        "an unknown authority",
        tcp(echoes, tls=UNTRUSTED, request={"tls": True}),
        "TLS",
        ("certificate",),
    ),
    Broken("resetting", tcp(resets_when_spoken_to, request={"tls": True}), "TLS", ("reset",)),
    Broken("out of bounds", tcp(echoes), "EGRESS", ("EGRESS_DENY",), environment=NO_LOOPBACK),
    Broken(
        "open where closed is expected",
        tcp(echoes, shouldFail=True),
        "EXPECTED_FAILURE",
        ("connect",),
    ),
]

DNS = [
    Broken("no such name", names("mall.test"), "DNS", ("NXDOMAIN",)),
    Broken("a failing server", names(rcode=dns.rcode.SERVFAIL), "DNS", ("SERVFAIL",)),
    Broken(
        "another answer",
        names(more={"assertions": [asserting("TEXT_ANSWER", "CONTAINS", "10.9.9.9")]}),
        "ASSERTION",
        ("10.9.9.9",),
    ),
    Broken(
        "no server",
        nobody(
            lambda port: {
                "type": "DNS",
                "request": {
                    "query": "shop.test",
                    "nameServer": "127.0.0.1",
                    "port": port,
                    "protocol": "TCP",
                },
            }
        ),
        "CONNECT",
        ("127.0.0.1", "refused"),
    ),
    Broken(
        "a silent server",
        names(habit=Habit.SILENT),
        "TIMEOUT",
        ("127.0.0.1",),
        runs_out_of_time=True,
        status="TIMED_OUT",
    ),
    Broken("slow", names(delay_s=0.2, more={"maxResponseTime": 50}), "TOO_SLOW", ("50 ms",)),
    Broken(
        "broken off",
        names(habit=Habit.BREAKS_OFF, request={"protocol": "TCP"}),
        "PROTOCOL",
        ("127.0.0.1",),
    ),
]


def ping(**more: Any) -> Target:
    return fixed(
        {
            "type": "ICMP",
            **more,
            "request": {"hostname": "127.0.0.1", "pingCount": 1, **more.get("request", {})},
        }
    )


ICMP = [
    Broken("out of bounds", ping(), "EGRESS", ("EGRESS_DENY",), environment=NO_LOOPBACK),
    Broken("no such address", ping(request={"ipFamily": "IPv6"}), "CONNECT", ("127.0.0.1", "IPv6")),
    Broken("more loss than allowed", ping(maxPacketLossThreshold=0), "PACKET_LOSS", ("0", "%")),
    Broken(
        "a slow way",
        ping(assertions=[asserting("LATENCY", "GREATER_THAN", "60000", property="avg")]),
        "ASSERTION",
        ("60000",),
    ),
    Broken(
        "fewer replies",
        ping(assertions=[asserting("JSON_RESPONSE", "EQUALS", "2", property="$.packetsReceived")]),
        "ASSERTION",
        ("$.packetsReceived", "2", "1"),
    ),
]

HEARTBEAT = [
    Broken("just overdue", heartbeat(91), "OVERDUE", ("1 min",)),
    Broken("overdue for hours", heartbeat(7200), "OVERDUE", ("2 h",)),
    Broken("overdue for days", heartbeat(200_000, period_s=86400), "OVERDUE", ("2 d",)),
    Broken("overdue without grace", heartbeat(61, grace_s=0), "OVERDUE", ("1 min",)),
    Broken("overdue for a year", heartbeat(40_000_000, period_s=3600), "OVERDUE", ("1 h",)),
]

TABLE = {"URL": URL, "API": API, "TCP": TCP, "DNS": DNS, "ICMP": ICMP, "HEARTBEAT": HEARTBEAT}


@pytest.fixture
def environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, str]], None]:
    """Sets what a case wants to be set, the authority's file included."""

    def set_all(wanted: dict[str, str]) -> None:
        authority = tmp_path / "authority.pem"
        CA.cert_pem.write_to_path(str(authority))
        for name, value in wanted.items():
            monkeypatch.setenv(name, str(authority) if name == "EXTRA_CA_CERTS" else value)

    return set_all


async def run(document: CheckDocument, folder: Path, *options: str) -> int:
    """The real command, in a thread, so that the target's loop goes on."""
    file = folder / "check.json"
    file.write_text(json.dumps(document))
    return await asyncio.to_thread(main, ["run", "--json", *options, str(file)])


@pytest.mark.usefixtures("patient_pings")
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(broken, id=f"{kind}: {broken.how}")
        for kind, cases in TABLE.items()
        for broken in cases
    ],
)
async def test_a_broken_target_fails_with_its_cause(
    broken: Broken,
    environment: Callable[[dict[str, str]], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment(broken.environment)
    for timeout_s in GROWING_S if broken.runs_out_of_time else (LONG_S,):
        async with broken.target() as document:
            code = await run(document, tmp_path, "--timeout", str(timeout_s))
        out, err = capsys.readouterr()
        assert err == ""
        outcome = json.loads(out)["outcome"]
        message = outcome["failure"]["message"]
        words = [word.format(timeout_s=timeout_s) for word in broken.words]
        if all(word in message for word in words):
            break
    assert (code, outcome["status"], outcome["failure"]["kind"]) == (
        1,
        broken.status,
        broken.kind,
    ), message
    for word in words:
        assert word in message


@pytest.mark.parametrize("kind", list(TABLE))
def test_every_type_is_broken_in_five_ways_at_least(kind: str) -> None:
    assert len(TABLE[kind]) >= 5
