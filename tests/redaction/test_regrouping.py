"""Base64, hexadecimal and wide characters are read wherever they begin, byte by byte placed."""

import base64
from collections.abc import Callable, Iterator

import pytest

from redaction.compiled import contains_form
from redaction.decoders import (
    BASE64_SIGN,
    HEX_SIGN,
    WIDE_SIGN,
    DecodedView,
    Kind,
    decode_base64,
    decode_hex,
    decode_wide,
)

TEXT = b"the hunter-two of us"
LETTERS = base64.b64encode(TEXT)


def view_of(decode_views: Iterator[DecodedView], text: bytes) -> DecodedView:
    """The one view that holds the text."""
    [found] = [view for view in decode_views if text in view.content]
    return found


def placed(view: DecodedView, text: bytes) -> tuple[int, int]:
    at = view.content.index(text)
    return view.locate(at, at + len(text) - 1)


@pytest.mark.parametrize("before", range(4))
def test_base64_is_read_whichever_letter_it_begins_with(before: int) -> None:
    view = view_of(decode_base64(b"AAAA"[:before] + LETTERS), b"hunter-two")
    assert view.kind is Kind.BASE64
    start, end = placed(view, b"hunter-two")
    assert (start - before, end - before) == (4 // 3 * 4 + 1, 14 // 3 * 4 + 3)


WRAPPED: list[Callable[[bytes], bytes]] = [
    lambda letters: b"\r\n".join((letters[:9], letters[9:])),
    lambda letters: b"\n \t".join((letters[:9], letters[9:])),
    lambda letters: rb"\n".join((letters[:9], letters[9:])),
    lambda letters: b"=\n".join((letters[:9], letters[9:])),
    lambda letters: b"%0D%0A".join((letters[:9], letters[9:])),
]


@pytest.mark.parametrize("wrap", WRAPPED)
def test_lines_of_base64_are_put_together(wrap: Callable[[bytes], bytes]) -> None:
    letters = wrap(LETTERS)
    start, end = placed(view_of(decode_base64(letters), b"hunter-two"), b"hunter-two")
    whole, rest = letters[:start], letters[end:]
    assert b"hunter-two" not in base64.b64decode(whole + b"A" * (-len(whole) % 4))
    assert LETTERS.startswith(whole)
    assert LETTERS.endswith(rest)


@pytest.mark.parametrize(
    ("plus", "slash"),
    [(b"+", b"/"), (b"-", b"_"), (b"%2B", b"%2F"), (b"%252b", b"%252f"), (rb"\u002b", rb"\/")],
)
def test_signs_of_base64_are_letters_however_they_are_written(plus: bytes, slash: bytes) -> None:
    text = b"hunter\xfb\xef\xbe\xff\xff\xfftwo words"
    letters = base64.b64encode(text)
    assert b"+" in letters
    assert b"/" in letters
    written = letters.replace(b"+", plus).replace(b"/", slash)
    assert placed(view_of(decode_base64(written), text), text)[0] == 0


@pytest.mark.parametrize("skipped", [0, 1])
@pytest.mark.parametrize("between", ["", " ", ":", "%20", "+", "%3A", ", 0x"])
def test_hexadecimal_is_read_in_both_ways_of_pairing(skipped: int, between: str) -> None:
    pairs = between.join(f"{byte:02x}" for byte in TEXT)
    stretch = ("f"[:skipped] if not between else "") + pairs
    view = view_of(decode_hex(stretch.encode()), TEXT)
    assert view.kind is Kind.HEX
    start, end = placed(view, b"hunter-two")
    assert stretch[start:end] == between.join(f"{byte:02x}" for byte in b"hunter-two")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_characters_are_read_as_narrow_ones(codec: str) -> None:
    stretch = b"\x01" + TEXT.decode().encode(codec)
    view = view_of(decode_wide(stretch), b"hunter-two")
    assert view.kind is Kind.WIDE
    start, end = placed(view, b"hunter-two")
    assert stretch[start:end].replace(b"\0", b"") == b"hunter-two"


@pytest.mark.parametrize(
    ("sign", "text"),
    [
        (BASE64_SIGN, base64.b64encode(b"hunter-two")),
        (BASE64_SIGN, base64.urlsafe_b64encode("hünter-two-lions".encode())),
        (BASE64_SIGN, base64.b64encode("hunter".encode("utf-16-le"))),
        (BASE64_SIGN, base64.encodebytes(bytes(range(99))).replace(b"\n", rb"\n")),
        (HEX_SIGN, b"hunter-two".hex().encode()), (HEX_SIGN, b"hunter-".hex(":").encode() + b":"),
        (HEX_SIGN, b"68 00 75 00 6e 00 74 00"), (HEX_SIGN, b"c3%20a9%20e2%2082%20ac"),
        (HEX_SIGN, b"c3%2BA9%2BE2%2B82%2Bac"), (WIDE_SIGN, "hunter".encode("utf-16-le")),
    ],
)  # fmt: skip
def test_signs_are_seen(sign: str, text: bytes) -> None:
    assert contains_form(sign, b"<" + text + b">")


@pytest.mark.parametrize(
    "text",
    [
        b"internationalization of accountability", b"getElementsByClassName(documentElement)",
        b"2026-11-22T18:20:31.123Z and 10:20:30", b"deadbeef-0000-4000-8000-cafecafecafe",
        b"a b c d e f\n", b"#ffcc00; #00ff00; 12px 34px 56px",
    ],
)  # fmt: skip
@pytest.mark.parametrize("sign", [BASE64_SIGN, HEX_SIGN, WIDE_SIGN])
def test_words_and_figures_are_no_sign(sign: str, text: bytes) -> None:
    assert not contains_form(sign, text)
