import gzip
import zlib

import brotli
import pytest
import zstandard

from runners.net.http.content_coding import (
    BodyDecoder,
    UndecodableError,
    find_undecoded,
    read_codings,
)

TEXT = b"".join(b"line %d of a page\n" % number for number in range(5000))
STREAMS = {
    "gzip": gzip.compress(TEXT, mtime=0),
    "deflate": zlib.compress(TEXT),
    "br": brotli.compress(TEXT),
    "zstd": zstandard.ZstdCompressor().compress(TEXT),
}
EVERY_STREAM = pytest.mark.parametrize(("coding", "stream"), STREAMS.items(), ids=STREAMS)


def decode(header: str, body: bytes, *, step: int = 1 << 20) -> tuple[bytes, str | None]:
    """The decoded body, and the coding within whose stream it ends."""
    decoder = BodyDecoder.choose(header)
    assert decoder is not None
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    decoded = b"".join(part for piece in pieces for part in decoder.decode(piece))
    return decoded, decoder.cut_coding


@EVERY_STREAM
@pytest.mark.parametrize("step", [1, 2, 3, 1000, 1 << 20])
def test_a_stream_is_decoded_however_it_arrives(coding: str, stream: bytes, step: int) -> None:
    assert decode(coding, stream, step=step) == (TEXT, None)


@EVERY_STREAM
def test_a_stream_that_is_cut_anywhere_is_called_cut(coding: str, stream: bytes) -> None:
    for length in (1, 2, 3, len(stream) // 2, len(stream) - 8, len(stream) - 1):
        decoded, cut = decode(coding, stream[:length], step=7)
        assert TEXT.startswith(decoded)
        assert cut == coding


@pytest.mark.parametrize("coding", STREAMS)
def test_a_body_without_a_byte_is_no_cut_stream(coding: str) -> None:
    assert decode(coding, b"") == (b"", None)


@pytest.mark.parametrize("step", [1, 2, 1 << 20])
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_streams_that_follow_each_other_are_one_body(coding: str, step: int) -> None:
    stream = STREAMS[coding]
    assert decode(coding, stream * 3, step=step) == (TEXT * 3, None)
    assert decode(coding, stream + stream[:-1], step=step)[1] == coding


@pytest.mark.parametrize("step", [1, 2, 1 << 20])
@pytest.mark.parametrize("behind", [b"\n", b"\0" * 512, b"\x1f", b"\x1f\x8b", b"<!-- cached -->"])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_what_stands_behind_a_stream_is_left_out(coding: str, behind: bytes, step: int) -> None:
    assert decode(coding, STREAMS[coding] + behind, step=step) == (TEXT, None)


def test_deflate_without_its_wrapper_is_read_too() -> None:
    assert decode("deflate", zlib.compress(TEXT)[2:-4]) == (TEXT, None)


def test_codings_are_taken_off_in_the_order_that_the_header_says() -> None:
    body = brotli.compress(gzip.compress(TEXT, mtime=0))
    assert decode("gzip, br", body, step=100) == (TEXT, None)
    assert decode("gzip, br", brotli.compress(gzip.compress(TEXT)[:-1]))[1] == "gzip"


@pytest.mark.parametrize(
    ("header", "codings"),
    [
        ("GZIP", ("gzip",)),
        ("x-gzip , identity", ("gzip",)),
        ("UTF-8", ()),
        ("aws-chunked,gzip", ("gzip",)),
        ("none", ()),
        ("", ()),
        ("compress", ("compress",)),
    ],
)
def test_a_token_that_is_no_coding_is_left_out(header: str, codings: tuple[str, ...]) -> None:
    assert read_codings(header) == codings


def test_a_coding_that_is_not_decoded_is_named_and_leaves_the_body_as_it_is() -> None:
    assert find_undecoded("gzip, X-Compress") == "compress"
    assert find_undecoded("gzip") is None
    assert BodyDecoder.choose("gzip, compress") is None
    assert BodyDecoder.choose("UTF-8") is None


@pytest.mark.parametrize(
    ("header", "body", "why"),
    [
        ("gzip", b"this is no gzip", "incorrect header check"),
        ("br", b"\xff\xff\xff\xff\xff", "it is no stream of brotli"),
        ("zstd", b"this is no zstd", "Unknown frame descriptor"),
        ("gzip, " * 6, STREAMS["gzip"], "it has 6 codings, more than 5"),
    ],
)
def test_a_body_in_another_coding_is_refused(header: str, body: bytes, why: str) -> None:
    with pytest.raises(UndecodableError, match=why):
        decode(header, body)


@pytest.mark.parametrize("coding", STREAMS)
def test_a_bomb_is_decoded_part_by_part(coding: str) -> None:
    zeros = bytes(30_000_000)
    bombs = {
        "gzip": lambda: gzip.compress(zeros, 1),
        "deflate": lambda: zlib.compress(zeros, 1),
        "br": lambda: brotli.compress(zeros, quality=1),
        "zstd": lambda: zstandard.ZstdCompressor(level=1).compress(zeros),
    }
    decoder = BodyDecoder.choose(coding)
    assert decoder is not None
    sizes = [len(part) for part in decoder.decode(bombs[coding]())]
    assert sum(sizes) == len(zeros)
    assert max(sizes) <= 8 << 20
