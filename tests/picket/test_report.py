import re
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from contract.assertions import AssertionResult, Comparison, Source
from contract.checks import CheckType
from contract.evidence import (
    Certificate,
    Hop,
    HttpEvidence,
    PlaywrightEvidence,
    SeenResponse,
    SentRequest,
    SuiteTest,
    TlsFacts,
)
from contract.result import (
    DnsEvidence,
    Echo,
    Failure,
    FailureKind,
    HeartbeatEvidence,
    IcmpEvidence,
    LogLine,
    Result,
    Status,
    TcpEvidence,
    Timings,
)
from picket.report import report
from runners.net.http.transfer import READ_LIMIT_BYTES
from tests.builders.observations import a_result as a_whole_result
from tests.builders.observations import an_outcome

REQUEST = SentRequest(method="GET", url="https://shop.test/old")


def a_result(
    *, check_type: CheckType = CheckType.URL, status: Status = Status.PASSED, **outcome: Any
) -> Result:
    return a_whole_result(an_outcome(status=status, **outcome), check_type=check_type)


def printed(result: Result, name: str = "Front page") -> str:
    console = Console(width=100, force_terminal=False)
    with console.capture() as capture:
        console.print(report(result, name=name))
    return capture.get()


def test_a_failure_stands_right_under_the_head() -> None:
    lines = printed(
        a_result(
            status=Status.FAILED,
            failure=Failure(kind=FailureKind.CONNECT, message="Nothing listens at 127.0.0.1:9."),
        )
    ).splitlines()
    assert lines[0].startswith("✘ FAILED  Front page (URL)")
    assert lines[1].strip() == "Nothing listens at 127.0.0.1:9."


def test_a_check_that_failed_before_its_request_says_after_which_time() -> None:
    failure = Failure(kind=FailureKind.SCRIPT, message="The setup script failed: no")
    failed = a_result(
        check_type=CheckType.API, status=Status.FAILED, response_time_ms=None, failure=failure
    )
    head = printed(failed).splitlines()[0]
    assert head == "✘ FAILED  Front page (API)  after 20.0 ms"


def test_an_installation_stands_apart_from_the_tests() -> None:
    timings = Timings(installation=12_000, total=3000)
    said = printed(a_result(check_type=CheckType.PLAYWRIGHT, timings=timings)).split()
    assert said[said.index("installation") :][:6] == [
        "installation",
        "12.0",
        "s",
        "tests",
        "3.0",
        "s",
    ]


def test_a_degraded_result_says_what_it_went_over() -> None:
    because = "It took 412 ms; above 200 ms it is degraded."
    lines = printed(a_result(status=Status.DEGRADED, degraded_because=because)).splitlines()
    assert lines[1].strip() == because


def test_phases_are_drawn_one_after_the_other() -> None:
    text = printed(a_result(timings=Timings(dns=10, tcp=10, first_byte=60, total=80)))
    bars = {line.split()[0]: line for line in text.splitlines() if "━" in line}
    assert set(bars) == {"dns", "tcp", "first"}
    assert bars["first"].count("━") == 30
    assert bars["tcp"].index("━") > bars["dns"].index("━")
    assert "total" in text


def test_assertions_tell_what_was_seen() -> None:
    told = AssertionResult(
        source=Source.JSON_BODY,
        property="$.ok",
        comparison=Comparison.EQUALS,
        target="true",
        order=0,
        actual="false",
        error="JSON_BODY `$.ok` should equal `true`, but it is `false`.",
    )
    held = AssertionResult(
        source=Source.STATUS_CODE, comparison=Comparison.EQUALS, target="200", order=1, actual="200"
    )
    text = printed(a_result(status=Status.FAILED, assertions=(told, held)))
    assert "✘  JSON_BODY $.ok EQUALS true  it is `false`\n" in re.sub(" +\n", "\n", text)
    assert "✔  STATUS_CODE EQUALS 200      was 200" in text


@pytest.mark.parametrize(("error", "shown"), [("HEADERS should …, but no.", True), (None, False)])
def test_headers_are_shown_where_one_was_looked_for(error: str | None, *, shown: bool) -> None:
    told = AssertionResult(
        source=Source.HEADERS, property="x-b", comparison=Comparison.NOT_NULL, order=0, error=error
    )
    response = SeenResponse(status_code=200, headers={"x-a": "here"})
    evidence = HttpEvidence(request=REQUEST, response=response)
    assert ("x-a  here" in printed(a_result(assertions=(told,), evidence=evidence))) is shown


def test_a_host_without_an_address_has_no_loss() -> None:
    evidence = IcmpEvidence(hostname="a", ip_family="IPv4", packets_sent=0, packet_loss=0)
    text = printed(a_result(check_type=CheckType.ICMP, evidence=evidence))
    assert "loss" not in text


def test_a_peer_that_said_nothing_is_shown_as_such() -> None:
    evidence = TcpEvidence(hostname="a", port=7, response="")
    text = printed(a_result(check_type=CheckType.TCP, evidence=evidence))
    assert re.search(r"said +nothing", text)


def test_an_exchange_shows_its_way_its_certificate_and_its_answer() -> None:
    leaf = Certificate(
        subject="CN=shop.test",
        issuer="CN=Shop CA",
        serial="01",
        not_before=datetime(2026, 1, 1, tzinfo=UTC),
        not_after=datetime(2027, 1, 1, tzinfo=UTC),
        names=("shop.test",),
        fingerprint_sha256="ab",
    )
    evidence = HttpEvidence(
        request=REQUEST,
        response=SeenResponse(status_code=200, status_text="OK", http_version="2", body="hi"),
        hops=(
            Hop(url="https://shop.test/old", status_code=301, location="/new", total_ms=4),
            Hop(url="https://shop.test/new", status_code=200, total_ms=5),
        ),
        tls=TlsFacts(
            version="TLSv1.3",
            cipher="TLS_AES_256_GCM_SHA384",
            verified=False,
            verify_error="certificate has expired",
            days_to_expiry=-3.25,
            chain=(leaf,),
        ),
    )
    text = printed(a_result(evidence=evidence))
    for fact in (
        "301  https://shop.test/old → /new",
        "TLSv1.3 TLS_AES_256_GCM_SHA384",
        "certificate has expired",
        "3.2 days ago",
        "CN=Shop CA",
        "HTTP/2",
        "200 OK",
    ):
        assert fact in text


def test_a_redirect_that_led_nowhere_is_shown() -> None:
    hops = (Hop(url="https://shop.test/old", status_code=302, location="http://gone.test/"),)
    text = printed(a_result(evidence=HttpEvidence(request=REQUEST, hops=hops)))
    assert "302  https://shop.test/old → http://gone.test/" in text


@pytest.mark.parametrize(
    ("response", "shown"),
    [
        ({"body": "abc", "body_bytes": 3}, "3 bytes"),
        (
            {"body": "abc", "body_bytes": 70_000, "truncated": True},
            "70000 bytes, the first 3 characters are stored",
        ),
        (
            {"body": "abc", "body_bytes": READ_LIMIT_BYTES, "truncated": True},
            "more than 26214400 bytes, the rest was not read",
        ),
        (
            {
                "body": "abc",
                "body_bytes": READ_LIMIT_BYTES,
                "truncated": True,
                "headers": {"content-length": "26214423"},
            },
            "more than 26214400 bytes (Content-Length 26214423), the rest was not read",
        ),
        (
            {
                "body": "abc",
                "body_bytes": READ_LIMIT_BYTES,
                "truncated": True,
                "headers": {"content-length": str(READ_LIMIT_BYTES)},
            },
            "26214400 bytes, the first 3 characters are stored",
        ),
    ],
    ids=["short", "stored in part", "read in part", "announced", "at the limit"],
)
def test_a_body_that_was_read_whole_is_not_called_cut(response: dict[str, Any], shown: str) -> None:
    evidence = HttpEvidence(request=REQUEST, response=SeenResponse(status_code=200, **response))
    lines = printed(a_result(evidence=evidence)).splitlines()
    assert [
        line.split(maxsplit=1)[1].rstrip() for line in lines if line.split()[:1] == ["body"]
    ] == [shown]


def test_every_kind_of_evidence_has_its_facts() -> None:
    shown = {
        "echo: hello": a_result(
            check_type=CheckType.TCP,
            evidence=TcpEvidence(
                hostname="a", port=7, remote_address="10.0.0.1", response="echo: hello"
            ),
        ),
        "NXDOMAIN": a_result(
            check_type=CheckType.DNS,
            evidence=DnsEvidence(
                query="a.test",
                record_type="A",
                name_server="10.0.0.2:53",
                protocol="UDP",
                response_code="NXDOMAIN",
            ),
        ),
        "host-unreachable": a_result(
            check_type=CheckType.ICMP,
            evidence=IcmpEvidence(
                hostname="a",
                ip_family="IPv4",
                packets_sent=1,
                packet_loss=100,
                echoes=(Echo(sequence=1, success=False, error="host-unreachable"),),
            ),
        ),
        "4000 s ago": a_result(
            check_type=CheckType.HEARTBEAT,
            evidence=HeartbeatEvidence(silent_for_s=4000, period_s=3600, grace_s=60),
        ),
        "none yet": a_result(
            check_type=CheckType.HEARTBEAT,
            evidence=HeartbeatEvidence(period_s=3600, grace_s=60),
        ),
    }
    for fact, result in shown.items():
        assert fact in printed(result)


def test_a_target_cannot_steer_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold]not markup[/bold]\u202e"
    text = printed(
        a_result(
            status=Status.FAILED,
            failure=Failure(kind=FailureKind.PROTOCOL, message=evil),
            evidence=HttpEvidence(
                request=REQUEST, response=SeenResponse(status_code=200, body=evil, status_text=evil)
            ),
            log=(LogLine(after_ms=1, level="INFO", message=evil),),
        ),
        name=evil,
    )
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[bold]not markup[/bold]" in text


def test_a_test_that_its_suite_was_stopped_in_is_not_called_skipped() -> None:
    test = SuiteTest(
        title="pays",
        file="a.spec.ts",
        line=3,
        status="interrupted",
        outcome="skipped",
        took_ms=16_300,
    )
    outcome = an_outcome(evidence=PlaywrightEvidence(node_version="24", tests=(test,)))
    text = printed(a_whole_result(outcome))
    assert "interrupted" in text
    assert "skipped" not in text
