from typing import Any

import pytest

from contract.assertions import Assertion, Comparison, Source
from contract.checks import CheckType
from contract.result import (
    Artifact,
    DnsEvidence,
    Failure,
    FailureKind,
    IcmpEvidence,
    LogLine,
    Outcome,
    Status,
    Timings,
)
from runners.judging.judge import judge
from runners.runner import Observation
from tests.builders.observations import (
    a_dns_observation,
    a_failure,
    a_heartbeat_observation,
    an_http_observation,
    an_icmp_observation,
    an_observation,
)
from tests.builders.specs import (
    a_dns_spec,
    a_heartbeat_spec,
    a_spec_of,
    a_status_assertion,
    a_tcp_spec,
    a_url_spec,
    an_api_spec,
    an_assertion,
    an_http_request,
    an_icmp_spec,
)

NO_ANSWER = [
    FailureKind.DNS,
    FailureKind.CONNECT,
    FailureKind.TLS,
    FailureKind.TIMEOUT,
    FailureKind.REDIRECT,
    FailureKind.EGRESS,
]


def kind(outcome: Outcome) -> FailureKind | None:
    return outcome.failure.kind if outcome.failure is not None else None


@pytest.mark.parametrize("type_", CheckType)
@pytest.mark.parametrize("failure", FailureKind)
def test_what_stands_in_the_way_of_a_look_fails_every_type(
    type_: CheckType, failure: FailureKind
) -> None:
    outcome = judge(a_spec_of(type_), an_observation(failure=a_failure(failure)))
    expected = Status.TIMED_OUT if failure is FailureKind.TIMEOUT else Status.FAILED
    assert outcome.status is expected
    assert kind(outcome) is failure
    assert outcome.assertions == ()


@pytest.mark.parametrize("spec", [a_url_spec, an_api_spec])
@pytest.mark.parametrize(
    ("status", "should_fail", "expected"),
    [
        (200, False, None),
        (301, False, None),
        (399, False, None),
        (400, False, FailureKind.HTTP_STATUS),
        (503, False, FailureKind.HTTP_STATUS),
        (399, True, FailureKind.EXPECTED_FAILURE),
        (400, True, None),
        (503, True, None),
    ],
)
def test_should_fail_inverts_which_http_statuses_pass(
    spec: Any,
    status: int,
    *,
    should_fail: bool,
    expected: FailureKind | None,
) -> None:
    outcome = judge(spec(should_fail=should_fail), an_http_observation(status))
    assert kind(outcome) is expected
    assert outcome.status is (Status.PASSED if expected is None else Status.FAILED)


@pytest.mark.parametrize("spec", [a_url_spec, an_api_spec])
@pytest.mark.parametrize(
    ("accepted", "status", "should_fail", "expected"),
    [
        (("200", "429"), 200, False, None),
        (("200", "429"), 429, False, None),
        (("200", "429"), 204, False, FailureKind.HTTP_STATUS),
        (("5xx",), 503, False, None),
        (("5xx",), 200, False, FailureKind.HTTP_STATUS),
        (("200-299",), 302, False, FailureKind.HTTP_STATUS),
        (("200-299",), 302, True, None),
        (("200-299",), 200, True, FailureKind.EXPECTED_FAILURE),
    ],
)
def test_a_list_of_accepted_statuses_takes_the_place_of_the_rule(
    spec: Any,
    accepted: tuple[str, ...],
    status: int,
    *,
    should_fail: bool,
    expected: FailureKind | None,
) -> None:
    request = an_http_request(accepted_status_codes=accepted)
    outcome = judge(spec(request=request, should_fail=should_fail), an_http_observation(status))
    assert kind(outcome) is expected
    if outcome.failure is not None:
        assert outcome.failure.message.startswith(f"The response status is {status}; this check ")
        assert outcome.failure.message.endswith(f"{', '.join(accepted)}.")


def test_a_bad_status_is_named_in_the_sentence() -> None:
    outcome = judge(a_url_spec(), an_http_observation(503))
    assert outcome.failure is not None
    assert outcome.failure.message == "The response status is 503; anything below 400 passes."
    assert outcome.failure.detail == {"code": 503}


def test_whoever_wants_a_404_is_told_in_words_that_a_check_can_expect_failure() -> None:
    outcome = judge(a_url_spec(), an_http_observation(404))
    assert outcome.failure is not None
    assert outcome.failure.message == (
        "The response status is 404; anything below 400 passes, unless the check expects failure."
    )
    wanted = judge(a_url_spec(should_fail=True), an_http_observation(404))
    assert wanted.status is Status.PASSED


@pytest.mark.parametrize("failure", NO_ANSWER)
def test_an_http_check_without_an_answer_is_never_the_failure_that_was_expected(
    failure: FailureKind,
) -> None:
    seen = an_observation(failure=a_failure(failure))
    assert judge(a_url_spec(should_fail=True), seen).failure == seen.failure


def test_failed_assertions_fail_with_should_fail_too() -> None:
    spec = a_url_spec(should_fail=True, assertions=(a_status_assertion("404"),))
    assert judge(spec, an_http_observation(404)).status is Status.PASSED
    assert kind(judge(spec, an_http_observation(500))) is FailureKind.ASSERTION


@pytest.mark.parametrize("spec", [a_url_spec(), a_dns_spec(), an_icmp_spec()])
def test_a_look_without_its_main_fact_does_not_pass(spec: Any) -> None:
    assert kind(judge(spec, Observation())) is FailureKind.PROTOCOL


@pytest.mark.parametrize("failure", NO_ANSWER)
def test_a_refused_or_silent_port_is_what_should_fail_expects(failure: FailureKind) -> None:
    outcome = judge(a_tcp_spec(should_fail=True), an_observation(failure=a_failure(failure)))
    passes = failure in (FailureKind.CONNECT, FailureKind.TIMEOUT)
    assert (outcome.status is Status.PASSED) == passes
    assert (outcome.failure is None) == passes


def test_an_open_port_is_not_what_should_fail_expects() -> None:
    assert kind(judge(a_tcp_spec(should_fail=True), an_observation())) is (
        FailureKind.EXPECTED_FAILURE
    )
    assert judge(a_tcp_spec(), an_observation()).status is Status.PASSED


@pytest.mark.parametrize(
    ("code", "should_fail", "expected"),
    [
        ("NOERROR", False, None),
        ("NXDOMAIN", False, FailureKind.DNS),
        ("NOERROR", True, FailureKind.EXPECTED_FAILURE),
        ("SERVFAIL", True, None),
    ],
)
def test_a_name_passes_only_on_noerror_unless_it_should_fail(
    code: str,
    *,
    should_fail: bool,
    expected: FailureKind | None,
) -> None:
    outcome = judge(a_dns_spec(should_fail=should_fail), a_dns_observation(code))
    assert kind(outcome) is expected


def test_an_assertion_on_the_response_code_speaks_for_it() -> None:
    assertion = an_assertion(Source.RESPONSE_CODE, Comparison.EQUALS, "NXDOMAIN")
    spec = a_dns_spec(assertions=(assertion,))
    assert judge(spec, a_dns_observation("NXDOMAIN")).status is Status.PASSED
    assert kind(judge(spec, a_dns_observation("NOERROR"))) is FailureKind.ASSERTION


def test_the_response_code_may_stand_in_the_evidence_alone() -> None:
    evidence = DnsEvidence(
        query="a.test",
        record_type="A",
        name_server="127.0.0.1:53",
        protocol="UDP",
        response_code="REFUSED",
    )
    failure = judge(a_dns_spec(), Observation(evidence=evidence)).failure
    assert failure is not None
    assert failure.kind is FailureKind.DNS
    assert failure.message == "127.0.0.1:53 answered REFUSED for a.test A; only NOERROR passes."


@pytest.mark.parametrize(
    ("loss", "status"),
    [
        (0, Status.PASSED),
        (9.9, Status.PASSED),
        (10, Status.DEGRADED),
        (19.9, Status.DEGRADED),
        (20, Status.FAILED),
        (100, Status.FAILED),
    ],
)
def test_packet_loss_at_a_threshold_is_over_it(loss: float, status: Status) -> None:
    outcome = judge(an_icmp_spec(), an_icmp_observation(loss))
    assert outcome.status is status
    assert kind(outcome) is (FailureKind.PACKET_LOSS if status is Status.FAILED else None)


@pytest.mark.parametrize("spec", [a_tcp_spec, an_icmp_spec])
def test_an_address_that_was_never_tried_is_not_unreachable(spec: Any) -> None:
    failure = Failure(
        kind=FailureKind.CONNECT,
        message="::1 is an IPv6 address.",
        detail={"code": "ERR_INVALID_IP_ADDRESS"},
    )
    outcome = judge(spec(should_fail=True), an_observation(failure=failure))
    assert outcome.failure is failure


def test_the_sentence_on_loss_names_the_host_and_the_threshold() -> None:
    evidence = IcmpEvidence(
        hostname="gw.test", resolved_ip="10.0.0.1", ip_family="IPv4", packet_loss=100 / 3
    )
    seen = an_observation(evidence=evidence)
    lost = "33.3 % of the packets to gw.test (10.0.0.1) were lost"
    failed = judge(an_icmp_spec(), seen).failure
    assert failed is not None
    assert failed.message == f"{lost}; the check fails at 20 %."
    wanted = judge(an_icmp_spec(should_fail=True, failed_loss_percent=50), seen).failure
    assert wanted is not None
    assert wanted.message == f"{lost}; this check expects at least 50 %."
    degraded = judge(an_icmp_spec(failed_loss_percent=50), seen)
    assert degraded.degraded_because == f"{lost}; from 10 % on it is degraded."


def test_a_host_that_should_fail_passes_when_its_packets_are_lost() -> None:
    spec = an_icmp_spec(should_fail=True)
    assert judge(spec, an_icmp_observation(100)).status is Status.PASSED
    assert kind(judge(spec, an_icmp_observation(15))) is FailureKind.EXPECTED_FAILURE
    unreachable = an_observation(failure=a_failure(FailureKind.CONNECT))
    assert judge(spec, unreachable).status is Status.PASSED


@pytest.mark.parametrize(
    ("silent_for_s", "expected"),
    [(None, None), (0, None), (90, None), (90.1, FailureKind.OVERDUE)],
)
def test_a_heartbeat_is_overdue_after_period_and_grace(
    silent_for_s: float | None, expected: FailureKind | None
) -> None:
    assert kind(judge(a_heartbeat_spec(), a_heartbeat_observation(silent_for_s))) is expected


def test_an_overdue_heartbeat_names_its_durations() -> None:
    failure = judge(a_heartbeat_spec(), a_heartbeat_observation(3725)).failure
    assert failure is not None
    assert failure.message == (
        "The last ping came 1 h 2 min ago; one is due every 1 min, with 30 s of grace."
    )
    assert failure.detail == {"silentForSeconds": 3725}


def test_a_heartbeat_without_evidence_has_not_started() -> None:
    assert judge(a_heartbeat_spec(), Observation()).status is Status.PASSED


@pytest.mark.parametrize(
    ("took_ms", "status", "over"),
    [
        (3000.0, Status.PASSED, False),
        (3000.1, Status.DEGRADED, False),
        (5000.0, Status.DEGRADED, False),
        (5000.1, Status.FAILED, True),
    ],
)
def test_a_time_limit_is_passed_strictly(took_ms: float, status: Status, *, over: bool) -> None:
    spec = a_url_spec(degraded_after_ms=3000, failed_after_ms=5000)
    outcome = judge(spec, an_http_observation(took_ms=took_ms))
    assert outcome.status is status
    assert outcome.over_max_response_time is over
    assert kind(outcome) is (FailureKind.TOO_SLOW if over else None)


def test_only_a_degraded_outcome_says_why_it_is() -> None:
    slow = judge(a_url_spec(degraded_after_ms=200), an_http_observation(took_ms=412))
    assert slow.degraded_because == "It took 412 ms; above 200 ms it is degraded."
    assert judge(a_url_spec(), an_http_observation()).degraded_because is None
    failed = judge(a_url_spec(degraded_after_ms=200), an_http_observation(500, took_ms=412))
    assert failed.status is Status.FAILED
    assert failed.degraded_because is None


def test_slowness_is_told_in_ms() -> None:
    spec = a_url_spec(failed_after_ms=5000)
    failure = judge(spec, an_http_observation(took_ms=5000.25)).failure
    assert failure is not None
    assert failure.message == "It took 5000.2 ms; the limit is 5000 ms."


def test_no_limit_is_never_passed() -> None:
    spec = a_url_spec(degraded_after_ms=None, failed_after_ms=None)
    assert judge(spec, an_http_observation(took_ms=29_999)).status is Status.PASSED


def test_what_was_not_measured_is_not_slow() -> None:
    seen = an_http_observation(response_time_ms=None)
    assert judge(a_url_spec(), seen).status is Status.PASSED


@pytest.mark.parametrize(
    ("status", "assertions", "expected"),
    [
        (503, (a_status_assertion("200"),), FailureKind.HTTP_STATUS),
        (200, (a_status_assertion("201"),), FailureKind.ASSERTION),
        (200, (), FailureKind.TOO_SLOW),
    ],
)
def test_the_likeliest_cause_is_named_first(
    status: int, assertions: tuple[Assertion, ...], expected: FailureKind
) -> None:
    outcome = judge(
        a_url_spec(assertions=assertions, failed_after_ms=5000),
        an_http_observation(status, took_ms=9_000),
    )
    assert kind(outcome) is expected
    assert outcome.over_max_response_time


def test_the_first_failed_assertion_is_named_and_the_others_counted() -> None:
    spec = a_url_spec(
        assertions=tuple(a_status_assertion(target) for target in ("200", "201", "202"))
    )
    outcome = judge(spec, an_http_observation(200))
    assert outcome.failure is not None
    assert outcome.failure.message == (
        "STATUS_CODE should equal 201, but it is 200. 1 more failed."
    )
    assert outcome.failure.detail == {"order": 1, "failed": 2}
    assert [result.error is None for result in outcome.assertions] == [True, False, False]
    single = judge(a_url_spec(assertions=(a_status_assertion("201"),)), an_http_observation())
    assert single.failure is not None
    assert single.failure.message == "STATUS_CODE should equal 201, but it is 200."


def test_the_outcome_carries_what_was_seen() -> None:
    artifact = Artifact(name="a", kind="log", size_bytes=1, sha256="0" * 64)
    line = LogLine(after_ms=1, level="INFO", message="hello")
    seen = an_http_observation(
        timings=Timings(dns=1, total=2), artifacts=(artifact,), log=(line,), took_ms=7
    )
    outcome = judge(a_url_spec(), seen)
    assert outcome.timings == seen.timings
    assert outcome.evidence is seen.evidence
    assert (outcome.artifacts, outcome.log) == ((artifact,), (line,))
    assert outcome.response_time_ms == 7


def test_a_type_without_rules_of_its_own_passes_when_nothing_failed() -> None:
    assert judge(a_spec_of(CheckType.BROWSER), an_observation()).status is Status.PASSED


@pytest.mark.parametrize(
    ("kind", "took_ms", "message"),
    [
        (FailureKind.TIMEOUT, 29_500, "It broke. The check's maxResponseTime is 2000 ms."),
        (FailureKind.TIMEOUT, 1_000, "It broke."),
        (FailureKind.CONNECT, 29_500, "It broke."),
    ],
)
def test_a_time_out_names_a_limit_that_it_is_far_beyond(
    kind: FailureKind, took_ms: float, message: str
) -> None:
    seen = an_observation(failure=a_failure(kind), timings=Timings(total=took_ms))
    failure = judge(a_url_spec(failed_after_ms=2000), seen).failure
    assert failure is not None
    assert failure.message == message
