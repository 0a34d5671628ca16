"""No key and no secret survives redaction, in any of the usual encodings."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.telemetry.logs import Redactor
from redaction.policy import HIDDEN as MASK
from redaction.policy import select_usable

SECRET = "s3cr et/vä+lue"
secrets = st.text(st.characters(codec="utf-8"), min_size=8).filter(
    lambda text: len(text.strip()) >= 8 and text.strip() in select_usable([text])
)


@pytest.mark.parametrize("key", ["pl_abcDEF123456", "cu_0f9e8d7c6b5a", "pl_a-b_c-d_e"])
def test_our_keys_are_known_by_their_shape(key: str) -> None:
    assert Redactor().text(f"refused {key}, bye") == f"refused {MASK}, bye"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc.def.ghi", f"Authorization: {MASK}"),
        ("authorization: Basic dXNlcjpwYXNz", f"authorization: {MASK}"),
        ("{'Authorization': 'Token abc'}", f"{{'Authorization': '{MASK}'}}"),
        ('{"proxy-authorization":"Basic eA=="}', f'{{"proxy-authorization":"{MASK}"}}'),
        ("sent bearer abcdefgh to it", f"sent bearer {MASK} to it"),
        ("Cookie: a=b; c=d\nHost: x", f"Cookie: {MASK}\nHost: x"),
        ("Set-Cookie: sid=42; Path=/", f"Set-Cookie: {MASK}"),
        ("X-API-Key: 12345", f"X-API-Key: {MASK}"),
        ("via http://joe:pw@proxy:3128/", f"via http://{MASK}@proxy:3128/"),
    ],
)
def test_credentials_are_known_by_their_place(text: str, clean: str) -> None:
    assert Redactor().text(text) == clean


@pytest.mark.parametrize("text", ["", "please", "PLAYWRIGHT", "cu_1", "job.finished", "a: b=c"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor([SECRET]).text(text) == text


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        quote(SECRET).lower(),
        json.dumps(SECRET)[1:-1],
        SECRET.encode().hex(),
        repr(SECRET)[1:-1],
    ],
)
def test_a_secret_is_masked_in_each_form(form: str) -> None:
    assert Redactor([SECRET]).text(f"<{form}>") == f"<{MASK}>"


@given(secret=secrets, before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_a_secret_inside_base64_cannot_be_read_back(
    secret: str, before: bytes, after: bytes
) -> None:
    coded = base64.b64encode(before + secret.strip().encode() + after).decode()
    assert MASK in Redactor([secret]).text(coded)


@given(secret=secrets, before=st.text(max_size=5), after=st.text(max_size=5))
def test_no_secret_survives_in_any_text(secret: str, before: str, after: str) -> None:
    assert secret.strip() not in Redactor([secret]).text(before + secret + after).replace(MASK, "")


def test_a_secret_that_is_part_of_another_does_not_save_the_rest() -> None:
    assert Redactor(["abcd", "abcdefgh"]).text("abcdefgh") == MASK


@pytest.mark.parametrize("secret", ["", " ", "abc", "  a "])
def test_a_value_too_short_to_be_a_secret_blanks_nothing(secret: str) -> None:
    assert Redactor([secret]).text("a b c abc") == "a b c abc"


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "api_key",
        "Authorization",
        "set-cookie",
        "client_secret",
        "private_key",
        "SECRETS",
    ],
)
def test_a_field_whose_name_tells_is_masked_whole(name: str) -> None:
    assert Redactor().field(name, "x") == MASK
    assert Redactor().value({"outer": {name: ["x"]}}) == {"outer": {name: MASK}}


def test_numbers_stay_numbers_and_unset_fields_stay_unset() -> None:
    fields = {"took_ms": 1.5, "count": 3, "ok": True, "password": None, "items": ("a", 1)}
    assert Redactor().value(fields) == {**fields, "items": ["a", 1]}


def test_a_foreign_object_is_read_as_text() -> None:
    class Foreign:
        def __str__(self) -> str:
            return f"Foreign({SECRET})"

    assert Redactor([SECRET]).value(Foreign()) == f"Foreign({MASK})"
