"""What a file is, by how it begins."""

import bz2
import gzip
import lzma
import zlib

import pytest

from redaction.archives.compressed import Kind, detect_kind, is_json


@pytest.mark.parametrize(
    "text",
    [b"x^2 + y^2 = z^2", "x^2 \u2248 \u00fc".encode()[:-1], b"BZhang wrote\n", b"GIF89 is old"],
)
def test_a_text_is_one_that_begins_like_something_else(text: bytes) -> None:
    assert detect_kind(text) is Kind.PLAIN


@pytest.mark.parametrize("content", [b"", b"a", b"hello", b"hello " * 99])
def test_what_is_packed_is_no_text_however_short_it_is(content: bytes) -> None:
    assert [detect_kind(zlib.compress(content, level)[:512]) for level in (1, 6, 9)] == [
        Kind.ZLIB
    ] * 3
    assert detect_kind(bz2.compress(content)[:512]) is Kind.BZIP2
    assert detect_kind(gzip.compress(content)[:512]) is Kind.GZIP
    assert detect_kind(lzma.compress(content)[:512]) is Kind.XZ


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_json_is_known_behind_the_mark_of_utf_8(mark: bytes) -> None:
    assert is_json(mark + b" \n{")
    assert not is_json(mark + b"<p>")
