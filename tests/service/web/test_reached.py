"""How far a run without an answer got."""

from collections.abc import Mapping

import pytest

from contract.evidence import HttpEvidence, SentRequest
from contract.result import (
    DnsEvidence,
    Evidence,
    Failure,
    FailureKind,
    Outcome,
    Status,
    TcpEvidence,
    Timings,
)
from service.vault.texts import HIDDEN
from service.web.result.reached import find_reached
from service.web.states import State
from tests.builders.observations import http_evidence

SHOP: Mapping[str, str | int] = {"hostname": "shop.example", "port": 443}
H: Mapping[str, str | int] = {"hostname": "h", "port": 80}
DONE, HERE, NOT = State.PASSING, State.FAILING, State.UNKNOWN


def asked(url: str = "https://shop.example/") -> HttpEvidence:
    return HttpEvidence(request=SentRequest(method="GET", url=url))


def ended(
    kind: FailureKind,
    evidence: Evidence | None,
    timings: Timings | None = None,
    detail: Mapping[str, str | int] | None = None,
) -> Outcome:
    """An outcome of a run that got no answer."""
    failure = Failure(kind=kind, message="It failed.", detail=dict(detail or {}))
    return Outcome(
        status=Status.FAILED, failure=failure, evidence=evidence, timings=timings or Timings()
    )


@pytest.mark.parametrize(
    ("kind", "detail", "states"),
    [
        (FailureKind.DNS, {}, [HERE, NOT, NOT, NOT, NOT]),
        (FailureKind.CONNECT, {}, [DONE, HERE, NOT, NOT, NOT]),
        (FailureKind.TLS, {}, [DONE, DONE, HERE, NOT, NOT]),
        (FailureKind.PROTOCOL, {}, [DONE, DONE, DONE, HERE, NOT]),
        (FailureKind.TIMEOUT, {"phase": "firstByte"}, [DONE, DONE, DONE, HERE, NOT]),
        (FailureKind.TIMEOUT, {"phase": "tls"}, [DONE, DONE, HERE, NOT, NOT]),
    ],
)
def test_a_request_without_an_answer_says_in_which_phase_it_ended(
    kind: FailureKind, detail: dict[str, str], states: list[State]
) -> None:
    outcome = ended(kind, asked(), detail={**SHOP, **detail})
    reached = find_reached(outcome)
    assert reached is not None
    assert [one.state for one in reached.phases] == states


def test_a_plain_request_to_an_address_has_no_lookup_and_no_tls() -> None:
    outcome = ended(
        FailureKind.CONNECT, asked("http://10.0.0.7/"), detail={"hostname": "10.0.0.7", "port": 80}
    )
    reached = find_reached(outcome)
    assert reached is not None
    assert [one.name for one in reached.phases] == [
        "Connect",
        "Wait for the answer",
        "Read the answer",
    ]


def test_a_tcp_run_that_ran_out_of_time_ended_in_the_first_phase_without_an_end() -> None:
    seen = TcpEvidence(hostname="mail.example", port=25)
    outcome = ended(FailureKind.TIMEOUT, seen, Timings(dns=2.0))
    reached = find_reached(outcome)
    assert reached is not None
    assert [(one.state, one.took_ms) for one in reached.phases] == [(DONE, 2.0), (HERE, None)]


@pytest.mark.parametrize(
    "outcome",
    [
        ended(FailureKind.HTTP_STATUS, http_evidence(503)),
        ended(FailureKind.ASSERTION, TcpEvidence(hostname="h", port=1), Timings(dns=1.0, tcp=1.0)),
        ended(FailureKind.SCRIPT, None),
        Outcome(status=Status.PASSED),
        None,
    ],
)
def test_a_run_with_an_answer_has_no_phase_in_which_it_ended(outcome: Outcome | None) -> None:
    assert find_reached(outcome) is None


@pytest.mark.parametrize(
    ("outcome", "command"),
    [
        (
            ended(FailureKind.DNS, asked(), detail=SHOP),
            "dig shop.example",
        ),
        (
            ended(FailureKind.TLS, asked(), detail=SHOP),
            "openssl s_client -connect shop.example:443 -servername shop.example",
        ),
        (
            ended(FailureKind.CONNECT, asked("http://h/a?b='; rm -rf /"), detail=H),
            """curl -v -o /dev/null 'http://h/a?b='"'"'; rm -rf /'""",
        ),
        (
            ended(FailureKind.CONNECT, asked(f"http://h/?key={HIDDEN}"), detail=H),
            "nc -vz h 80",
        ),
        (
            ended(
                FailureKind.CONNECT,
                DnsEvidence(query="a", record_type="MX", name_server="[::1]:53", protocol="UDP"),
            ),
            "dig @::1 -p 53 a MX",
        ),
        (ended(FailureKind.EGRESS, asked(), detail=H), ""),
    ],
)
def test_the_command_to_try_asks_for_the_same_and_shows_no_secret(
    outcome: Outcome, command: str
) -> None:
    reached = find_reached(outcome)
    assert reached is not None
    assert reached.command == command
