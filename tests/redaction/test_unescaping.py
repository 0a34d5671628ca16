"""Escapes are undone one level at a time, and each byte knows where it came from."""

from collections.abc import Callable, Iterator

import pytest

from redaction.compiled import contains_form
from redaction.decoders import (
    CSS_SIGN,
    ENTITY_SIGN,
    ESCAPE_SIGN,
    PERCENT_SIGN,
    PRINTABLE_SIGN,
    SPLICE_SIGN,
    DecodedView,
    Kind,
    decode_css,
    decode_escapes,
    decode_quoted_printable,
    remove_breaks,
)
from redaction.policy import HIDDEN
from redaction.replacer import SecretPattern

Undo = Callable[[bytes], Iterator[DecodedView]]

UNDONE: list[tuple[Undo, bytes, bytes]] = [
    (decode_escapes, b"%41", b"A"),
    (decode_escapes, b"%252541", b"A"),
    (decode_escapes, b"&#65;", b"A"),
    (decode_escapes, b"&amp;#0065;", b"A"),
    (decode_escapes, b"&#x41;", b"A"),
    (decode_escapes, b"&#x20AC;", "€".encode()),
    (decode_escapes, b"&quot;", b'"'),
    (decode_escapes, rb"\u0041", b"A"),
    (decode_escapes, rb"\u{1F600}", "😀".encode()),
    (decode_escapes, rb"\U00000041", b"A"),
    (decode_escapes, rb"\x41", b"A"),
    (decode_escapes, rb"\101", b"A"),
    (decode_escapes, rb"\n", b"\n"),
    (decode_escapes, rb"\/", b"/"),
    (decode_escapes, rb"\\u0041", b"A"),
    (decode_escapes, rb"\\\u0041", rb"\A"),
    (decode_escapes, rb"\\\\\\n", b"\\\n"),
    (decode_escapes, b"&unheardof;", b"&unheardof;"),
    (decode_escapes, b"&#9999999;", b"&#9999999;"),
    (decode_escapes, rb"\ud83d", rb"\ud83d"),
    (decode_css, rb"\41 ", b"A"),
    (decode_css, b"\\41\n", b"A"),
    (decode_css, rb"\000041", b"A"),
    (decode_css, b"%5C41%20", b"A"),
    (decode_css, rb"\"", b'"'),
    (decode_quoted_printable, b"=41", b"A"),
    (decode_quoted_printable, b"=c3=A9", "é".encode()),
    (remove_breaks, b"\x1b[27m", b""),
    (remove_breaks, rb"\u001b[1;31m", b""),
    (remove_breaks, b"%1B%5B27m", b""),
    (remove_breaks, b"%5Cu001b%5B27m", b""),
    (remove_breaks, b"%5C%5C%5Cu001b%5B27m", b"\\"),
    (remove_breaks, rb"\\\u001b[27m", b"\\"),
    (remove_breaks, b"=\r\n", b""),
    (remove_breaks, rb"=\r\n", b""),
    (remove_breaks, b"%3D%0A", b""),
    (remove_breaks, b"%253D%250D%250A", b""),
    (remove_breaks, b"=3D\n", b""),
]
IDS = [f"{undo.__name__} {escape!r}" for undo, escape, _ in UNDONE]


@pytest.mark.parametrize(("undo", "escape", "meaning"), UNDONE, ids=IDS)
def test_an_escape_is_replaced_by_its_meaning_wherever_it_stands(
    undo: Undo, escape: bytes, meaning: bytes
) -> None:
    [view] = undo(b"<" + escape + b"-" + escape + b">")
    assert view.content == b"<" + meaning + b"-" + meaning + b">"
    assert view.kind is Kind.TEXT


@pytest.mark.parametrize(
    ("text", "meaning"),
    [(rb"\&#65;", rb"\A"), (rb"\\&#65;", rb"\A"), (rb"\%41", rb"\A"), (rb"\&", rb"\&")],
)
def test_a_backslash_takes_nothing_of_an_escape_of_another_kind(
    text: bytes, meaning: bytes
) -> None:
    [view] = decode_escapes(text)
    assert view.content == meaning


@pytest.mark.parametrize("secret", ["X/;\\{%\\", "Ya'c~%:[\\a|\\ +", '0\\,{"cY;_]`', "X\\;:.,b"])
@pytest.mark.parametrize("form", ["&#{};", "&#x{:x};", "%{:02x}"])
@pytest.mark.parametrize("before", ["\\", "\\\\", "C:\\"])
def test_a_secret_goes_whose_escapes_stand_behind_a_backslash(
    secret: str, form: str, before: str
) -> None:
    told = before + "".join(form.format(ord(char)) for char in secret)
    hidden, count = SecretPattern([secret]).hide(told.encode())
    assert count == 1
    assert hidden.endswith(HIDDEN.encode())


@pytest.mark.parametrize(("undo", "escape", "meaning"), UNDONE, ids=IDS)
def test_a_byte_came_from_the_whole_of_its_escape(
    undo: Undo, escape: bytes, meaning: bytes
) -> None:
    stretch = b"xy" + escape + b"zz" + escape + b"xy"
    [view] = undo(stretch)
    inner = view.content.index(b"zz")
    assert view.locate(0, 1) == (0, 2)
    assert view.locate(inner, inner + 1) == (2 + len(escape), 4 + len(escape))
    assert view.locate(1, inner) == (1, 3 + len(escape))
    last = len(view.content) - 1
    assert view.locate(last, last) == (len(stretch) - 1, len(stretch))
    if meaning:
        last = 1 + len(meaning)
        assert view.locate(2, last) == (2, 2 + len(escape))
        if undo is not decode_quoted_printable:  # which has an escape for each byte
            assert view.locate(last, last) == (2, 2 + len(escape))


@pytest.mark.parametrize(
    "undo", [decode_escapes, decode_css, decode_quoted_printable, remove_breaks]
)
def test_what_holds_no_escape_is_no_view(undo: Undo) -> None:
    assert list(undo(b"plain words, a=b and 100 of them\n")) == []


@pytest.mark.parametrize(
    ("sign", "text"),
    [
        (PERCENT_SIGN, b"%68"), (PERCENT_SIGN, b"%252568"), (PERCENT_SIGN, b"h%00u%00n%00t%00"),
        (ENTITY_SIGN, b"&#104;"), (ENTITY_SIGN, b"&amp;#x68;"), (ENTITY_SIGN, rb"&#104\u003b"),
        (ESCAPE_SIGN, rb"\u0068"), (ESCAPE_SIGN, rb"\\x68"), (ESCAPE_SIGN, rb"\150"),
        (ESCAPE_SIGN, rb"\u{68}"), (ESCAPE_SIGN, rb"\U00000068"), (ESCAPE_SIGN, rb"h\0u\0n\0t\0"),
        (ESCAPE_SIGN, rb"h\u0000\ufffd\u0000n\u0000t\u0000"),
        (CSS_SIGN, rb"\68 "), (CSS_SIGN, rb"\000068"), (CSS_SIGN, b"%5C68%20"),
        (PRINTABLE_SIGN, b"=68=75"), (PRINTABLE_SIGN, b"h=00u=00n=00t=00"),
        (SPLICE_SIGN, b"\x1b[0m"), (SPLICE_SIGN, b"=\n"), (SPLICE_SIGN, b"%3D%0D%0A"),
    ],
)  # fmt: skip
def test_signs_are_seen(sign: str, text: bytes) -> None:
    assert contains_form(sign, b"<" + text + b">")


@pytest.mark.parametrize(
    "text",
    [
        b"https://shop.example/a%20b?page=12&x=%2F", b'{"a":"line\\nline","b":"\\"quoted\\""}',
        b"&lt;b&gt; &amp; &nbsp; &#39;", rb"C:\temp\new \d+ \s*", b"a == b; c=3; d = e\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "sign", [PERCENT_SIGN, ENTITY_SIGN, ESCAPE_SIGN, CSS_SIGN, PRINTABLE_SIGN, SPLICE_SIGN]
)
def test_what_is_usually_escaped_is_no_sign(sign: str, text: bytes) -> None:
    assert not contains_form(sign, text)
