"""A page's logo and favicon: pictures that were sent with the page, and addresses of others."""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

_KINDS: Final = {
    "image/avif": "avif",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/vnd.microsoft.icon": "ico",
    "image/webp": "webp",
    "image/x-icon": "ico",
}
_DATA: Final = re.compile(
    r"data:(image/[a-z0-9.+-]+)((?:;[a-z0-9=_-]+)*),(.*)", re.IGNORECASE | re.DOTALL
)
_HOST: Final = re.compile(r"[a-z0-9.-]+|\[[0-9a-f:.]+\]")
_WEB: Final = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that was sent with its page."""

    media_type: str
    ending: str
    """How the name of its file ends: `png`."""
    content: bytes


@dataclass(frozen=True, slots=True)
class PictureAddress:
    """A picture that stands elsewhere."""

    address: str
    origin: str
    """What a page's policy must allow: `https://cdn.example.com`."""


def read_picture(text: str | None) -> Picture | PictureAddress | None:
    """A picture as a page has it. None: there is none that browsers could show."""
    if not text:
        return None
    found = _DATA.fullmatch(text)
    return _read_data(found) if found else _read_address(text)


def _read_data(found: re.Match[str]) -> Picture | None:
    media_type, options, data = found.groups()
    ending = _KINDS.get(media_type.lower())
    if ending is None:
        return None
    content = unquote_to_bytes(data)
    if "base64" in options.lower().split(";"):
        try:
            content = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            return None
    return Picture(media_type.lower(), ending, content)


def _read_address(text: str) -> PictureAddress | None:
    if not (origin := find_origin(text)):
        return None
    return PictureAddress(text, origin)


def find_origin(text: str) -> str:
    """The origin of a web address, `https://cdn.example.com`; empty where it is none."""
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").encode("idna").decode().lower()
        port = parts.port
    except (ValueError, UnicodeError):
        return ""
    if parts.scheme.lower() not in _WEB or not _HOST.fullmatch(
        f"[{host}]" if ":" in host else host
    ):
        return ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme.lower()}://{host}" + (f":{port}" if port is not None else "")
