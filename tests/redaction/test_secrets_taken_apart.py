"""Secrets that others cut, list or throw are hidden, and results keep the rest."""

import base64
import html
import json
import string
from random import Random

import pytest

from redaction.policy import HIDDEN, select_usable
from redaction.replacer import SecretPattern
from redaction.scanner.scan import scan_bytes
from tests.builders.told_results import cleaned_body

SECRET = "hunter-two-and-more"
LONG = "Tr0ub4dor-and-the-correct-horse-battery-staple-and-more-than-fifty"
BEGINNINGS = {
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 behind a letter": base64.b64encode(b"a" + SECRET.encode()).decode()[2:],
    "base64 behind two letters": base64.b64encode(b"ab" + SECRET.encode()).decode()[3:],
    "hexadecimal": SECRET.encode().hex(),
    "hexadecimal in capitals": SECRET.encode().hex().upper(),
    "unicode escapes": "".join(f"\\u{ord(char):04x}" for char in SECRET),
}


@pytest.mark.parametrize("form", BEGINNINGS)
def test_an_encoded_beginning_is_hidden_where_a_text_was_cut(form: str) -> None:
    pattern = SecretPattern([SECRET])
    for size in (24, len(BEGINNINGS[form]) - 3):
        begun = BEGINNINGS[form][:size]
        assert pattern.hide_cut_secret(f"a {begun}") == f"a {HIDDEN}"


def test_a_cut_text_that_only_resembles_a_beginning_stays() -> None:
    text = f"a {SECRET[:3]} 68756e {SECRET[:8]}x"
    assert SecretPattern([SECRET]).hide_cut_secret(text) == text


def as_node_prints(items: list[str]) -> str:
    rows = [", ".join(items[at : at + 9]) for at in range(0, len(items), 9)]
    return "[\n  " + ",\n  ".join(rows) + "\n]"


LISTS = {
    "characters": as_node_prints([f"'{char}'" for char in LONG]),
    "characters in JSON": json.dumps([*LONG]),
    "bytes": as_node_prints([f"{byte:3}" for byte in LONG.encode()]),
    "bytes in JSON": json.dumps({"type": "Buffer", "data": [*LONG.encode()]}),
}


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
def test_a_secret_in_a_list_is_hidden_and_json_stays_json(text: str) -> None:
    hidden, count = SecretPattern([LONG]).hide(text.encode())
    cleaned = hidden.decode()
    assert count == 1
    assert len(cleaned) < 70
    assert not scan_bytes(hidden, [LONG])
    if text.startswith(("{", '["')):
        json.loads(cleaned)


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
def test_the_scanner_finds_a_secret_in_a_list(text: str) -> None:
    assert scan_bytes(f"a {text} b".encode(), [LONG])
    assert not scan_bytes(f"a {text} b".encode(), ["something-else"])


def test_what_node_prints_of_a_long_buffer_is_hidden_to_its_end() -> None:
    text = f"<Buffer {LONG.encode()[:50].hex(' ')} ... 16 more bytes>"
    assert LONG.encode()[40:50].hex(" ") not in cleaned_body(LONG, text)


@pytest.mark.parametrize("secret", ["ab:hunter-two", "name of it: hunter-two"])
def test_a_secret_is_hidden_that_a_page_threw_and_playwright_split_at_its_colon(
    secret: str,
) -> None:
    message = secret.partition(":")[2][1:]
    assert cleaned_body(secret, f"Page error: {message}") == f"Page error: {HIDDEN}"


@pytest.mark.parametrize("secret", ["https://shop", "shop: true"])
def test_a_host_and_a_common_word_behind_a_colon_are_not_hidden(secret: str) -> None:
    assert cleaned_body(secret, "/shop is true") == "/shop is true"


def test_a_result_keeps_its_details_though_a_secret_has_over_8192_characters() -> None:
    secret = "".join(Random(1).choices(string.printable[:94], k=9000))
    cleaned = cleaned_body(secret, f"before {html.escape(secret)} after")
    assert cleaned.startswith(f"before {HIDDEN}")
    assert cleaned.endswith(f"{HIDDEN} after")
    assert select_usable(select_usable([secret])) == select_usable([secret])
