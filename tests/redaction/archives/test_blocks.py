"""Text is cut into blocks where nothing is cut that belongs together."""

import json

import pytest

from redaction.archives import search
from redaction.archives.search import split_blocks


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
    monkeypatch.setattr(search, "BLOCK_BYTES", len(text))
    assert list(split_blocks([text])) == [first, text[len(first) :]]


@pytest.mark.parametrize("closing", ["", "a]b"])
def test_a_list_of_cookies_is_not_cut(monkeypatch: pytest.MonkeyPatch, closing: str) -> None:
    """Within it nothing tells of an object that it is a cookie."""
    cookies = [{"name": closing, "value": f"v{number}"} for number in range(9)]
    state = json.dumps({"a": [{}], "cookies": cookies, "origins": [{}]}, indent=1).encode()
    monkeypatch.setattr(search, "BLOCK_BYTES", 64)
    found = list(split_blocks(state[at : at + 40] for at in range(0, len(state), 40)))
    assert b"".join(found) == state
    assert len(found) > 2
    assert any(b'"v0"' in one and b'"v8"' in one for one in found)


def test_a_line_is_cut_where_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BLOCK_BYTES", 4)
    monkeypatch.setattr(search, "LONGEST_BYTES", 8)
    assert list(split_blocks([b"abcde", b"fghij", b"k"])) == [b"abcdefghij", b"k"]


def test_blocks_are_the_whole_text() -> None:
    pieces = [b'{"n":%d}\n' % number * 9 for number in range(9_000)]
    assert b"".join(split_blocks(pieces)) == b"".join(pieces)
