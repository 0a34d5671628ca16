"""Compressed data in base64 within text is unpacked, cleaned and put back."""

import base64
import bz2
import gzip
import json
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from redaction.policy import HIDDEN
from tests.builders.archives import a_zip, hidden_bytes, read_members

SECRET = "s3cr3t-T0ken"
TEXT = f"before {SECRET} after, and some more of it".encode()
CLEAN = TEXT.replace(SECRET.encode(), HIDDEN.encode())
WAYS: tuple[tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]], ...] = (
    (gzip.compress, gzip.decompress),
    (zlib.compress, zlib.decompress),
    (bz2.compress, bz2.decompress),
    (lzma.compress, lzma.decompress),
    (
        zstandard.compress,
        lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    ),
)


@pytest.mark.parametrize(("pack", "unpack"), WAYS)
def test_a_body_in_a_har_file_is_cleaned(
    tmp_path: Path, pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]
) -> None:
    body = {"encoding": "base64", "text": base64.b64encode(pack(TEXT)).decode()}
    left = json.loads(hidden_bytes(tmp_path, json.dumps(body).encode(), SECRET, name="a.har"))
    assert unpack(base64.b64decode(left["text"])) == CLEAN


def test_a_data_url_is_cleaned(tmp_path: Path) -> None:
    compress = base64.b64encode(a_zip({"a.txt": TEXT})).decode()
    html = f'<a href="data:application/zip;base64,{compress}">a</a>'.encode()
    left = hidden_bytes(tmp_path, html, SECRET, name="a.html")
    inner = left.partition(b"base64,")[2].partition(b'"')[0]
    assert read_members(base64.b64decode(inner)) == {"a.txt": CLEAN}
    assert left.endswith(b'">a</a>')


def test_data_without_a_secret_stay(tmp_path: Path) -> None:
    text = b"H4sIAAAA " + base64.b64encode(gzip.compress(b"nothing" * 9)) + b" eJx="
    assert hidden_bytes(tmp_path, text, SECRET, name="a.txt") == text
