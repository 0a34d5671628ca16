"""What the scrubber does to a result: what it hides, and what it leaves as it was."""

import base64
from collections.abc import Callable
from urllib.parse import quote

import msgspec
import pytest

from contract.checks import MultiStepSpec
from contract.evidence import Hop, HttpEvidence, SeenResponse, SentRequest
from contract.job import ClientCertificate, Job
from contract.requests import KeyValue
from contract.result import DnsEvidence, Failure, FailureKind, LogLine, Outcome, Result, Timings
from contract.wire import encode
from redaction.policy import HIDDEN, SENSITIVE_HEADERS
from redaction.result import Scrubber
from tests.builders.observations import a_result, an_icmp_observation, an_outcome, http_evidence
from tests.builders.specs import (
    a_job,
    a_secret,
    a_tcp_spec,
    a_url_spec,
    a_variable,
    an_http_request,
)
from tests.builders.told_results import PLACES, b64, body_of, cleaned_body, in_log, with_body

SECRET = 'p@$$ w/ö"rd&<x>%+='


@pytest.mark.parametrize("name", sorted(SENSITIVE_HEADERS | {"Authorization", "X-API-Key"}))
def test_values_of_sensitive_headers_go_without_any_secret(name: str) -> None:
    result = a_result(
        an_outcome(
            evidence=http_evidence(
                request_headers={name: "Basic abc", "accept": "*/*"},
                response_headers={name.lower(): "def", "server": "nginx"},
            )
        )
    )
    cleaned = Scrubber().clean(result)
    evidence = cleaned.result.outcome.evidence
    assert isinstance(evidence, HttpEvidence)
    assert evidence.response is not None
    assert evidence.request.headers == {name: HIDDEN, "accept": "*/*"}
    assert evidence.response.headers == {name.lower(): HIDDEN, "server": "nginx"}
    assert cleaned.replacements == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://joe:pass@host/x", f"http://{HIDDEN}@host/x"),
        ("see https://token@git.test/a and more", f"see https://{HIDDEN}@git.test/a and more"),
        ("postgres://u:p%40ss@db:5432/x?y=1", f"postgres://{HIDDEN}@db:5432/x?y=1"),
        ("http:\\/\\/joe:pass@host", f"http:\\/\\/{HIDDEN}@host"),
        ("?next=http%3A%2F%2Fa%3Ab%40host", f"?next=http%3A%2F%2F{HIDDEN}%40host"),
        ("http://joe:p@ss@host/", f"http://{HIDDEN}@host/"),
        ("mail joe@host.test", "mail joe@host.test"),
        ("https://host/@joe", "https://host/@joe"),
        ("https://host/?mail=joe@host", "https://host/?mail=joe@host"),
        ("?next=http%3A%2F%2Fhost%2F%3Fm%3Da%40b", "?next=http%3A%2F%2Fhost%2F%3Fm%3Da%40b"),
    ],
)
@pytest.mark.parametrize("place", PLACES)
def test_credentials_go_from_urls(text: str, shown: str, place: Callable[[str], Result]) -> None:
    cleaned = Scrubber().clean(place(text))
    assert cleaned.result == place(shown)
    assert (cleaned.replacements > 0) == (text != shown)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("secrets", [(), (SECRET,)])
@pytest.mark.parametrize("text", ["nothing", "joe@mail.test", f"{SECRET} http://a:b@c/"])
def test_a_clean_result_brings_its_own_bytes(
    text: str, secrets: tuple[str, ...], place: Callable[[str], Result]
) -> None:
    cleaned = Scrubber(secrets).clean(place(text))
    assert cleaned.body == encode(cleaned.result)


def test_cleaning_twice_changes_nothing_more() -> None:
    scrubber = Scrubber([SECRET])
    once = scrubber.clean(with_body(f"{SECRET} http://a:b@c/", request_headers={"cookie": "x=y"}))
    again = scrubber.clean(once.result)
    assert once.replacements == 3
    assert again.result == once.result
    assert again.replacements == 0


@pytest.mark.parametrize(
    "job",
    [
        None,
        a_job(),
        a_job(a_tcp_spec()),
        a_job(variables=(a_variable(value="not secret"),)),
        a_job(proxy_url="http://proxy.test:3128"),
        a_job(proxy_url="http://[broken"),
        a_job(proxy_url="http://user@proxy.test"),
        a_job(client_certificates=(ClientCertificate(host="*", cert="", key=""),)),
        a_job(
            a_url_spec(
                request=an_http_request(
                    headers=(KeyValue(key="accept", value="text/html"),),
                    query_parameters=(KeyValue(key="page", value="twelve"),),
                )
            )
        ),
    ],
)
@pytest.mark.parametrize(
    "outcome",
    [
        an_outcome(),
        an_outcome(evidence=http_evidence(response_headers={"server": "nginx"}, body="hello")),
        an_outcome(evidence=HttpEvidence(request=SentRequest(method="GET", url="http://h/"))),
        an_outcome(evidence=http_evidence(hops=(Hop(url="http://h/", status_code=200),))),
        an_outcome(evidence=an_icmp_observation().evidence),
        an_outcome(failure=Failure(kind=FailureKind.DNS, message="No such name.")),
        an_outcome(evidence=http_evidence(body="joe@mail.test")),
        an_outcome(evidence=http_evidence(url="http://h/?m=joe@mail.test")),
        an_outcome(evidence=http_evidence(response_headers={"from": "joe@mail.test"})),
        an_outcome(evidence=http_evidence(hops=(Hop(url="http://h/@", status_code=200),))),
    ],
)
def test_a_result_without_secrets_stays_the_same_object(job: Job | None, outcome: Outcome) -> None:
    result = a_result(outcome)
    cleaned = Scrubber().clean(result, job=job)
    assert cleaned.result is result
    assert cleaned.replacements == 0
    assert Scrubber(["another secret"]).clean(result, job=job).result is result


def test_the_longest_of_several_secrets_wins() -> None:
    scrubber = Scrubber(["token", "token-with-more"])
    cleaned = scrubber.clean(with_body("token-with-more token"))
    assert body_of(cleaned.result) == f"{HIDDEN} {HIDDEN}"
    assert cleaned.replacements == 2
    assert scrubber.skipped == 0


def test_a_secret_that_a_replacement_completes_goes_too() -> None:
    assert "foo*" not in cleaned_body("foo*", "foo" + "foo*")


def test_many_secrets_are_found_together() -> None:
    secrets = [f"s3cr3t-number-{number:03}/é" for number in range(80)]
    cleaned = Scrubber(secrets).clean(with_body(" ".join(secrets)))
    assert body_of(cleaned.result) == " ".join([HIDDEN] * 80)
    assert cleaned.replacements == 80


def test_numbers_in_objects_of_free_form_are_hidden_and_times_are_not() -> None:
    outcome = an_outcome(
        response_time_ms=47_110.0,
        timings=Timings(total=47_110),
        failure=Failure(
            kind=FailureKind.DNS, message="no", detail={"code": 47_110, "other": 1, "none": None}
        ),
        evidence=in_dns_answer({"Answer": [{"TTL": 47_110, "AD": True, "f": 0.5}]}),
    )
    cleaned = Scrubber(["47110"]).clean(a_result(outcome)).result.outcome
    assert cleaned.failure is not None
    assert cleaned.failure.detail == {"code": HIDDEN, "other": 1, "none": None}
    assert cleaned.evidence == in_dns_answer({"Answer": [{"TTL": HIDDEN, "AD": True, "f": 0.5}]})
    assert (cleaned.response_time_ms, cleaned.timings.total) == (47_110, 47_110)


def in_dns_answer(answer: dict[str, object]) -> DnsEvidence:
    return DnsEvidence(
        query="a.test", record_type="A", name_server="a", protocol="UDP", answer=answer
    )


def test_words_of_the_contract_and_the_envelope_stay() -> None:
    result = in_log("utf-8 INFO job-1")
    cleaned = Scrubber(["INFO", "job-1", "utf-8"]).clean(result).result
    assert cleaned.job_id == "job-1"
    assert cleaned.outcome.log[0].level == "INFO"
    assert cleaned.outcome.log[0].message == f"{HIDDEN} {HIDDEN} {HIDDEN}"
    assert msgspec.json.decode(msgspec.json.encode(cleaned), type=Result) == cleaned


def a_base64_body(body: str) -> Result:
    response = SeenResponse(status_code=200, body=body, body_encoding="base64")
    request = SentRequest(method="GET", url="http://h/")
    return a_result(an_outcome(evidence=HttpEvidence(request=request, response=response)))


def test_a_body_stored_as_base64_is_looked_into_and_stays_base64() -> None:
    cleaned = Scrubber([SECRET]).clean(a_base64_body(b64(b"\x89PNG" + quote(SECRET).encode())))
    assert base64.b64decode(body_of(cleaned.result)) == b"\x89PNG" + HIDDEN.encode()
    untouched = a_base64_body(b64(b"\x89PNG"))
    assert Scrubber([SECRET]).clean(untouched).result is untouched
    broken = a_base64_body("a")
    assert Scrubber([SECRET]).clean(broken).result is broken


def test_only_a_result_that_can_hold_no_secret_is_clean_at_once() -> None:
    job, plain = a_job(), with_body("plain")
    scrubber = Scrubber(kept_from_scripts=[KEY], sensitive_headers=["X-Session"])
    at_once = scrubber.clean_unsearched(plain, job=job)
    assert at_once is not None
    assert at_once.body == scrubber.clean(plain, job=job).body
    assert Scrubber([SECRET]).clean_unsearched(plain, job=job) is None
    assert scrubber.clean_unsearched(plain, job=a_job(variables=(a_secret(),))) is None
    assert scrubber.clean_unsearched(plain, job=a_job(MultiStepSpec(script="1"))) is None
    assert scrubber.clean_unsearched(plain, job=job, found=("fresh-t0ken",)) is None
    assert scrubber.clean_unsearched(plain) is None
    for text in (f"the agent's {KEY}", "http://me:my-own@site.test/"):
        assert scrubber.clean_unsearched(with_body(text), job=job) is None
    sent = with_body("plain", request_headers={"x-session": "abcd-1234"})
    assert scrubber.clean_unsearched(sent, job=job) is None


def test_sensitive_headers_are_hidden_at_once() -> None:
    sent = with_body("plain", request_headers={"cookie": "session=abcd-1234"})
    clean = Scrubber().clean_unsearched(sent, job=a_job())
    assert clean is not None
    assert b"abcd-1234" not in clean.body


def test_a_secret_of_bytes_that_are_no_text_breaks_nothing() -> None:
    assert cleaned_body("abc\udcff\udc80def", "x") == "x"
    assert cleaned_body("abc\udcff" * 2000, "x") == "x"


def test_long_and_short_secrets_go_side_by_side() -> None:
    long = "long/s3cr3t " * 1000
    cleaned = Scrubber([long, "short s3cr3t"]).clean(with_body(f"{long.strip()}, short s3cr3t"))
    assert body_of(cleaned.result) == f"{HIDDEN}, {HIDDEN}"
    assert Scrubber([long]).clean(with_body("nothing of the kind")).replacements == 0


def test_patterns_are_forgotten_when_they_grow_too_many() -> None:
    scrubber = Scrubber()
    for number in range(150):
        secret = f"s3cr3t number {number} of many, quite long"
        job = a_job(variables=(a_secret(value=secret),))
        assert body_of(scrubber.clean(with_body(secret), job=job).result) == HIDDEN
    patterns = scrubber._patterns
    assert patterns._chars <= patterns.LIMIT_CHARS
    assert len(patterns._known) < 150


KEY = "pl_" + "k3y" * 14


@pytest.mark.parametrize("form", [KEY, base64.b64encode(KEY.encode()).decode(), KEY.encode().hex()])
def test_the_agents_key_does_not_leave_with_what_a_script_brings_back(form: str) -> None:
    scrubber = Scrubber(kept_from_scripts=[KEY])
    job = a_job(MultiStepSpec(script="1"))
    assert form.encode() not in scrubber.clean(in_log(f"found {form}"), job=job).body


def test_the_agents_key_does_not_leave_with_an_uptime_result_either() -> None:
    scrubber = Scrubber(kept_from_scripts=[KEY])
    assert KEY.encode() not in scrubber.clean(in_log(f"found {KEY}"), job=a_job()).body


def test_further_headers_are_hidden_by_name_and_their_values_everywhere() -> None:
    evidence = http_evidence(response_headers={"x-session": "abcd-1234"})
    line = LogLine(after_ms=0, level="INFO", message="the session is abcd-1234")
    result = a_result(an_outcome(evidence=evidence, log=(line,)))
    scrubber = Scrubber(sensitive_headers=["X-Session"])
    assert b"abcd-1234" not in scrubber.clean(result, job=a_job()).body
    assert b"abcd-1234" in Scrubber().clean(result, job=a_job()).body
