"""Text is cut into blocks where nothing is cut that belongs together."""

import pytest

from runners.kit.archives import blocks
from runners.kit.archives.blocks import in_blocks


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (b'{"a":1}\n{"b"', b'{"a":1}\n'),
        (b'{"a":1},\n{"b":\n', b'{"a":1},\n'),
        (b'{"a":1}\n{"b":2},\n"c"', b'{"a":1}\n{"b":2},\n'),
        (b'{"a":1},\n{"b":2}\n"c"', b'{"a":1},\n{"b":2}\n'),
        (b"one\ntwo\nthr", b"one\ntwo\n"),
        (b"{\n},", b"{\n"),
    ],
)
def test_a_block_ends_with_an_object_or_else_with_a_line(
    monkeypatch: pytest.MonkeyPatch, text: bytes, first: bytes
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", len(text))
    assert list(in_blocks([text])) == [first, text[len(first) :]]


def test_a_line_is_cut_where_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4)
    monkeypatch.setattr(blocks, "LONGEST_BYTES", 8)
    assert list(in_blocks([b"abcde", b"fghij", b"k"])) == [b"abcdefghij", b"k"]


def test_blocks_are_the_whole_text() -> None:
    pieces = [b'{"n":%d}\n' % number * 9 for number in range(9_000)]
    assert b"".join(in_blocks(pieces)) == b"".join(pieces)
