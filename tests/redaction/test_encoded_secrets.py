"""A secret goes in every encoding, in every place, and as it is filled in."""

import base64
import html
import json
import string
from collections.abc import Callable
from random import Random
from urllib.parse import quote, quote_plus, unquote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.templates import UNENCODED
from redaction.forms import MIXED_LIMIT_CHARS
from redaction.policy import HIDDEN, select_usable
from redaction.result import Scrubber
from tests.builders.told_results import PLACES, b64, cleaned_body

SECRET = 'p@$$ w/ö"rd&<x>%+='
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
    [
        SECRET,
        "s3cr3t-t0ken_value",
        "Hunter2!",
        "a\nb\tc\\d/e",
        "пароль",
        "tök😀en",
        "4711",
        "ab1\ncd2\nef3",
    ],
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
        and select_usable([text]) == (text,)
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


@pytest.mark.parametrize("size", [257, 1700, MIXED_LIMIT_CHARS + 1])
@pytest.mark.parametrize("encoder", ["raw", "URL", "JSON"])
def test_long_secrets_go_in_their_usual_forms(size: int, encoder: str) -> None:
    secret = "".join(Random(size).choices('abc/d+e "f', k=size)).strip()
    assert cleaned_body(secret, f"x {ENCODERS[encoder](secret)} y") == f"x {HIDDEN} y"
