"""Each kind of archive and each door of text, with a case that nothing else cleans."""

import base64
import bz2
import gzip
import io
import json
import lzma
import tarfile
import zlib
from collections.abc import Callable
from typing import NamedTuple

import brotli
import zstandard

from redaction.archives.compressed import Kind
from tests.builders.archives import a_zip, read_members

SECRET = "hunter-two-and-more"
DIGITS = "4815162342"
"""A secret that JSON writes as a number."""
TEXT = f"before {SECRET} after ".encode() * 40


class Packed(NamedTuple):
    """A way to pack a text, and back."""

    name: str
    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes]


def _tarred(text: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        about = tarfile.TarInfo("a.txt")
        about.size = len(text)
        archive.addfile(about, io.BytesIO(text))
    return file.getvalue()


def _untarred(data: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        opened = archive.extractfile("a.txt")
        assert opened is not None
        return opened.read()


def _unzstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


PACKED: dict[Kind, Packed] = {
    Kind.ZIP: Packed(
        "a.zip", lambda text: a_zip({"a.txt": text}), lambda data: read_members(data)["a.txt"]
    ),
    Kind.TAR: Packed("a.tar", _tarred, _untarred),
    Kind.GZIP: Packed("a.gz", gzip.compress, gzip.decompress),
    Kind.ZLIB: Packed("a.zz", zlib.compress, zlib.decompress),
    Kind.ZSTD: Packed("a.zst", zstandard.compress, _unzstd),
    Kind.BZIP2: Packed("a.bz2", bz2.compress, bz2.decompress),
    Kind.XZ: Packed("a.xz", lzma.compress, lzma.decompress),
    Kind.BROTLI: Packed("a.br", brotli.compress, brotli.decompress),
}


class Door(NamedTuple):
    """A text that one edit alone cleans, and what shows that it was."""

    text: bytes
    gone: bytes
    """What is not left in it; and what was JSON stays JSON."""
    name: str = "a.json"


_CODED = base64.b64encode(gzip.compress(TEXT))

DOORS: dict[str, Door] = {
    "headers": Door(
        json.dumps({"name": "Cookie", "value": "xyz"}).encode(),
        b"xyz",
    ),
    "numbers": Door(f'{{"pin":{DIGITS}}}'.encode(), DIGITS.encode()),
    "snapshots": Door(
        b'{"type":"frame-snapshot","snapshot":{"html":["BODY",{},'
        b'["B",{},"hunter-two"],["I",{},"-and-more"]]}}\n',
        b"hunter-two",
    ),
    "packed data in JSON": Door(b'{"text":"' + _CODED + b'"}', _CODED),
    "HTML": Door(b"<p><b>hunter-two</b><i>-and-more</i></p>", b"hunter-two", "a.html"),
    "packed data in text": Door(b"a " + _CODED + b" b", _CODED, "a.txt"),
}
EDITS = (
    (True, ("headers", "numbers", "snapshots", "packed data in JSON")),
    (False, ("HTML", "packed data in text")),
)
"""Whether a text is JSON, and its edits in the order in which they are made."""
