"""What was said over a connection, decoded as far as HTTP goes. Connections may end anywhere."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_HEAD_END: Final = b"\r\n\r\n"
_GZIP: Final = 31


@dataclass(frozen=True, slots=True)
class Request:
    """One request, or as much of it as was sent."""

    head: bytes
    """With its first line."""
    body: bytes
    """Without chunks, not compressed."""

    @property
    def target(self) -> str:
        """The path that it is for; empty where not even that was sent."""
        words = self.head.split(b"\r\n", 1)[0].split(b" ")
        return words[1].decode("latin-1") if len(words) > 1 else ""

    def headers(self) -> Mapping[str, str]:
        """By their names in lower case."""
        return _headers(self.head)


def requests_of(said: bytes) -> Iterator[Request]:
    """The requests of a connection, in order."""
    while said:
        head, end, rest = said.partition(_HEAD_END)
        if not end:
            yield Request(head, b"")
            return
        headers = _headers(head)
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body, said = _without_chunks(rest)
        else:
            size = int(headers.get("content-length", "0"))
            body, said = rest[:size], rest[size:]
        yield Request(head, _unpacked(body, headers.get("content-encoding", "")))


def _headers(head: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _without_chunks(rest: bytes) -> tuple[bytes, bytes]:
    """The body, and what stands behind it."""
    body = b""
    while rest:
        line, _, rest = rest.partition(b"\r\n")
        size = int(line.split(b";")[0] or b"0", 16)
        if not size:
            return body, rest.removeprefix(b"\r\n")
        body += rest[:size]
        rest = rest[size + 2 :]
    return body, b""


def _unpacked(body: bytes, coding: str) -> bytes:
    """As far as it goes: what is cut is read up to there."""
    return zlib.decompressobj(_GZIP).decompress(body) if coding == "gzip" else body
