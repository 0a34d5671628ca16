"""A response: its head, its body, its text, and when its parts came."""

import base64
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from encodings.aliases import aliases
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import msgspec

from runners.net.http.curl_multi import make_printable
from runners.runner import EncodedText

_STATUS_LINE: Final = re.compile("HTTP/([0-9](?:[.][0-9])?) ([0-9]{3})(?: (.*))?", re.DOTALL)
"""A status line (RFC 9112, section 4); a space behind the code may be missing."""
_SWITCHING_PROTOCOLS: Final = "101"
"""The only interim status after which no other response of HTTP comes."""
_SINGLE_VALUED: Final = frozenset({"content-type", "location"})
"""Headers that may not be joined to a list: of a careless server's two, the first counts."""


class Head(msgspec.Struct, frozen=True):
    """Status line and headers of the final answer (not of a 100 or of a proxy)."""

    status_code: int
    status_text: str
    http_version: str
    headers: dict[str, str]
    """Lower-case names; repeated headers joined by a comma and a space. Trailers are left out."""
    set_cookies: tuple[str, ...]
    """Each Set-Cookie by itself, because dates hold commas."""
    is_complete: bool = True
    """Whether the empty line at its end was received."""


class BadStatusLineError(ValueError):
    """A response begins with no status line of HTTP; the text is the line."""


def read_head(lines: Sequence[bytes]) -> Head | None:
    """Read the header lines of all answers of one exchange. None: no final one has begun.

    Raises:
        BadStatusLineError: the final one, or the only one, has no status line.
    """
    status, headers, cookies, within = "", dict[str, str](), list[str](), False
    for line in _split_lines(b"".join(lines)):
        if not within:  # what follows a head without being one is a trailer
            if line.startswith("HTTP/") or not status:
                status, headers, cookies, within = line, {}, [], True
            continue
        name, colon, value = line.partition(":")
        if colon:
            key = name.strip().lower()
            if key in headers or key == "set-cookie":
                _repeat_header(headers, cookies, key, value.strip())
            else:
                headers[key] = value.strip()
        within = bool(line)
    return _head(status, headers, cookies, is_complete=not within)


def _repeat_header(headers: dict[str, str], cookies: list[str], key: str, value: str) -> None:
    """Add a header that occurs more than once."""
    if key == "set-cookie":
        cookies.append(value)
    if key not in headers:
        headers[key] = value
    elif key not in _SINGLE_VALUED:
        headers[key] = f"{headers[key]}, {value}"


def _head(
    status: str, headers: dict[str, str], cookies: list[str], *, is_complete: bool
) -> Head | None:
    line = _STATUS_LINE.fullmatch(status)
    if line is None:
        raise BadStatusLineError(status)
    version, code, text = line.groups("")
    if code.startswith("1") and code != _SWITCHING_PROTOCOLS:
        return None
    return Head(int(code), text.strip(), version, headers, tuple(cookies), is_complete)


def _split_lines(raw: bytes) -> list[str]:
    """The lines without their ends, which are a bare line feed at some servers."""
    return _decode(raw).replace("\r\n", "\n").removesuffix("\n").split("\n")


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


_USUAL_GAPS: Final = 2
"""A silence this many times as long as the longest one before it is a stall."""


@dataclass(slots=True)
class Arrivals:
    """When the parts of one response came: a server that drips is no server that hangs."""

    last_s: float = 0.0
    """When the last part came; 0: none did."""
    longest_gap_s: float = 0.0
    """The longest silence between two parts."""

    def note(self) -> None:
        """Note that a part has come."""
        now_s = time.monotonic()
        if self.last_s:
            self.longest_gap_s = max(self.longest_gap_s, now_s - self.last_s)
        self.last_s = now_s

    def are_going_on(self, now_s: float) -> bool:
        """Whether the silence since the last part is like those before it."""
        return bool(self.last_s) and now_s - self.last_s <= _USUAL_GAPS * self.longest_gap_s


STORED_BYTES: Final = 65_536
"""How much of a text body the result of an API check carries."""
STORED_BYTES_OF_A_URL: Final = 4096
"""How much of a text body the result of a URL check carries: enough to read an error page.

Every stored byte is redacted, spooled and sent, for each of many thousand checks.
"""
STORED_IMAGE_BYTES: Final = 50 * 1024
"""Images up to this size are stored as base64, larger ones not at all."""

_IMAGES: Final = frozenset(
    {
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/avif",
        "image/apng",
        "image/bmp",
        "image/x-icon",
        "image/vnd.microsoft.icon",
    }
)
_BINARY: Final = frozenset(
    {
        "application/pdf",
        "application/zip",
        "application/gzip",
        "application/x-gzip",
        "application/octet-stream",
        "application/x-shockwave-flash",
        "application/vnd.adobe.flash.movie",
        "application/ogg",
    }
)
_BINARY_KINDS: Final = frozenset({"audio", "video", "image", "font"})
_TEXT_IMAGES: Final = frozenset({"image/svg+xml"})
_UTF_8: Final = "utf_8"
_SEPARATORS: Final = re.compile("[^a-z0-9]+")
_CODECS: Final = frozenset(
    {
        *("utf_8", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be"),
        *("ascii", "latin_1", "koi8_r", "koi8_u", "mac_roman", "mac_cyrillic", "cp866", "cp874"),
        *("gb2312", "gbk", "gb18030", "big5", "big5hkscs", "cp950", "euc_kr", "cp949"),
        *("shift_jis", "cp932", "euc_jp", "iso2022_jp"),
        *(f"iso8859_{part}" for part in (*range(2, 12), *range(13, 17))),
        *(f"cp{page}" for page in range(1250, 1259)),
    }
)
"""Text encodings of the web, as Python calls them."""


class ContentType(NamedTuple):
    """What a Content-Type header says."""

    media_type: str
    """Lower case, without parameters; empty without a header."""
    charset: str
    """The name of one of Python's codecs."""

    @property
    def is_json(self) -> bool:
        """Whether it promises JSON."""
        kind, _, form = self.media_type.partition("/")
        return form == "json" or form.endswith("+json") or (kind, form) == ("text", "json")

    @property
    def is_binary(self) -> bool:
        """Whether its bytes mean nothing to a reader."""
        if self.media_type in _TEXT_IMAGES:
            return False
        return self.media_type in _BINARY or self.media_type.partition("/")[0] in _BINARY_KINDS


class BodyRead(msgspec.Struct, frozen=True):
    """A body, decoded, as far as it was read."""

    kept: bytes
    """The whole body, or more of its beginning than is ever stored."""
    read_bytes: int
    is_cut: bool
    """Whether the body was longer than the read limit."""


class StoredBody(msgspec.Struct, frozen=True):
    """The body as a result carries it."""

    body: str
    encoding: Literal["utf-8", "base64"]
    truncated: bool
    note: str | None
    """Why the body is not stored. None: it is."""


@lru_cache(maxsize=256)
def parse_content_type(header: str | None) -> ContentType:
    """Read the header; without a known charset the text is taken for UTF-8."""
    media_type, _, parameters = (header or "").partition(";")
    media_type = make_printable(media_type.strip().lower())  # messages quote it
    return ContentType(media_type, _read_charset(parameters))


def store_body(
    body: BodyRead, kind: ContentType, *, even_binary: bool, limit_bytes: int
) -> StoredBody:
    """Cut the body to what a result carries.

    `even_binary` stores a binary body too, because an assertion reads it as text.
    """
    if kind.is_binary and not even_binary:
        return _store_binary(body, kind)
    if body.read_bytes <= limit_bytes:
        text = EncodedText(body.kept, kind.charset).decode()
        return StoredBody(text, "utf-8", body.is_cut, None)
    text = EncodedText(body.kept[:limit_bytes], kind.charset).decode(is_whole=False)
    return StoredBody(text, "utf-8", truncated=True, note=None)


def _store_binary(body: BodyRead, kind: ContentType) -> StoredBody:
    if kind.media_type in _IMAGES and body.read_bytes <= STORED_IMAGE_BYTES and not body.is_cut:
        encoded = base64.b64encode(body.kept).decode()
        return StoredBody(encoded, "base64", truncated=False, note=None)
    if not body.read_bytes:
        return StoredBody("", "utf-8", truncated=False, note=None)
    more = "more than " if body.is_cut else ""
    note = f"Not stored: {more}{body.read_bytes} bytes of {kind.media_type}."
    return StoredBody("", "utf-8", body.is_cut, note)


def _read_charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return _find_codec(value.strip().strip("\"'"))
    return _UTF_8


def _find_codec(charset: str) -> str:
    """The codec of a charset that the web knows, else UTF-8.

    Not whatever Python can decode: `punycode` takes hours for a megabyte, `utf-7` and
    `unicode_escape` make text that no JSON can hold, and unknown names are looked for on disk.
    """
    name = _SEPARATORS.sub("_", charset.lower()).strip("_")
    codec = aliases.get(name, name)
    return codec if codec in _CODECS else _UTF_8
