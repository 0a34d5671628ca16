"""A server that plays odd answers of HTTP/1 and HTTP/2; a number in the path says which one.

The same number is the same answer, byte for byte, on every machine.
"""

import asyncio
import contextlib
import gzip
import random
import zlib
from collections.abc import AsyncIterator, Callable
from enum import Enum, auto
from typing import Final, NamedTuple

import brotli
import hpack
import zstandard

from tests.servers.http2_origin import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    SETTINGS,
    frame,
    goaway,
    head,
    header,
    read_headers,
    rst_stream,
)
from tests.servers.http_origin import reset
from tests.servers.tcp import tcp_server

_PUSH_PROMISE: Final = 5


class Ending(Enum):
    """What the server does when it has said all."""

    CLOSES = auto()
    RESETS = auto()
    HANGS = auto()


class OddAnswer(NamedTuple):
    pieces: tuple[bytes, ...]
    ending: Ending


_ENDINGS: Final = (*[Ending.CLOSES] * 60, *[Ending.RESETS] * 6, Ending.HANGS)

_STATUS_LINES: Final = (
    *[b"HTTP/1.1 200 OK"] * 30,
    *(b"HTTP/1.1 %d X" % code for code in (201, 204, 206, 301, 302, 303, 304, 307, 401, 407, 417)),
    *(b"HTTP/1.1 %s" % code for code in (b"2000", b"20", b"", b"abc", b"-200", b"000", b"099")),
    *(b"HTTP/1.1 %d X" % code for code in (100, 101, 102, 103, 199, 404, 421, 426, 500, 599, 999)),
    *(b"HTTP/1.0 200 OK", b"HTTP/1.2 200 OK", b"HTTP/2 200", b"HTTP/2.0 200 OK", b"HTTP/3 200"),
    *(b"http/1.1 200 OK", b"HTTP/1.1  200 OK", b"HTTP/1.1\t200 OK", b"HTTP/1.1 200OK", b"HTTP/"),
    *(b"HTTP/1.1 200 \xff\xfe\x00\x1b[31m", b"ICY 200 OK", b"220 mail ready", b"\x16\x03\x01", b""),
)
_CODINGS: Final = (
    *(b"gzip", b"x-gzip", b"deflate", b"br", b"zstd", b"GZIP", b"identity", b"compress", b"UTF-8"),
    *(b"aws-chunked", b"none", b"", b"gzip, br", b"gzip,gzip", b"br, utf-8", b"gzip;q=1", b"\xff"),
    b"gzip, " * 9 + b"gzip",
)
_TRANSFER_CODINGS: Final = (
    *[b"chunked"] * 8,
    *(b"gzip", b"gzip, chunked", b"chunked, gzip", b"chunked, chunked", b"identity", b"foo"),
    *(b"\xff\xfe", b"foo\xff", b"", b"Chunked", b"chunked;a=b", b"xchunked"),
)
_LENGTHS: Final = (
    b"0",
    b"1",
    b"-1",
    b"+2",
    b"2x",
    b"",
    b"1" * 19,
    b"9" * 23,
    b"0x5",
    b"5, 5",
    b"\xb2",
)
_LOCATIONS: Final = (
    *(
        b"/next",
        b"next?a=\xff",
        b"?",
        b"#a",
        b"",
        b"//",
        b"///next",
        b"https:///login",
        b"http:next",
    ),
    *(b"http://127.0.0.1:1/", b"http://127.0.0.1:0/", b"http://127.0.0.1:99999/", b"http://[::1"),
    *(
        b"http://\x00/",
        b"http://\xff\xfe/",
        b"http://127.0.0.1:\xc2\xb2/",
        b"ftp://127.0.0.1/",
        b"\\",
    ),
    *(b"http://a b/", b"http://%00/", b"http://127.0.0.1%2f/", b"javascript:1", b"/" + b"a" * 9000),
    *(
        b"http://u:p@127.0.0.1:1/",
        b"http://xn--/",
        b"http://" + b"a" * 300 + b".invalid/",
        b"/\r/x",
    ),
)
_COOKIES: Final = (
    b"a=b",
    b"a",
    b"=",
    b"\xff=\x01",
    b"a=b; expires=x",
    b"a=b; domain=.",
    b"a=\rb",
    b"",
)
_FIELDS: Final = (
    *(
        b"X-A: \xff\xfe",
        b"X-\xff: a",
        b"X-A",
        b": a",
        b"X A: b",
        b" folded: a",
        b"\tfolded",
        b"X-A:",
    ),
    *(
        b"X-A: 1\r\n more",
        b"X-A: a\x00b",
        b"X-A: \x1b[31m",
        b"X-A: " + b"y" * 9000,
        b"HTTP/1.1 200 OK",
    ),
    *(b"Content-Type: application/json; charset=\xff", b"Content-Type: text/html;charset=utf-16"),
    *(b"Content-Type: application/json", b"Content-Type: ;;;=", b"Content-Type: image/png"),
    *(b"Retry-After: 99999999999999999999", b"Content-Range: bytes */x", b"Last-Modified: \xff"),
    *(b"WWW-Authenticate: Basic \xff", b"WWW-Authenticate: Digest realm", b"Upgrade: h2c\xff"),
    *(b"Connection: close, \xff", b"Connection: upgrade", b'Alt-Svc: h3=":1"', b"Trailer: \xff"),
    *(b"Strict-Transport-Security: max-age=1", b"Proxy-Connection: x", b"Keep-Alive: timeout=\xff"),
)
_CHUNK_SIZES: Final = (
    b"zz",
    b"-1",
    b"f" * 17,
    b"",
    b"5;a=b",
    b"5 ",
    b"0x5",
    b"5\xff",
    b"00000000005",
)
_TRAILERS: Final = (
    b"X-S: 1",
    b"X-S: 1\r\n more",
    b" more",
    b"X-S",
    b"X-S: \xff",
    b": a",
    b"X\x00: a",
)


def odd_http_1(number: int) -> OddAnswer:
    """The answer of this number in HTTP/1."""
    chance = random.Random(number)
    status, fields = chance.choice(_STATUS_LINES), list[bytes]()
    content = _content(chance)
    coding = chance.choice(_CODINGS) if chance.random() < 0.4 else None
    if coding is not None:
        fields.append(b"Content-Encoding: " + coding)
        content = _encode(chance, coding, content)
    framing = chance.random()
    if framing < 0.35:
        fields.append(b"Content-Length: %d" % len(content))
    elif framing < 0.45:
        fields.append(b"Content-Length: " + chance.choice(_LENGTHS))
    elif framing < 0.8:
        fields.append(b"Transfer-Encoding: " + chance.choice(_TRANSFER_CODINGS))
        content = _chunk(chance, content)
    redirects = status[9:12] in {b"301", b"302", b"303", b"307"} or chance.random() < 0.02
    if redirects:
        fields.append(b"Location: " + chance.choice(_LOCATIONS))
        fields.append(b"Set-Cookie: " + chance.choice(_COOKIES))
    fields += chance.choices(_FIELDS, k=chance.choice((0, 0, 0, 0, 1, 1, 2)))
    chance.shuffle(fields)
    end = b"\n" if chance.random() < 0.05 else b"\r\n"
    answer = end.join((status, *fields, b"", content))
    if chance.random() < 0.1:
        answer = (
            chance.choice((b"HTTP/1.1 100 Continue", b"HTTP/1.1 103 \xff")) + b"\r\n\r\n" + answer
        )
    # No name that chance has made is looked up.
    if not redirects and chance.random() < 0.35:
        answer = _damage(chance, answer)
    return OddAnswer(_split(chance, answer), chance.choice(_ENDINGS))


def _content(chance: random.Random) -> bytes:
    return chance.choice(
        (
            b"hi",
            b"",
            b'{"a": [1, "\xff"]}',
            b'{"a": "\\ud800"}',
            bytes(70_000),
            chance.randbytes(300),
        )
    )


def _encode(chance: random.Random, codings: bytes, content: bytes) -> bytes:
    """Encode as the header says, or not quite."""
    for coding in codings.lower().split(b",")[:3]:
        encode = _ENCODERS.get(coding.strip())
        if encode is not None:
            content = encode(content)
            how = chance.random()
            if how < 0.15:
                content = content[: chance.randrange(len(content) + 1)]
            elif how < 0.25:
                content += encode(b"more")
            elif how < 0.35:
                content += chance.choice((b"\n", b"\0" * 9, b"\x1f\x8b", b"junk\xff"))
    return content


def _raw_deflate(content: bytes) -> bytes:
    return zlib.compress(content)[2:-4]


_ENCODERS: Final[dict[bytes, Callable[[bytes], bytes]]] = {
    b"gzip": lambda content: gzip.compress(content, mtime=0),
    b"x-gzip": lambda content: gzip.compress(content, mtime=0),
    b"deflate": _raw_deflate,
    b"br": lambda content: brotli.compress(content, quality=1),
    b"zstd": lambda content: zstandard.ZstdCompressor(level=1).compress(content),
}


def _chunk(chance: random.Random, content: bytes) -> bytes:
    """The content in chunks, some of which are odd."""
    chunks: list[bytes] = []
    step = chance.choice((1, 5, 1000, 100_000))
    for at in range(0, min(len(content), 20 * step), step):
        piece = content[at : at + step]
        size = chance.choice(_CHUNK_SIZES) if chance.random() < 0.03 else b"%x" % len(piece)
        chunks.append(size + b"\r\n" + piece + b"\r\n")
    if chance.random() < 0.9:
        chunks.append(b"0\r\n")
        chunks += [
            one + b"\r\n" for one in chance.choices(_TRAILERS, k=chance.choice((0, 0, 1, 2)))
        ]
        chunks.append(b"\r\n" if chance.random() < 0.95 else b"")
    return b"".join(chunks)


def _damage(chance: random.Random, data: bytes) -> bytes:
    """Change, drop, double or insert some bytes."""
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(damaged) + 1)
        match chance.randrange(5):
            case 0:
                damaged[at : at + 1] = chance.randbytes(1)
            case 1:
                del damaged[at : at + chance.choice((1, 2, 20))]
            case 2:
                damaged[at:at] = damaged[max(0, at - 20) : at]
            case 3:
                damaged[at:at] = chance.choice(
                    (b"\r\n", b"\0", b"\xff", b"\r", b":", b" ", b"\n\n")
                )
            case _:
                del damaged[at:]
    return bytes(damaged)


def _split(chance: random.Random, data: bytes) -> tuple[bytes, ...]:
    if chance.random() < 0.7 or not data:
        return (data,)
    at = chance.randrange(len(data))
    return data[:at], data[at:]


_STATUSES: Final = (
    *[b"200"] * 12,
    b"103",
    b"204",
    b"404",
    b"2000",
    b"abc",
    b"099",
    b"101",
    b"\xff",
    b"",
)
_FIELDS_2: Final = (
    *((b"x-a", b"\xff\xfe"), (b"x-\xff", b"a"), (b"X-A", b"a"), (b"x-a", b"a\x00b"), (b"", b"a")),
    *(
        (b"connection", b"\xff"),
        (b"transfer-encoding", b"chunked"),
        (b"te", b"\xff"),
        (b":x", b"a"),
    ),
    *((b"content-length", b"9" * 23), (b"content-length", b"3"), (b"content-length", b"\xff")),
    *((b"content-encoding", b"gzip"), (b"content-encoding", b"UTF-8"), (b":status", b"200")),
    *((b"content-type", b"application/json"), (b"x-a", b"y" * 9000), (b"set-cookie", b"\xff=\xff")),
)


def odd_http_2(number: int) -> OddAnswer:
    """The answer of this number in HTTP/2, to the request on stream 1."""
    chance = random.Random(number)
    settings = [frame(SETTINGS, stream=0), frame(SETTINGS, flags=1, stream=0)]
    frames = settings if chance.random() < 0.95 else []
    for kind in chance.choice(
        (
            "HD",
            "HD",
            "HD",
            "H",
            "IHD",
            "HDT",
            "R",
            "HR",
            "HDR",
            "G",
            "HG",
            "HDG",
            "D",
            "PHD",
            "X",
            "HX",
            "",
        )
    ):
        frames.append(_FRAMES[kind](chance))
    data = b"".join(frames)
    if chance.random() < 0.3:
        data = data[:9] + _damage(chance, data[9:])
    return OddAnswer(_split(chance, data), chance.choice(_ENDINGS))


def _headers_2(chance: random.Random, *, status: bytes | None = None) -> bytes:
    fields = [header(*one) for one in chance.choices(_FIELDS_2, k=chance.choice((0, 0, 1, 2)))]
    return head(
        *fields,
        status=chance.choice(_STATUSES) if status is None else status,
        flags=END_HEADERS + (END_STREAM if chance.random() < 0.1 else 0),
    )


def _data_2(chance: random.Random) -> bytes:
    content = _content(chance)[:16_000]
    if chance.random() < 0.3:
        content = _encode(chance, b"gzip", content)[:16_000]
    return frame(DATA, content, flags=chance.choice((0, END_STREAM, END_STREAM, END_STREAM)))


def _trailers_2(chance: random.Random) -> bytes:
    field = header(*chance.choice(_FIELDS_2))
    return frame(HEADERS, field, flags=END_HEADERS + END_STREAM)


def _code(chance: random.Random) -> int:
    return chance.choice((0, 1, 2, 7, 8, 11, 13, 99, 2**32 - 1))


_FRAMES: Final[dict[str, Callable[[random.Random], bytes]]] = {
    "H": _headers_2,
    "I": lambda chance: _headers_2(chance, status=b"103"),
    "D": _data_2,
    "T": _trailers_2,
    "R": lambda chance: rst_stream(_code(chance)),
    "G": lambda chance: goaway(_code(chance), last_stream=chance.randrange(2)),
    "P": lambda chance: frame(_PUSH_PROMISE, chance.randbytes(9), flags=END_HEADERS),
    "X": lambda chance: frame(
        chance.randrange(16), chance.randbytes(20), flags=chance.randrange(256)
    ),
}


async def _number_of_http_1(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1].rpartition(b"/")[2] or 0)


async def _number_of_http_2(reader: asyncio.StreamReader) -> int:
    fields = dict(hpack.Decoder().decode(await read_headers(reader)))
    return int(fields[":path"].rpartition("/")[2])


@contextlib.asynccontextmanager
async def odd_http(version: int) -> AsyncIterator[str]:
    """Yields the URL to which a number is added; `version` is 1 or 2."""
    answer, read = (
        (odd_http_1, _number_of_http_1) if version == 1 else (odd_http_2, _number_of_http_2)
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            number = await read(reader)
        except ValueError:  # where a redirect leads
            number = 0
        odd = answer(number)
        for piece in odd.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if odd.ending is Ending.HANGS:
            await asyncio.sleep(60)
        elif odd.ending is Ending.RESETS:
            reset(writer)
        else:
            writer.write_eof()
            await reader.read()  # until the client goes: closing at once would be a reset

    async with tcp_server(serve) as port:
        yield f"http://127.0.0.1:{port}/"
