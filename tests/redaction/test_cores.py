"""Parts of forms: whatever holds a form of a secret holds one of its cores, or a sign."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redaction import forms as whole
from redaction.compiled import compile_forms, contains_form
from redaction.decoders import sign_runs
from redaction.forms import text_cores, whole_cores, whole_texts
from redaction.replacer import SHOWN, SecretPattern
from tests.builders.encodings import BY_CHARACTER, Encoding

SECRETS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=4, max_size=40)
QUOTED = 'some"words"and"quotes"in-a-row'


def is_found(forms: Iterable[str], text: bytes) -> bool:
    return any(expression.search(text) is not None for expression in compile_forms(list(forms)))


@given(secret=SECRETS, encoding=st.sampled_from(BY_CHARACTER))
@settings(max_examples=200, deadline=None)
def test_a_secret_in_any_encoding_of_characters_shows_a_core(
    secret: str, encoding: Encoding
) -> None:
    text = b"<" + encoding.encode(secret.encode()) + b">"
    has_sign = any(contains_form(sign, text) for sign in sign_runs())
    assert has_sign or is_found([*text_cores(secret), *whole_cores(secret)], text)


@given(secret=SECRETS, coding=st.sampled_from(whole.CODINGS))
@settings(max_examples=200, deadline=None)
def test_a_secret_that_is_encoded_at_once_shows_a_core_or_a_sign(
    secret: str, coding: whole.Coding
) -> None:
    cores = tuple(whole_cores(secret))
    for text in whole_texts(secret):
        for plain in coding.encode(secret, text.encode()):
            written = b'"AAA' + plain + b'AAA"'
            has_sign = any(contains_form(sign, written) for sign in sign_runs())
            assert has_sign or is_found(cores, written)


@pytest.mark.parametrize(
    "quote",
    [
        b"\\" * 1000 + b'"',
        b"%" + b"25" * 500 + b"22",
        (b"%" + b"25" * 9 + b"5c") * 60 + b'"',
        b"&" + b"amp;" * 300 + b"quot;",
        b"&#" + b"0" * 900 + b"34;",
        b"=" + b"3D" * 500 + b"22",
    ],
)
def test_no_run_of_escapes_is_so_long_that_it_parts_a_secret_from_its_core(quote: bytes) -> None:
    written = QUOTED.encode().replace(b'"', quote)
    hidden, count = SecretPattern([QUOTED]).hide(b"<p>" + written + b"</p>")
    assert (hidden, count) == (b"<p>" + SHOWN + b"</p>", 1)
