import base64
import html
import json
import string
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.assertions import AssertionResult, Comparison, Source
from contract.http_evidence import Hop, HttpEvidence, SeenResponse, SentRequest
from contract.job import ClientCertificate, Job
from contract.requests import BasicAuth, KeyValue
from contract.result import (
    DnsEvidence,
    Failure,
    FailureKind,
    LogLine,
    Outcome,
    Result,
    TcpEvidence,
    Timings,
)
from contract.script_evidence import MultiStepEvidence, ScriptError
from contract.scripted import MultiStepSpec
from contract.suite_evidence import PlaywrightEvidence, SuiteTest
from contract.wire import encode
from runners.kit.scrubbing.scrub import Scrubber
from runners.kit.secrets.forms import MIXED_LIMIT_CHARS
from runners.kit.secrets.job_secrets import usable
from runners.kit.secrets.sensitive import HIDDEN, SENSITIVE_HEADERS
from runners.kit.variables import UNENCODED, fill_request
from tests.builders.observations import a_result, an_icmp_observation, an_outcome, http_evidence
from tests.builders.specs import (
    a_job,
    a_secret,
    a_tcp_spec,
    a_url_spec,
    a_variable,
    an_http_request,
)

SECRET = 'p@$$ w/ö"rd&<x>%+='


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


ENCODERS: dict[str, Callable[[str], str]] = {
    "raw": lambda text: text,
    "URL": lambda text: quote(text, safe=""),
    "URL in small letters": lambda text: lower_percent(quote(text, safe="")),
    "URL with slashes": lambda text: quote(text, safe="/:?&=+$,;@"),
    "form": quote_plus,
    "URL twice": lambda text: quote(quote(text, safe=""), safe=""),
    "form, then URL": lambda text: quote(quote_plus(text), safe=""),
    "JSON": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON in ASCII": lambda text: json.dumps(text)[1:-1],
    "JSON twice": lambda text: json.dumps(json.dumps(text))[1:-1],
    "JSON for scripts": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "HTML": html.escape,
    "HTML twice": lambda text: html.escape(html.escape(text)),
    "decimal entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(char):X};" for char in text),
    "backslash x": lambda text: "".join(
        f"\\x{ord(char):02x}" if ord(char) < 256 else char for char in text
    ),
    "all percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "hexadecimal": lambda text: text.encode().hex(),
    "HEXADECIMAL": lambda text: text.encode().hex().upper(),
    "base64": lambda text: b64(text.encode()),
    "base64, shifted by one": lambda text: b64(b"u" + text.encode() + b"zz"),
    "base64, shifted by two": lambda text: b64(b"u:" + text.encode() + b"z"),
    "base64url": lambda text: base64.urlsafe_b64encode(b"user:" + text.encode()).decode(),
    "base64 in a URL": lambda text: quote(b64(b"me:" + text.encode()), safe=""),
    "base64 of JSON": lambda text: b64(json.dumps({"a": text}).encode()),
    "base64 of a form": lambda text: b64(f"a={quote_plus(text)}&b".encode()),
    "mixed": lambda text: "".join(
        ENCODERS[("raw", "URL", "decimal entities", "JSON")[at % 4]](char)
        for at, char in enumerate(text)
    ),
}


def lower_percent(text: str) -> str:
    start, *rest = text.split("%")
    return "%".join([start, *(part[:2].lower() + part[2:] for part in rest)])


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(
    "secret",
    [SECRET, "s3cr3t-t0ken_value", "Hunter2!", "a\nb\tc\\d/e", "пароль", "tök😀en", "4711"],
)
def test_a_secret_goes_in_every_encoding(encoder: str, secret: str) -> None:
    encoded = ENCODERS[encoder](secret)
    cleaned = cleaned_body(secret, f"before {encoded} after")
    assert encoded not in cleaned
    assert HIDDEN in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")


SECRETS = st.text(
    st.characters(codec="utf-8", exclude_characters="*", exclude_categories=["Cs"]),
    min_size=8,
    max_size=24,
).filter(
    lambda text: (
        text == text.strip()
        and "\r" not in text
        and len(set(text)) > 3
        and usable([text]) == (text,)
    )
)


@given(SECRETS, st.sampled_from(sorted(ENCODERS)), st.sampled_from(sorted(ENCODERS)), st.data())
def test_no_secret_survives_in_any_encoding_in_any_place(
    secret: str, one: str, other: str, data: st.DataObject
) -> None:
    forms = [ENCODERS[one](secret), ENCODERS[other](secret)]
    place = data.draw(st.sampled_from(PLACES))
    cleaned = Scrubber([secret]).clean(place(" ".join(forms)))
    written = msgspec.json.encode(cleaned.result.outcome)
    assert written in cleaned.body
    for form in forms:
        for text in (form, json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1]):
            assert text.encode() not in written


FILLS: dict[str, Callable[[str], str]] = {
    "double braces": lambda text: quote(text, safe=UNENCODED),
    "triple braces in an address": lambda text: quote(text, safe=string.punctuation),
    "query": lambda text: quote(text, safe=""),
    "double braces in a form, read there": lambda text: unquote_plus(quote(text, safe=UNENCODED)),
    "double braces in GraphQL": lambda text: json.dumps(quote(text, safe=UNENCODED))[1:-1],
    "triple braces in GraphQL": lambda text: json.dumps(text)[1:-1],
}
"""What goes out for a variable, or arrives."""


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("secret", ["p ss wörd&%", SECRET, "a+b c/d", "50%25+more"])
def test_what_is_filled_in_for_a_secret_is_secret_in_every_encoding(
    secret: str, fill: str, encoder: str
) -> None:
    encoded = ENCODERS[encoder](FILLS[fill](secret))
    cleaned = cleaned_body(secret, f"before {encoded} after")
    assert encoded not in cleaned
    assert HIDDEN in cleaned


@given(SECRETS, st.sampled_from(sorted(FILLS)), st.sampled_from(sorted(ENCODERS)))
def test_no_filled_secret_survives_in_any_encoding(secret: str, fill: str, encoder: str) -> None:
    encoded = ENCODERS[encoder](FILLS[fill](secret))
    assert encoded not in cleaned_body(secret, f"before {encoded} after")


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


VALUE = "v3ry/secret+value"


def a_job_with(**request: object) -> Job:
    return a_job(a_url_spec(request=an_http_request(**request)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "job",
    [
        a_job(variables=(a_secret(value=VALUE),)),
        a_job(variables=(a_variable(value=VALUE, locked=True),)),
        a_job(variables=(a_secret(value=f"  {VALUE}\n"),)),
        a_job(proxy_url=f"http://joe:{quote(VALUE, safe='')}@proxy.test:3128"),
        a_job(
            client_certificates=(ClientCertificate(host="*", cert="", key="", passphrase=VALUE),)
        ),
        a_job_with(headers=(KeyValue(key="X-Token", value=VALUE, locked=True),)),
        a_job_with(headers=(KeyValue(key="Authorization", value=f"Bearer {VALUE}"),)),
        a_job_with(headers=(KeyValue(key="cookie", value=f"a=1; session={VALUE}; b=2"),)),
        a_job_with(query_parameters=(KeyValue(key="key", value=VALUE, locked=True),)),
        a_job_with(basic_auth=BasicAuth(username="joe", password=VALUE)),
        a_job_with(url=f"http://joe:{quote(VALUE, safe='')}@host/"),
        a_job_with(headers=(KeyValue(key="x-api-key", value=f"{VALUE}{{{{$UUID}}}}"),)),
    ],
)
def test_a_jobs_secrets_are_found(job: Job) -> None:
    cleaned = Scrubber().clean(with_body(f"you sent {quote(VALUE, safe='')}"), job=job)
    assert body_of(cleaned.result) == f"you sent {HIDDEN}"
    assert cleaned.replacements == 1


def test_a_variable_in_a_locked_value_is_secret_there() -> None:
    job = a_job(
        a_url_spec(
            request=an_http_request(
                headers=(KeyValue(key="x-a", value="{{TOKEN}}", locked=True),),
                query_parameters=(KeyValue(key="b", value="{{{ OPEN }}}"),),
                basic_auth=BasicAuth(username="joe", password="{{ PASS }}"),
            )
        ),
        variables=(
            a_variable("TOKEN", VALUE),
            a_variable("OPEN", "open value"),
            a_variable("PASS", "pass word"),
        ),
    )
    cleaned = Scrubber().clean(with_body(f"{VALUE}, open value, pass word"), job=job)
    assert body_of(cleaned.result) == f"{HIDDEN}, open value, {HIDDEN}"


@pytest.mark.parametrize("password", ["{{A}}{{B}}", "{{{A}}}{{B}}", "{{ A }}%20%26{{{B}}}"])
@pytest.mark.parametrize("holder", ["basic auth", "address", "locked header", "cookie"])
def test_a_value_that_is_put_together_of_variables_is_secret_as_a_whole(
    password: str, holder: str
) -> None:
    variables = (a_variable("A", "a1 "), a_variable("B", "&b2"))
    fields: dict[str, dict[str, object]] = {
        "basic auth": {"basic_auth": BasicAuth(username="joe", password=password)},
        "address": {"url": f"http://joe:{password}@host/{{{{$UUID}}}}"},
        "locked header": {"headers": (KeyValue(key="x-pin", value=password, locked=True),)},
        "cookie": {"headers": (KeyValue(key="cookie", value=f"pin={password}"),)},
    }
    job = msgspec.structs.replace(a_job_with(**fields[holder]), variables=variables)
    request = fill_request(
        an_http_request(basic_auth=BasicAuth(username="joe", password=password)),
        variables,
        now=lambda: datetime.now(UTC),
        random=Random(1),
    )
    assert request.basic_auth is not None
    sent = b64(f"joe:{request.basic_auth.password}".encode())
    assert sent not in body_of(Scrubber().clean(with_body(sent), job=job).result)


def test_a_locked_header_is_hidden_by_its_name() -> None:
    job = a_job_with(headers=(KeyValue(key="X-Pin", value="1", locked=True),))
    cleaned = Scrubber().clean(with_body("1", request_headers={"x-pin": "1"}), job=job)
    evidence = cleaned.result.outcome.evidence
    assert isinstance(evidence, HttpEvidence)
    assert evidence.request.headers == {"x-pin": HIDDEN}
    assert body_of(cleaned.result) == "1"


@pytest.mark.parametrize("secret", ["", "123", "true", "HTTPS", "null", "*****", "   "])
def test_what_would_destroy_the_result_is_not_hidden(secret: str) -> None:
    scrubber = Scrubber([secret])
    assert scrubber.skipped == 1
    assert scrubber.clean(with_body(f"a {secret} b")).replacements == 0


@pytest.mark.parametrize(
    ("value", "because"),
    [
        ("123", "it has fewer than 4 characters"),
        ("null", "its value is too common, a word of the formats as true, https and callId are"),
    ],
)
def test_the_log_names_a_variable_that_is_not_hidden_and_why_and_not_its_value(
    value: str, because: str
) -> None:
    job = a_job(variables=(a_secret("PIN", value), a_secret("LONG", VALUE), a_variable("A", "1")))
    lines = Scrubber().clean(with_body("x"), job=job).result.outcome.log
    assert [line.level for line in lines] == ["WARN"]
    assert lines[0].message == f"PIN is not hidden: {because}."
    assert value not in lines[0].message


def test_a_variable_with_the_name_of_a_secret_is_hidden_though_nobody_marked_it() -> None:
    job = a_job(variables=(a_variable("SERVICE_SECRET_DB", VALUE), a_variable("NAME", "plain")))
    cleaned = Scrubber().clean(with_body(f"{VALUE} plain"), job=job)
    assert body_of(cleaned.result) == f"{HIDDEN} plain"


def test_a_variable_without_a_value_is_nothing_to_warn_of() -> None:
    job = a_job(variables=(a_secret("PIN", ""),))
    assert Scrubber().clean(with_body("x"), job=job).result.outcome.log == ()


def test_the_longest_of_several_secrets_wins() -> None:
    scrubber = Scrubber(["token", "token-with-more"])
    cleaned = scrubber.clean(with_body("token-with-more token"))
    assert body_of(cleaned.result) == f"{HIDDEN} {HIDDEN}"
    assert cleaned.replacements == 2
    assert scrubber.skipped == 0


def test_a_secret_that_a_replacement_completes_goes_too() -> None:
    assert "foo*" not in cleaned_body("foo*", "foo" + "foo*")


def test_lines_of_a_secret_are_secret() -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    secret = f"-----BEGIN PRIVATE KEY-----\n{line}\nshort\n-----END PRIVATE KEY-----\n"
    assert cleaned_body(secret, f"x {line} short") == f"x {HIDDEN} short"


@pytest.mark.parametrize("size", [257, 1700, MIXED_LIMIT_CHARS + 1])
@pytest.mark.parametrize("encoder", ["raw", "URL", "JSON"])
def test_long_secrets_go_in_their_usual_forms(size: int, encoder: str) -> None:
    secret = ('abc/d+e "f' * size)[:size].strip()
    assert cleaned_body(secret, f"x {ENCODERS[encoder](secret)} y") == f"x {HIDDEN} y"


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


def test_only_a_result_that_can_hold_no_secret_is_clean_at_once() -> None:
    job, plain = a_job(), with_body("plain")
    scrubber = Scrubber(kept_from_scripts=[KEY], sensitive_headers=["X-Session"])
    at_once = scrubber.at_once(plain, job=job)
    assert at_once is not None
    assert at_once.body == scrubber.clean(plain, job=job).body
    assert Scrubber([SECRET]).at_once(plain, job=job) is None
    assert scrubber.at_once(plain, job=a_job(variables=(a_secret(),))) is None
    assert scrubber.at_once(plain, job=a_job(MultiStepSpec(script="1"))) is None
    assert scrubber.at_once(plain, job=job, found=("fresh-t0ken",)) is None
    assert scrubber.at_once(plain) is None
    for text in (f"the agent's {KEY}", "http://me:my-own@site.test/"):
        assert scrubber.at_once(with_body(text), job=job) is None
    sent = with_body("plain", request_headers={"x-session": "abcd-1234"})
    assert scrubber.at_once(sent, job=job) is None


def test_sensitive_headers_are_hidden_at_once() -> None:
    sent = with_body("plain", request_headers={"cookie": "session=abcd-1234"})
    clean = Scrubber().at_once(sent, job=a_job())
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
PEM = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "\n".join(n * 64 for n in "abc")
    + "\n-----END PRIVATE KEY-----\n"
)


def test_a_client_key_is_secret_as_a_whole_and_line_by_line() -> None:
    job = a_job(client_certificates=(ClientCertificate(host="*", cert="", key=PEM),))
    said = Scrubber().clean(in_log(f"{PEM} {'b' * 64} -----BEGIN PRIVATE KEY-----"), job=job)
    assert b"b" * 64 not in said.body
    assert said.result.outcome.log[0].message.endswith(" -----BEGIN PRIVATE KEY-----")


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
