"""What the established service's command line prints of a result."""

from typing import Any

import pytest

from contract.assertions import AssertionResult, Comparison, Source
from contract.checks import CheckType
from contract.evidence import (
    BrowserEvidence,
    PlaywrightEvidence,
    ScriptError,
    SnapshotSeen,
    SuiteTest,
)
from contract.job import RunSource
from contract.result import (
    Artifact,
    DnsEvidence,
    Echo,
    Evidence,
    Failure,
    FailureKind,
    IcmpEvidence,
    LogLine,
    Outcome,
    Status,
    TcpEvidence,
)
from service.results.model import Cause, ResultType, RunStatus, StoredResult
from service.sessions.ad_hoc.client_results import render_client_result
from tests.builders.observations import a_result, http_evidence

REFUSED = Failure(
    kind=FailureKind.CONNECT,
    message="The connection was refused.",
    detail={
        "code": "ECONNREFUSED",
        "syscall": "connect",
        "address": "192.0.2.7",
        "port": 25,
        "errno": -111,
        "other": "left out",
    },
)
WRONG = AssertionResult(
    source=Source.STATUS_CODE,
    comparison=Comparison.EQUALS,
    property="",
    target="200",
    regex=None,
    order=0,
    actual="500",
    error="500 is not 200",
)


def rendered(kind: CheckType, outcome: Outcome | None, cause: Cause | None = None) -> Any:
    detail = a_result(outcome) if outcome else None
    stored = StoredResult(
        id="result-1",
        check_id="check-1",
        run_id=1,
        fence=1,
        session_id="session-1",
        location="cellar",
        source=RunSource.TEST_RECORD,
        result_type=ResultType.FINAL,
        status=RunStatus(outcome.status) if outcome else RunStatus.MISSED,
        cause=cause,
        attempt=1,
        response_time_ms=12.6,
        over_max_response_time=False,
        scheduled_ms=1_000,
        started_ms=2_000,
        stopped_ms=3_000,
        created_ms=3_000,
        detail=detail,
    )
    return render_client_result(stored, name="Shop", check_type=kind.value)


def failed(evidence: Evidence | None = None, **fields: Any) -> Outcome:
    failure = fields.pop("failure", REFUSED)
    values = {"response_time_ms": 12.6, **fields}
    return Outcome(status=Status.FAILED, failure=failure, evidence=evidence, **values)


def test_of_an_api_check_it_prints_request_answer_and_assertions() -> None:
    seen = rendered(CheckType.API, failed(http_evidence(body="sorry"), assertions=(WRONG,)))
    data = seen["checkRunData"]

    assert data["requestError"] is None
    assert data["response"]["body"] == "sorry"
    assert data["request"]["method"] == "GET"
    assert data["assertions"][0]["error"] == "500 is not 200"
    assert (seen["runError"], seen["scheduleError"], seen["hasFailures"]) == (None, None, True)
    assert "assets" not in seen


def test_a_request_without_an_answer_says_why_and_shows_no_answer() -> None:
    data = rendered(CheckType.URL, failed())["checkRunData"]

    assert data["requestError"] == "The connection was refused."
    assert data["response"] is None


def test_a_failure_that_no_assertion_tells_is_an_execution_error() -> None:
    slow = Failure(kind=FailureKind.TIMEOUT, message="It took longer than 5 s.")
    seen = rendered(CheckType.API, failed(http_evidence(), failure=slow))

    assert seen["runError"] == "It took longer than 5 s."


def test_logs_of_an_api_check_stand_in_its_phases() -> None:
    line = LogLine(after_ms=1, level="INFO", message="token fetched", phase="setup")
    logs = rendered(CheckType.API, failed(http_evidence(), log=(line,)))["logs"]

    assert logs["setup"] == [{"time": 2_001, "msg": "token fetched", "level": "INFO"}]
    assert (logs["request"], logs["teardown"]) == ([], [])


def test_a_refused_tcp_connection_has_the_systems_words() -> None:
    evidence = TcpEvidence(hostname="mail.example", port=25)
    seen = rendered(CheckType.TCP, failed(evidence))

    assert seen["checkRunData"]["requestError"] == "The connection was refused."
    assert seen["checkRunData"]["response"]["error"] == {
        "code": "ECONNREFUSED",
        "syscall": "connect",
        "address": "192.0.2.7",
        "port": 25,
        "errno": -111,
    }


def test_a_dns_answer_is_told_with_its_name_server() -> None:
    evidence = DnsEvidence(
        query="shop.example",
        record_type="A",
        name_server="[2001:db8::1]:53",
        protocol="UDP",
        response_code="NXDOMAIN",
        text=";; ANSWER",
    )
    data = rendered(CheckType.DNS, failed(evidence, assertions=(WRONG,)))["checkRunData"]

    assert data["nameServerInfo"] == {"host": "2001:db8::1", "port": 53}
    assert data["request"]["query"] == "shop.example"
    answer = {"returnCode": "NXDOMAIN", "responseTime": 13, "answer": ";; ANSWER"}
    assert data["response"] == answer
    assert data["requestError"] is None


def test_a_name_server_that_does_not_answer_is_a_request_error() -> None:
    evidence = DnsEvidence(
        query="shop.example", record_type="A", name_server="192.0.2.1:53", protocol="UDP"
    )
    data = rendered(CheckType.DNS, failed(evidence))["checkRunData"]

    assert (data["response"], data["requestError"]) == (None, "The connection was refused.")


def test_echoes_are_told_with_their_times() -> None:
    evidence = IcmpEvidence(
        hostname="shop.example",
        resolved_ip="192.0.2.7",
        ip_family="IPv4",
        packets_sent=2,
        packets_received=1,
        latency={"min": 1.0, "max": 1.0, "avg": 1.0, "stdDev": 0.0},
        echoes=(
            Echo(sequence=1, success=True, rtt_ms=1.0, ttl=60),
            Echo(sequence=2, success=False),
        ),
    )
    data = rendered(CheckType.ICMP, failed(evidence, assertions=(WRONG,)))["checkRunData"]

    assert data["request"]["pingCount"] == 2
    assert data["response"]["latency"]["avg"] == 1.0
    assert data["response"]["pingResults"][1] == {
        "sequence": 2,
        "success": False,
        "ttl": None,
        "rtt": None,
    }


def test_without_a_reply_there_are_no_latencies_to_print() -> None:
    evidence = IcmpEvidence(hostname="shop.example", ip_family="IPv4", packets_sent=2)
    data = rendered(CheckType.ICMP, failed(evidence))["checkRunData"]

    assert data["response"] is None
    assert data["requestError"] == "The connection was refused."


def test_a_failing_browser_check_says_what_its_script_said() -> None:
    error = ScriptError(message="expected the title to be Shop", where="shop.spec.ts:5:14")
    evidence = BrowserEvidence(runtime_id="2026.04", errors=(error,))
    seen = rendered(CheckType.BROWSER, failed(evidence))

    assert seen["runError"] == "expected the title to be Shop (shop.spec.ts:5:14)"
    assert seen["checkRunData"] is None
    assert seen["logs"] == []


def test_a_failing_suite_says_which_tests_failed() -> None:
    test = SuiteTest(
        title="pays",
        file="pay.spec.ts",
        line=3,
        status="failed",
        outcome="unexpected",
        took_ms=1.0,
        errors=("no button",),
    )
    evidence = PlaywrightEvidence(node_version="22", tests=(test,), errors=("no web server",))

    assert rendered(CheckType.PLAYWRIGHT, failed(evidence))["runError"] == (
        "no web server\n\npays: no button"
    )


def test_a_script_that_never_ran_says_why() -> None:
    assert rendered(CheckType.MULTI_STEP, failed())["runError"] == "The connection was refused."


@pytest.mark.parametrize("kind", list(CheckType))
def test_a_run_that_nobody_did_says_so_for_every_type(kind: CheckType) -> None:
    seen = rendered(kind, None, Cause.SERVICE_DOWN)

    assert seen["scheduleError"].startswith("The service was not running")
    assert (seen["checkRunData"], seen["runError"]) == (None, None)


def test_a_pass_has_no_error() -> None:
    seen = rendered(CheckType.API, Outcome(status=Status.PASSED, evidence=http_evidence()))

    assert (seen["runError"], seen["scheduleError"], seen["hasFailures"]) == (None, None, False)
    assert seen["checkRunData"]["requestError"] is None


def test_snapshots_that_were_written_anew_have_keys_and_paths() -> None:
    names = ("snapshot-1.png", "snapshot-2.png")
    seen = BrowserEvidence(
        runtime_id="2026.04",
        snapshots=tuple(
            SnapshotSeen(path=f"front-snapshots/{name}", artifact=name) for name in names
        ),
    )
    sent = Artifact(name=names[0], kind="screenshot", size_bytes=1, sha256="0" * 64)
    outcome = Outcome(status=Status.PASSED, evidence=seen, artifacts=(sent,))

    assert rendered(CheckType.BROWSER, outcome)["assets"] == {
        "snapshots": [
            {"key": "session-1/result-1/snapshot-1.png", "path": "front-snapshots/snapshot-1.png"}
        ],
        "region": "session-1",
        "logPath": "result-1",
    }
