"""The ways in which targets of every type are broken, and what must be said of each."""

import ssl
from datetime import UTC, datetime
from typing import Any

import dns.rcode
import trustme

from tests.servers.dns import Habit
from tests.servers.tcp import echoes, keeps_silent, resets_when_spoken_to, says
from tests.system.broken_targets import Broken, asserting, heartbeat, names, nobody, ping, tcp, web


def a_server_certificate(authority: trustme.CA, *names: str, **more: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, **more).configure_cert(context)
    return context


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
