"""No text of a result tells a sensitive header's value, whoever printed it."""

import pytest

from contract.evidence import HttpEvidence
from contract.result import Failure, FailureKind, LogLine, Outcome, Status
from contract.wire import decode, encode
from redaction.policy import HIDDEN, SENSITIVE_HEADERS
from redaction.result import HeadersInText
from tests.builders.observations import http_evidence

CALL_LOG = (
    "Error: apiRequestContext.get: connect ECONNREFUSED (shop.spec.ts:4:17)\nCall log:\n"
    "  - → GET http://127.0.0.1:9/\n    - accept: */*\n    - {name}: {value}\n    - x-id: 7"
)


def failed(message: str, *lines: str) -> Outcome:
    log = tuple(LogLine(after_ms=1.5, level="INFO", message=line) for line in lines)
    failure = Failure(kind=FailureKind.SCRIPT, message=message, detail={"errors": 1})
    return Outcome(status=Status.FAILED, failure=failure, log=log)


def hidden(outcome: Outcome, *further: str) -> tuple[Outcome, tuple[str, ...]]:
    return HeadersInText(SENSITIVE_HEADERS | set(further)).hide(outcome)


@pytest.mark.parametrize("name", ["authorization", "Cookie", "X-API-Key", "x-session"])
def test_a_call_log_keeps_the_name_of_such_a_header_and_the_other_headers(name: str) -> None:
    said = CALL_LOG.format(name=name, value="id=of-nobody")
    outcome, found = hidden(failed(said), "x-session")
    assert outcome.failure is not None
    assert outcome.failure.message == CALL_LOG.format(name=name, value=HIDDEN)
    assert len(found) == 1
    assert found[0].endswith("of-nobody")


@pytest.mark.parametrize(
    "line",
    [
        "{ authorization: 'Bearer of-nobody', accept: '*/*' }",
        '{"authorization": "Bearer of-nobody"}',
        "'    - authorization: Bearer of-nobody',",
        '[{ "name": "Authorization", "value": "Bearer of-nobody" }]',
        "\x1b[32m'authorization: Bearer of-nobody'\x1b[39m",
    ],
)
def test_what_a_script_prints_of_such_a_header_is_hidden(line: str) -> None:
    outcome, _ = hidden(failed("no", line, "the next line"))
    assert "of-nobody" not in outcome.log[0].message
    assert "uthorization" in outcome.log[0].message
    assert outcome.log[1].message == "the next line"


def test_what_a_server_answered_is_left_to_those_who_know_what_it_is() -> None:
    evidence = http_evidence(body="cookie: one-of-a-recipe")
    outcome, found = hidden(Outcome(status=Status.PASSED, evidence=evidence))
    assert isinstance(outcome.evidence, HttpEvidence)
    assert outcome.evidence is evidence
    assert found == ()


def test_an_outcome_that_tells_of_no_such_header_stays_as_it_is() -> None:
    outcome = failed("no api key", "good biscuits", "x-id: 7")
    assert hidden(outcome)[0] is outcome
    outcome = failed("no authorization", "cookies are good", "x-id: 7")
    assert hidden(outcome) == (outcome, ())


def test_a_strange_text_around_it_breaks_nothing() -> None:
    line = 'authorization: "a \\"quoted\\" one" ü \U0001f600\\ \0 {"cookie": "\\'
    outcome, _ = hidden(failed("no", line, "x"))
    assert decode(encode(outcome), Outcome) == outcome
    assert "quoted" not in outcome.log[0].message
    assert outcome.log[1].message == "x"
