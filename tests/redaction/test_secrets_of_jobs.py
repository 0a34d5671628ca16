"""Which values of a job are secret, in which parts, and which cannot be hidden."""

from datetime import UTC, datetime
from random import Random
from urllib.parse import quote

import msgspec
import pytest

from contract.evidence import HttpEvidence
from contract.job import ClientCertificate, Job
from contract.requests import BasicAuth, KeyValue
from contract.templates import fill_request
from redaction.policy import HIDDEN
from redaction.result import Scrubber
from tests.builders.specs import a_job, a_secret, a_url_spec, a_variable, an_http_request
from tests.builders.told_results import b64, body_of, cleaned_body, in_log, with_body

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
        (
            "null",
            "its value is too common: a word of the file formats, like true, https and callId",
        ),
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


def test_lines_of_a_secret_are_secret() -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    secret = f"-----BEGIN PRIVATE KEY-----\n{line}\nshort\n-----END PRIVATE KEY-----\n"
    assert cleaned_body(secret, f"x {line} sho PRIVATE") == f"x {HIDDEN} sho PRIVATE"


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
