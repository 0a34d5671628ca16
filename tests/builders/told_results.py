"""Results that tell a text, each in one place of theirs."""

import base64

from contract.assertions import AssertionResult, Comparison, Source
from contract.evidence import Hop, HttpEvidence
from contract.result import DnsEvidence, Failure, FailureKind, LogLine, Result, TcpEvidence
from redaction.result import Scrubber
from tests.builders.observations import a_result, an_outcome, http_evidence


def with_body(body: str, **more: object) -> Result:
    return a_result(an_outcome(evidence=http_evidence(body=body, **more)))  # type: ignore[arg-type]


def body_of(result: Result) -> str:
    evidence = result.outcome.evidence
    assert isinstance(evidence, HttpEvidence)
    assert evidence.response is not None
    return evidence.response.body


def cleaned_body(secret: str, body: str) -> str:
    return body_of(Scrubber([secret]).clean(with_body(body)).result)


def b64(text: bytes) -> str:
    return base64.b64encode(text).decode()


def in_failure(text: str) -> Result:
    failure = Failure(kind=FailureKind.SCRIPT, message=text, detail={text: text})
    return a_result(an_outcome(failure=failure))


def in_assertion(text: str) -> Result:
    result = AssertionResult(
        source=Source.TEXT_BODY,
        comparison=Comparison.EQUALS,
        property=text,
        target=text,
        regex=text,
        order=0,
        actual=text,
        error=text,
    )
    return a_result(an_outcome(assertions=(result,)))


def in_log(text: str) -> Result:
    line = LogLine(after_ms=1, level="INFO", message=text)
    return a_result(an_outcome(log=(line,)))


def in_headers(text: str) -> Result:
    evidence = http_evidence(request_headers={text: text}, response_headers={"x-echo": text})
    return a_result(an_outcome(evidence=evidence))


def in_hops(text: str) -> Result:
    hop = Hop(url=text, status_code=302, location=text)
    return a_result(an_outcome(evidence=http_evidence(hops=(hop,))))


def in_dns(text: str) -> Result:
    evidence = DnsEvidence(
        query=text,
        record_type="TXT",
        name_server="127.0.0.1:53",
        protocol="UDP",
        answer={"Answer": [{"name": text, "data": text}], text: None},
        text=text,
    )
    return a_result(an_outcome(evidence=evidence))


def in_tcp(text: str) -> Result:
    return a_result(an_outcome(evidence=TcpEvidence(hostname="a.test", port=1, response=text)))


PLACES = [
    with_body,
    lambda text: with_body("", url=f"http://h/{text}"),
    in_failure,
    in_assertion,
    in_log,
    in_headers,
    in_hops,
    in_dns,
    in_tcp,
]
