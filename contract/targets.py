"""What may be looked at: hosts, ports, addresses, and how a wrong value is shown.

What addresses, hosts and names of a check can be at all. Pure.

Each function gives what is wrong as the end of a sentence that begins with the field, or None. Of
the text itself only a plain name is shown, as an address may hold keys. What holds a `{{NAME}}` is
not judged before it is filled.
"""

import math
import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

_SCHEMES: Final = ("http://", "https://")
_OPEN: Final = "{{"
"""Where a place to be filled begins."""
_MORE_THAN_A_HOST: Final = "must be a host name or an address, without scheme, port or path"
_NOT_IN_A_HOST: Final = re.compile(r"[\s\x00-\x1f\x7f/\\?#@]")
_FOUR_NUMBERS: Final = re.compile(r"\d+(\.\d+){3}")
_HEADER_NAME_END: Final = re.compile(r"[:\s]")
_LIKE_A_HEADER_NAME: Final = re.compile(r"[A-Za-z]{1,30}(-[A-Za-z0-9]{1,20}){0,5}")
_ONLY_A_NAME: Final = re.compile(r"[\w.-]{1,60}(:\d{1,5})?|[0-9A-Fa-f:.\[\]]{1,60}")
_MOST_LABEL_BYTES: Final = 63
_MOST_NAME_BYTES: Final = 253


def is_open(text: str) -> bool:
    """Whether a variable is still to be filled in."""
    return _OPEN in text


def url_problem(url: str) -> str | None:
    """A URL is http or https, or begins with a variable."""
    if url.startswith(_OPEN):
        return None
    if not url.lower().startswith(_SCHEMES):
        return "must begin with http:// or https:// or a {{VARIABLE}}"
    if is_open(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return "names a host that cannot be read: brackets are for IPv6 addresses"
    return _port_problem(parts) or _url_host_problem(parts.hostname or "")


def _port_problem(parts: SplitResult) -> str | None:
    try:
        is_good = parts.port != 0
    except ValueError:
        is_good = False
    return None if is_good else "names a port that is no number from 1 to 65535"


def _url_host_problem(host: str) -> str | None:
    if not host:
        return "names no host"
    if problem := _host_problem(host if ":" in host else unquote(host)):
        return f"names a host that cannot be one: it {problem}"
    return None


def hostname_problem(hostname: str) -> str | None:
    """A host name or an address, with neither scheme nor port nor path."""
    return _with_name(hostname, _host_problem(hostname))


def _host_problem(hostname: str) -> str | None:
    if is_open(hostname):
        return None
    if _NOT_IN_A_HOST.search(hostname):
        return _MORE_THAN_A_HOST
    host = hostname[1:-1] if hostname.startswith("[") and hostname.endswith("]") else hostname
    if host.count(":") == 1:
        return "must not hold a port; use the field port"
    if ":" in host:
        return None if _is_address(host, IPv6Address) else "is no IPv6 address"
    if _FOUR_NUMBERS.fullmatch(host):
        return None if _is_address(host, IPv4Address) else "is no IPv4 address"
    return "has brackets, which are for IPv6 addresses" if "[" in hostname else _label_problem(host)


def dns_name_problem(name: str) -> str | None:
    """A name to ask DNS for; an address is one too, as PTR questions take it."""
    return _with_name(name, _name_problem(name))


def _with_name(name: str, problem: str | None) -> str | None:
    """Shows a name that is no more than one: behind a colon may stand a password."""
    is_shown = problem is not None and _ONLY_A_NAME.fullmatch(name) is not None
    return f"is {format_value(name)}, which {problem}" if is_shown else problem


def _name_problem(name: str) -> str | None:
    if is_open(name) or name == "." or _is_address(name, IPv6Address):
        return None
    if "://" in name or any(ord(letter) < 0x20 for letter in name):
        return "must be a DNS name, without scheme"
    # A backslash spells a letter by its number; only DNS itself can count those.
    return None if "\\" in name else _label_problem(name)


def header_problem(key: str, value: str) -> str | None:
    """A header stays on its line, and its name is one; blanks at its ends are not sent."""
    if any(letter in "\r\n" for letter in key + value):
        return "must not hold a line break"
    if is_open(key) or (start := start_of_no_header_name(key.strip())) is None:
        return None
    if not start:
        return "has a name with white space or a colon; it may hold neither"
    return f"is called {start}…; a name holds neither white space nor a colon"


def start_of_no_header_name(name: str) -> str | None:
    """What stands before the white space or colon that it must not hold. None: it holds none.

    Empty: that is no plain name either. It may be a cookie or a key, as what stands behind a colon
    may be.
    """
    start, *rest = _HEADER_NAME_END.split(name, maxsplit=1)
    if not rest:
        return None
    return start if _LIKE_A_HEADER_NAME.fullmatch(start) else ""


def _is_address(text: str, family: type[IPv4Address] | type[IPv6Address]) -> bool:
    try:
        family(text)
    except ValueError:
        return False
    return True


def _label_problem(name: str) -> str | None:
    """Names are labels with dots between; a final dot ends a full one."""
    labels = name.removesuffix(".").split(".")
    if not all(labels):
        return "must not have two dots in a row or one in front"
    try:
        sizes = [len(_ascii(label)) for label in labels]
    except UnicodeError:
        return "holds letters that no name can have"
    if max(sizes) > _MOST_LABEL_BYTES:
        return f"has a part of more than {_MOST_LABEL_BYTES} characters between two dots"
    if sum(sizes) + len(sizes) - 1 > _MOST_NAME_BYTES:
        return f"is longer than a name can be: {_MOST_NAME_BYTES} characters"
    return None


def _ascii(label: str) -> bytes:
    """As it stands in a packet; letters beyond ASCII have a spelling of their own there."""
    return label.encode() if label.isascii() else label.encode("idna")


_MOST_LETTERS: Final = 60
_LARGEST: Final = 1e300
"""What is larger is not written out."""
_KINDS: Final = (
    (bool, "a boolean"),
    (int | float, "a number"),
    (str, "a text"),
    (Mapping, "an object"),
    (list | tuple, "an array"),
)
_MAY_HOLD_A_SECRET: Final = re.compile(r"^(cu|sv|pl)_|://|@", re.IGNORECASE)
"""A key that was put into the wrong field; an address, of which any part may be one."""


def format_value(value: object) -> str:
    """The value itself, or of which kind it is: `80`, `mars-1`, `empty`, `an array`.

    For fields that hold words of ours, names, numbers and times. A text of another field may be a
    secret, and is not to be told.
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str):
        return _text(value)
    return kind_of(value)


def kind_of(value: object) -> str:
    """Of which kind a value is, and no more."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "null")


def _number(value: float) -> str:
    if not abs(value) < _LARGEST:
        is_finite = isinstance(value, int) or math.isfinite(value)
        return "too large a number" if is_finite else "no finite number"
    return str(value) if abs(value) < 1e15 else f"{value:g}"


def _text(text: str) -> str:
    if not text.strip():
        return "blank" if text else "empty"
    if len(text) > _MOST_LETTERS:
        return f"a text of {len(text)} characters"
    if not text.isprintable() or _MAY_HOLD_A_SECRET.search(text):
        return "a text"
    return text
