"""Compressed data is unpacked, searched and packed again; bombs and broken data are refused."""

import bz2
import gzip
import lzma
import zlib
from pathlib import Path

import brotli
import pytest
import zstandard

from redaction.archives.limits import Bounds, UnsearchableFileError
from redaction.policy import HIDDEN
from tests.builders.archives import a_zip, hidden, hidden_bytes, read_members

SECRET = "s3cr3t-T0ken"
TEXT = f"before {SECRET} after ".encode() * 9000
CLEAN = TEXT.replace(SECRET.encode(), HIDDEN.encode())
WAYS = {
    "a.gz": (gzip.compress, gzip.decompress),
    "a.zz": (zlib.compress, zlib.decompress),
    "a.zst": (
        zstandard.compress,
        lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    ),
    "a.bz2": (bz2.compress, bz2.decompress),
    "a.xz": (lzma.compress, lzma.decompress),
    "a.br": (brotli.compress, brotli.decompress),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_secret_goes_from_compressed_data(tmp_path: Path, name: str) -> None:
    pack, unpack = WAYS[name]
    left = read_members(hidden_bytes(tmp_path, a_zip({name: pack(TEXT)}), SECRET))
    assert unpack(left[name]) == CLEAN


@pytest.mark.parametrize("name", WAYS)
def test_compressed_data_without_a_secret_stay(tmp_path: Path, name: str) -> None:
    members = {name: WAYS[name][0](b"nothing")}
    assert read_members(hidden_bytes(tmp_path, a_zip(members), SECRET)) == members


@pytest.mark.parametrize("name", ["a.gz", "a.bz2", "a.xz"])
def test_streams_one_after_the_other_are_all_searched(tmp_path: Path, name: str) -> None:
    pack, unpack = WAYS[name]
    compress = pack(b"first") + pack(SECRET.encode())
    left = read_members(hidden_bytes(tmp_path, a_zip({name: compress}), SECRET))
    assert unpack(left[name]) == b"first" + HIDDEN.encode()


@pytest.mark.parametrize("name", WAYS)
def test_cut_data_do_not_leave(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsearchableFileError, match="broken"):
        hidden(tmp_path, WAYS[name][0](TEXT)[:-9], SECRET, name=name)


@pytest.mark.parametrize("name", WAYS)
def test_data_that_unpack_to_too_much_do_not_leave(tmp_path: Path, name: str) -> None:
    compress = WAYS[name][0](bytes(3 << 20))
    with pytest.raises(UnsearchableFileError, match="unpacks to over"):
        hidden(tmp_path, compress, SECRET, name=name, bounds=Bounds(unpacked_bytes=2 << 20))


def test_archives_may_be_in_each_other_up_to_a_depth(tmp_path: Path) -> None:
    compress = gzip.compress(gzip.compress(gzip.compress(SECRET.encode())))
    left = hidden_bytes(tmp_path, compress, SECRET, name="a.gz")
    assert gzip.decompress(gzip.decompress(gzip.decompress(left))) == HIDDEN.encode()
    with pytest.raises(UnsearchableFileError, match="levels deep"):
        hidden(tmp_path, gzip.compress(gzip.compress(compress)), SECRET, name="a.gz")
