"""The beginning of a secret goes where a text was cut."""

from typing import Any, Final

import msgspec
import pytest

from contract.assertions import AssertionResult, Comparison, Source
from contract.evidence import (
    HttpEvidence,
    MultiStepEvidence,
    PlaywrightEvidence,
    ScriptError,
    SeenResponse,
    SentRequest,
    SuiteTest,
)
from contract.result import Failure, FailureKind, LogLine, Outcome, Result, TcpEvidence
from redaction.policy import HIDDEN
from redaction.result import Scrubber
from tests.builders.observations import a_result, an_outcome
from tests.builders.told_results import body_of

VALUE = "v3ry/secret+value"


@pytest.mark.parametrize("cut", [4, 8, len(VALUE) - 1])
def test_the_beginning_of_a_secret_at_the_end_of_a_cut_text_goes(cut: int) -> None:
    start = VALUE[:cut]
    scrubber = Scrubber([VALUE])
    body = scrubber.clean(a_cut_body(f"long {start}", truncated=True))
    assert body_of(body.result) == f"long {HIDDEN}"
    assert body.replacements == 1
    whole = a_cut_body(f"long {start}", truncated=False)
    assert scrubber.clean(whole).result is whole
    tcp = TcpEvidence(hostname="h", port=1, response=f"x{start}", truncated=True)
    cleaned = scrubber.clean(a_result(an_outcome(evidence=tcp))).result.outcome.evidence
    assert cleaned == msgspec.structs.replace(tcp, response=f"x{HIDDEN}")


def test_a_secret_that_a_cut_end_completes_goes_too() -> None:
    other = f"foo{HIDDEN}"
    cleaned = Scrubber([VALUE, other]).clean(a_cut_body(f"a foo{VALUE[:8]}", truncated=True))
    assert body_of(cleaned.result) == f"a {HIDDEN}"
    assert other.encode() not in cleaned.body


def test_a_cut_text_without_a_secret_at_its_end_stays() -> None:
    harmless = a_cut_body("long text v3r", truncated=True)
    assert Scrubber([VALUE]).clean(harmless).result is harmless


def a_cut_body(body: str, *, truncated: bool) -> Result:
    response = SeenResponse(status_code=200, body=body, truncated=truncated)
    request = SentRequest(method="GET", url="http://h/")
    return a_result(an_outcome(evidence=HttpEvidence(request=request, response=response)))


def test_cut_texts_of_assertions_lose_the_beginning_of_a_secret() -> None:
    start = VALUE[:9]
    actual = "x" * 10_000 + start
    error = f"TEXT_BODY should equal `abc{start}…`, but it is `x{start}…`."
    assertion = AssertionResult(
        source=Source.TEXT_BODY, comparison=Comparison.EQUALS, order=0, actual=actual, error=error
    )
    failure = Failure(kind=FailureKind.ASSERTION, message=error)
    outcome = an_outcome(assertions=(assertion,), failure=failure)
    cleaned = Scrubber([VALUE]).clean(a_result(outcome)).result.outcome
    assert cleaned.assertions[0].actual == "x" * 10_000 + HIDDEN
    shown = f"TEXT_BODY should equal `abc{HIDDEN}…`, but it is `x{HIDDEN}…`."
    assert cleaned.assertions[0].error == shown
    assert cleaned.failure is not None
    assert cleaned.failure.message == shown


def test_cut_texts_of_scripts_lose_the_beginning_of_a_secret() -> None:
    start = f"Fill {VALUE[:9]}…"
    test = SuiteTest(
        title=start,
        file="a.spec.ts",
        line=1,
        status="failed",
        outcome="unexpected",
        took_ms=1,
        errors=(start,),
    )
    log = (LogLine(after_ms=0, level="INFO", message=start),)
    outcome = an_outcome(
        evidence=PlaywrightEvidence(node_version="24", tests=(test,)),
        log=log,
        degraded_because=start,
    )
    cleaned = Scrubber([VALUE]).clean(a_result(outcome)).result.outcome
    assert isinstance(cleaned.evidence, PlaywrightEvidence)
    (seen,) = cleaned.evidence.tests
    told = {seen.title, *seen.errors, cleaned.log[0].message, cleaned.degraded_because}
    assert told == {f"Fill {HIDDEN}…"}


CUT: Final = f"Fill {VALUE[:9]}…"
CUT_FIELDS: Final[dict[str, Any]] = {
    "failure": Failure(kind=FailureKind.SCRIPT, message=CUT, detail={"where": CUT}),
    "degraded_because": CUT,
    "assertions": (
        AssertionResult(source=Source.TEXT_BODY, comparison=Comparison.EQUALS, order=0, error=CUT),
    ),
    "evidence": MultiStepEvidence(runtime_id="x", errors=(ScriptError(message=CUT),)),
    "log": (LogLine(after_ms=0, level="INFO", message=CUT),),
}


def test_each_field_of_an_outcome_that_may_have_been_cut_is_known() -> None:
    numbers = {"status", "response_time_ms", "over_max_response_time", "timings"}
    names = {field.name for field in msgspec.structs.fields(Outcome)}
    assert names - numbers - {"artifacts"} == set(CUT_FIELDS)


@pytest.mark.parametrize("field", CUT_FIELDS)
def test_no_field_of_an_outcome_ends_in_the_beginning_of_a_secret(field: str) -> None:
    outcome = an_outcome(**{field: CUT_FIELDS[field]})
    cleaned = Scrubber([VALUE]).clean(a_result(outcome)).result.outcome
    sent = msgspec.json.encode(cleaned).decode()
    assert f"Fill {HIDDEN}…" in sent
    assert VALUE[:9] not in sent


def test_an_assertion_that_holds_is_cut_too() -> None:
    assertion = AssertionResult(
        source=Source.TEXT_BODY, comparison=Comparison.NOT_EMPTY, order=0, actual=VALUE[:9]
    )
    long = msgspec.structs.replace(assertion, actual="x" * 10_000 + VALUE[:9])
    outcome = an_outcome(assertions=(assertion, long))
    cleaned = Scrubber([VALUE]).clean(a_result(outcome)).result.outcome
    assert cleaned.assertions[0] == assertion
    assert cleaned.assertions[1].actual == "x" * 10_000 + HIDDEN
