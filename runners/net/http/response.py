"""A response: its head, its body, its text."""

import base64
import codecs
import re
from collections.abc import Sequence
from encodings.aliases import aliases
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import msgspec

_ONCE: Final = frozenset({"content-type", "location"})
"""Headers that mean nothing as a list: of a careless server's two, the first counts."""


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
    """The empty line at its end came."""


def read_head(lines: Sequence[bytes]) -> Head | None:
    """Read the header lines of all answers of one exchange. None: no status line among them."""
    status, headers, cookies, within = "", dict[str, str](), list[str](), False
    for line in _lines(b"".join(lines)):
        if not within:  # what follows a head without being one is a trailer
            if line.startswith("HTTP/"):
                status, headers, cookies, within = line, {}, [], True
            continue
        name, colon, value = line.partition(":")
        if colon:
            key = name.strip().lower()
            if key in headers or key == "set-cookie":
                _take_again(headers, cookies, key, value.strip())
            else:
                headers[key] = value.strip()
        within = bool(line)
    return _head(status, headers, cookies, is_complete=not within)


def _take_again(headers: dict[str, str], cookies: list[str], key: str, value: str) -> None:
    """Take a header that may come more than once."""
    if key == "set-cookie":
        cookies.append(value)
    if key not in headers:
        headers[key] = value
    elif key not in _ONCE:
        headers[key] = f"{headers[key]}, {value}"


def _head(
    status: str, headers: dict[str, str], cookies: list[str], *, is_complete: bool
) -> Head | None:
    version, _, rest = status.partition(" ")
    code, _, text = rest.strip().partition(" ")
    if not code.isdecimal():
        return None
    return Head(int(code), text.strip(), version[5:], headers, tuple(cookies), is_complete)


def _lines(raw: bytes) -> list[str]:
    """The lines without their ends, which are a bare line feed at some servers."""
    return _decode(raw).replace("\r\n", "\n").removesuffix("\n").split("\n")


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


STORED_BYTES: Final = 65_536
"""How much of a text body the result of an API check carries."""
STORED_BYTES_OF_A_URL: Final = 4096
"""The same for a URL check, which is there for the status: enough to read an error page by.

Every stored byte is scrubbed, spooled and sent, at each of many thousand checks.
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
_BYTE_ORDER_MARK: Final = "\ufeff"
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
    """A codec that Python knows."""

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
    """All of it, or more than is ever stored."""
    read_bytes: int
    is_cut: bool
    """There was more than the read limit."""


class Stored(msgspec.Struct, frozen=True):
    """The body as a result carries it."""

    body: str
    encoding: Literal["utf-8", "base64"]
    truncated: bool
    note: str | None
    """Why the body is not stored. None: it is."""


@lru_cache(maxsize=256)
def content_type(header: str | None) -> ContentType:
    """Read the header; without a known charset the text is taken for UTF-8."""
    media_type, _, parameters = (header or "").partition(";")
    return ContentType(media_type.strip().lower(), _charset(parameters))


def as_text(body: bytes, charset: str) -> str:
    """The body as text, without a byte order mark.

    What the charset cannot mean becomes a replacement character.
    """
    return body.decode(charset, "replace").removeprefix(_BYTE_ORDER_MARK)


def _beginning(body: bytes, charset: str) -> str:
    """The same of a body that goes on: a character that was cut in two is left out."""
    decoder = codecs.getincrementaldecoder(charset)("replace")
    return decoder.decode(body).removeprefix(_BYTE_ORDER_MARK)


def stored(body: BodyRead, kind: ContentType, *, as_text_anyway: bool, limit_bytes: int) -> Stored:
    """As much of the body as a result carries.

    `as_text_anyway` stores even what is binary, because an assertion reads it as text.
    """
    if kind.is_binary and not as_text_anyway:
        return _stored_binary(body, kind)
    if body.read_bytes <= limit_bytes:
        return Stored(as_text(body.kept, kind.charset), "utf-8", body.is_cut, None)
    text = _beginning(body.kept[:limit_bytes], kind.charset)
    return Stored(text, "utf-8", truncated=True, note=None)


def _stored_binary(body: BodyRead, kind: ContentType) -> Stored:
    if kind.media_type in _IMAGES and body.read_bytes <= STORED_IMAGE_BYTES and not body.is_cut:
        encoded = base64.b64encode(body.kept).decode()
        return Stored(encoded, "base64", truncated=False, note=None)
    if not body.read_bytes:
        return Stored("", "utf-8", truncated=False, note=None)
    more = "more than " if body.is_cut else ""
    note = f"Not stored: {more}{body.read_bytes} bytes of {kind.media_type}."
    return Stored("", "utf-8", body.is_cut, note)


def _charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return _known(value.strip().strip("\"'"))
    return _UTF_8


def _known(charset: str) -> str:
    """The codec of a charset that the web knows, else UTF-8.

    Not whatever Python can decode: `punycode` takes hours for a megabyte, `utf-7` and
    `unicode_escape` make text that no JSON can hold, and unknown names are looked for on disk.
    """
    name = _SEPARATORS.sub("_", charset.lower()).strip("_")
    codec = aliases.get(name, name)
    return codec if codec in _CODECS else _UTF_8
