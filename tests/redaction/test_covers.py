"""What secrets cover is made one, takes its escape with it, and is replaced by what decodes."""

import base64

import pytest

from redaction.decoders import Kind
from redaction.matcher import Span, clip, include_escape, make_replacement, merge_spans

SHOWN = b"*********"


def test_covers_that_overlap_are_one_of_the_highest_kind() -> None:
    covers = [Span(4, 9, Kind.HEX), Span(0, 5, Kind.TEXT), Span(1, 2, Kind.BASE64)]
    assert merge_spans(covers) == [Span(0, 9, Kind.BASE64)]


def test_covers_that_touch_stay_two_in_order() -> None:
    covers = [Span(5, 9, Kind.TEXT), Span(0, 5, Kind.WIDE)]
    assert merge_spans(covers) == sorted(covers)


@pytest.mark.parametrize(
    ("before", "covered"),
    [
        (rb"\u00", rb"41bc"), (rb"\x", rb"41bc"), (rb"\x4", rb"1bc"), (rb"\\u004", rb"1bc"),
        (rb"%", rb"41bc"), (rb"%4", rb"1bc"), (rb"%25", rb"41bc"), (rb"%25254", rb"1bc"),
        (b"\\", b'"bc'), (b"\\", b"nbc"),
    ],
    ids=repr,
)  # fmt: skip
def test_an_escape_that_a_cover_begins_in_goes_with_it(before: bytes, covered: bytes) -> None:
    text = b"abc " + before + covered
    cover = Span(4 + len(before), len(text), Kind.TEXT)
    assert include_escape(text, cover) == cover._replace(start=4)


@pytest.mark.parametrize(
    ("before", "covered", "taken"),
    [
        (rb"\\", b"abc", 0), (rb"\\\\", b"abc", 0), (rb"\\", rb"\nbc", 2), (rb"\\\\", rb"\nbc", 4),
        (rb"\\\"[3:]", b"abc", 0), (b"100%", b"zbc", 0), (rb"\u0041", b"zbc", 0), (b"", b"abc", 0),
    ],
    ids=repr,
)  # fmt: skip
def test_what_escapes_nothing_of_a_cover_stays(before: bytes, covered: bytes, taken: int) -> None:
    text = before + covered
    cover = Span(len(before), len(text), Kind.TEXT)
    assert include_escape(text, cover).start == len(before) - taken


@pytest.mark.parametrize(
    ("before", "covered", "after", "left"),
    [
        ("", "abc\\", '"', 1), ("", "abc\\\\\\", '"', 1), ("\\\\", "\\", '"', 1),
        ("", "abc\\\\", '"', 0), ("", "abc\\", "n", 0), ("", "abc\\", "", 0),
        ("", "abc", '"', 0), ("\\", "\\\\", '"', 1),
    ],
    ids=repr,
)  # fmt: skip
def test_the_backslash_of_a_quote_behind_a_cover_stays(
    before: str, covered: str, after: str, left: int
) -> None:
    text = f"{before}{covered}{after}".encode()
    cover = Span(len(before), len(before) + len(covered), Kind.TEXT)
    assert clip(text, cover).end == cover.end - left


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.WIDE])
def test_in_a_text_stands_what_people_are_shown(kind: Kind) -> None:
    assert make_replacement(b"hunter", kind, shown=SHOWN) == SHOWN


@pytest.mark.parametrize(
    ("covered", "left"),
    [
        (b'"hunter', b'"*********'), (b'hunter"', b'*********"'), (b'"hunter"', b'"*********"'),
        (b'{"a":"hunter"}', b'"*********"'), (b'["hun","ter"]', b'"*********"'),
        (b'hun","ter', SHOWN), (rb'\"hunter\"', SHOWN), (rb'{\"a\":1}', SHOWN), (b"{1}", SHOWN),
        (rb'hunter\\"', b'*********"'), (rb'hunter\\\"', SHOWN),
    ],
    ids=repr,
)  # fmt: skip
def test_quotes_that_json_needs_stay(covered: bytes, left: bytes) -> None:
    assert make_replacement(covered, Kind.TEXT, shown=SHOWN) == left


@pytest.mark.parametrize("size", range(1, 30))
@pytest.mark.parametrize(
    "escape",
    ["{}", "%{:02x}", "%25{:02X}", "\\x{:02x}", "\\u{:04x}", "\\{:03o}", "&#{};", "&#x{:X};"],
)
def test_base64_keeps_its_number_of_letters_by_the_four(size: int, escape: str) -> None:
    letters = base64.b64encode(bytes(range(90)))[:size]
    covered = "".join(
        chr(letter) if escape == "{}" else escape.format(letter) for letter in letters
    ).encode()
    stars = make_replacement(covered, Kind.BASE64, shown=SHOWN)
    assert len(stars) % 4 == size % 4
    assert set(base64.b64decode(stars + b"A" * (-len(stars) % 4))[:9]) == {ord("*")}


@pytest.mark.parametrize("covered", [b"68756e74", b"68%2075%206e", b"68:75:6e", b"0x68, 0x75"])
def test_hexadecimal_stays_whole_bytes(covered: bytes) -> None:
    stars = make_replacement(covered, Kind.HEX, shown=SHOWN)
    assert set(bytes.fromhex(stars.decode())) == {ord("*")}


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("cut", [0, 1])
def test_wide_characters_stay_as_wide_and_in_their_places(codec: str, cut: int) -> None:
    wide = "ahunter-twob".encode(codec)
    width = len(wide) // 12
    start, end = width + cut * (width - 1), len(wide) - width
    stars = make_replacement(wide[start:end], Kind.WIDE, shown=SHOWN)
    shown = (wide[:start] + stars + wide[end:]).decode(codec)
    assert (shown[0], shown[-1], set(shown[2:-2])) == ("a", "b", {"*"})
