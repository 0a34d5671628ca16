"""What is refused as a secret: words of the formats, and signs that are all over them."""

import json

import pytest

from redaction.policy import job_secrets, secret_sources, select_usable, unhidden_variables
from redaction.replacer import SecretPattern
from tests.builders.specs import a_job, a_secret

TRACE = {
    "type": "frame-snapshot",
    "snapshot": {
        "callId": "call@9",
        "pageId": "page@1",
        "html": ["BODY", {"class": "a"}, '"" \\\\'],
    },
}


@pytest.mark.parametrize(
    "secret", ["snapshot", "callId", "data", "Type", "shot", "http://", "LOCALHOST", "screencast"]
)
def test_words_of_the_formats_and_their_parts_are_refused(secret: str) -> None:
    assert select_usable([secret]) == ()


@pytest.mark.parametrize(
    "secret", ['"' * 8, "\\" * 8, '"\\"\\', "{}{}{}", "----", "*!*!*", "%%%%%%"]
)
def test_a_few_signs_alone_are_refused(secret: str) -> None:
    assert select_usable([secret]) == ()


@pytest.mark.parametrize("secret", ["!?#$", "aaaa", "0000", "snapshots!", "ab*!", "пароль"])
def test_what_is_neither_is_a_secret(secret: str) -> None:
    assert select_usable([secret]) == (secret,)


WORD = "its value is too common: a word of the file formats, like true, https and callId"
SIGNS = "it has no letters or digits, and fewer than 4 different characters"


@pytest.mark.parametrize(
    ("secret", "because"), [("snapshot", WORD), ('"' * 8, SIGNS), ("\\" * 8, SIGNS)]
)
def test_a_trace_is_left_as_it_is_and_the_variable_named(secret: str, because: str) -> None:
    text = json.dumps(TRACE).encode()
    assert SecretPattern(select_usable([secret])).hide(text) == (text, 0)
    job = a_job(variables=(a_secret(value=secret),))
    assert unhidden_variables(job) == (("TOKEN", because),)


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ("https://shop:s3s%40me@shop.test/a", ("s3s%40me", "s3s@me")),
        ("https://shop.test/a@b", ()),
        ("mail@shop.test", ()),
        ("https://[@", ()),
    ],
)
def test_of_an_address_that_is_secret_the_password_is_one_too(
    value: str, hidden: tuple[str, ...]
) -> None:
    """A page that is opened with it tells the password by itself."""
    job = a_job(variables=(a_secret(value=value),))
    assert job_secrets(job) == (value, *hidden)
    sources = secret_sources(job, found=(), agent_has_secrets=False)
    assert sources == "the check's secret variables (TOKEN)"
