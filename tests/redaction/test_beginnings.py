"""What a page tells of a field while a secret is typed into it: no beginning survives."""

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redaction.policy import HIDDEN, shortest_prefix, with_certain_prefixes
from redaction.replacer import SecretPattern
from redaction.scanner.scan import scan_bytes
from tests.builders.encodings import ENCODINGS, Encoding, encoded

WRITTEN: dict[str, Callable[[str], bytes]] = {
    "raw": str.encode,
    "json": lambda text: json.dumps(text)[1:-1].encode(),
    "percent": lambda text: quote(text, safe="").encode(),
    "form": lambda text: quote_plus(text).encode(),
    "percent twice": lambda text: quote(quote(text, safe=""), safe="").encode(),
    "html": lambda text: html.escape(text).encode(),
    "entities": lambda text: "".join(f"&#{ord(char)};" for char in text).encode(),
    "hexadecimal": lambda text: text.encode().hex().encode(),
    "base64": lambda text: base64.b64encode(text.encode()),
    "base64 among others": lambda text: base64.b64encode(b"u:" + text.encode() + b"}"),
    "base64 of percent": lambda text: base64.b64encode(quote(text, safe="").encode()),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")),
    "UTF-16": lambda text: text.encode("utf-16-le"),
}
SIGNS = "!#$%&'()+,/:;<=>?@[]^`{|}~ üß€\""
TYPED = st.text(st.sampled_from("abcdefghABCDEFGH0123" + SIGNS), min_size=5, max_size=40).filter(
    lambda text: text == text.strip() and shortest_prefix(text) is not None
)


@given(secret=TYPED, size=st.integers(4, 40), written=st.sampled_from(sorted(WRITTEN)))
def test_no_beginning_of_a_typed_secret_survives(secret: str, size: int, written: str) -> None:
    beginning = secret[: max(size, len(shortest_prefix(secret) or ""))]
    form = WRITTEN[written](beginning)
    clean, count = SecretPattern([secret], typed=[secret]).hide(b"*on*" + form + b"*on*")
    assert count
    assert form.rstrip(b"=") not in clean
    assert clean.startswith(b"*on*")
    assert clean.endswith(b"*on*")


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda one: one.name)
def test_no_beginning_survives_beneath_any_one_encoding(encoding: Encoding) -> None:
    for secret in ("Zebra+Quartz/91!ü-x", "correcthorsebattery", "p@$$ w/rd&<x>%+=12"):
        pattern = SecretPattern([secret], typed=[secret])
        for beginning in (secret[:size] for size in range(4, len(secret))):
            form = encoded(beginning, [encoding])
            assert form.rstrip(b"=") not in pattern.hide(b"<" + form + b">")[0]


@pytest.mark.parametrize("written", [name for name in WRITTEN if "base64 of" not in name])
def test_all_of_it_goes_up_to_its_last_letter_and_what_follows_stays(written: str) -> None:
    secret = "Zebra+Quartz/91!ü and the rest"
    write, pattern = WRITTEN[written], SecretPattern([secret], typed=[secret])
    for size in range(4, len(secret)):
        clean, _ = pattern.hide(b"<" + write(secret[:size]) + b">")
        assert write(secret[4:size])[-3:] not in clean or size < 8


def test_beginnings_stay_that_are_shorter_and_those_of_secrets_that_were_not_typed() -> None:
    pattern = SecretPattern(["Zebra+Quartz", "Yellow+Topaz"], typed=["Zebra+Quartz"])
    text = b"Zeb Yellow+Top"
    assert pattern.hide(text) == (text, 0)
    assert pattern.hide(b"Zebr Yellow+Topaz") == (f"{HIDDEN} {HIDDEN}".encode(), 2)


def test_a_long_typed_secret_goes_at_each_of_its_lengths() -> None:
    secret = "".join(f"{at:x}-" for at in range(1000, 1250))
    pattern = SecretPattern([secret], typed=[secret])
    for size in (6, 199, 200, 201, 450, 700, 900, len(secret) - 1):
        assert pattern.hide(secret[:size].encode() + b" end") == (HIDDEN.encode() + b" end", 1)


def test_the_scanner_finds_each_beginning_too_from_six_characters_on() -> None:
    secret = "Zebra+Quartz/91!"
    sought = with_certain_prefixes([secret, "abcdef"], typed=[secret, "abcdef"])
    assert sought == (secret, "abcdef", "Zebra+")
    for size in range(6, len(secret)):
        assert scan_bytes(b"typing " + quote(secret[:size], safe="").encode(), sought)
    assert not scan_bytes(b"typing Zebra", sought)


@pytest.mark.parametrize(
    ("secret", "beginning"),
    [
        ("Zebra+Quartz", "Zebr"),
        ("true-love", "true-"),
        ("https://user:pw@shop.example/", "https://u"),
        ("localx", None),
        ("abcd", None),
        ("483920", None),
        ("48392017", "483920"),
        ("feedback1", "feedba"),
        ("FEEDBACK1", "FEED"),
        ("12 34-5", "12 34-"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQ", None),
        ("****-abc", "****-a"),
    ],
)
def test_the_shortest_beginning_is_of_this_secret_and_not_of_formats(
    secret: str, beginning: str | None
) -> None:
    assert shortest_prefix(secret) == beginning
