"""Which lines of a block tell of a page that showed a secret."""

import pytest

from redaction.decoders import Kind
from redaction.matcher import Span
from redaction.trace.pictures import TracePictures, lines_with
from tests.builders.archives import OTHER_PAGE, PAGE, lines

BLOCK = b"one\ntwo words\nthree\n\nfive"


@pytest.mark.parametrize(
    ("places", "lines"),
    [
        ([], []),
        ([(0, 3)], [b"one"]),
        ([(4, 7), (8, 13)], [b"two words"]),
        ([(4, 6), (6, 7), (15, 16)], [b"two words", b"three"]),
        ([(5, 16), (17, 18)], [b"two words", b"three"]),
        ([(21, 25)], [b"five"]),
        ([(0, 25)], [b"one", b"two words", b"three", b"", b"five"]),
    ],
)
def test_each_line_in_which_something_is_covered_is_told_once(
    places: list[tuple[int, int]], lines: list[bytes]
) -> None:
    covers = [Span(start, end, Kind.TEXT) for start, end in places]
    assert list(lines_with(covers, BLOCK)) == lines


def test_lists_of_what_was_attached_that_do_not_end_take_no_longer_than_they_are() -> None:
    TracePictures().collect(b'{"x":' + b'"attachments":[x' * 60_000 + b"\n")


@pytest.mark.parametrize("size", [1, 170, 400, 5000])
def test_a_secret_on_the_console_marks_its_page_however_long_the_line_is(size: int) -> None:
    text = "x" * size
    told = [{"preview": text, "value": text}]
    line = lines({"type": "console", "text": text, "args": told, "time": 2.5, "pageId": PAGE})
    pictures = TracePictures()
    pictures.mark_pages([line.rstrip()], has_secret=lambda _: True, is_sure=True)
    assert pictures.removes(f"resources/{PAGE}-1.jpeg")
    assert not pictures.removes(f"resources/{OTHER_PAGE}-1.jpeg")


def test_a_secret_on_the_console_of_no_page_may_be_on_any() -> None:
    pictures = TracePictures()
    pictures.mark_pages(
        [lines({"type": "console", "text": "x"}).rstrip()], has_secret=lambda _: True, is_sure=True
    )
    assert pictures.removes(f"resources/{PAGE}-1.jpeg")
