"""The head of an answer. Pure."""

from collections.abc import Sequence
from typing import Final

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
    return _decoded(raw).replace("\r\n", "\n").removesuffix("\n").split("\n")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
