"""Rules for URLs, hosts, DNS names, headers and status codes, and how errors show a wrong value.

Each function returns what is wrong as the rest of a sentence that begins with the field, or None.
Errors quote only plain names, because a URL may hold keys.
A text with `{{NAME}}` in it is not checked before the variable is filled in.
"""

import math
import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

_SCHEMES: Final = ("http://", "https://")
_OPEN: Final = "{{"
"""The start of a variable."""
_MORE_THAN_A_HOST: Final = "must be a host name or an IP address, without scheme, port or path"
_NOT_IN_A_HOST: Final = re.compile(r"[\s\x00-\x1f\x7f/\\?#@]")
_FOUR_NUMBERS: Final = re.compile(r"\d+(\.\d+){3}")
_HEADER_NAME_END: Final = re.compile(r"[:\s]")
_LIKE_A_HEADER_NAME: Final = re.compile(r"[A-Za-z]{1,30}(-[A-Za-z0-9]{1,20}){0,5}")
_ONLY_A_NAME: Final = re.compile(r"[\w.-]{1,60}(:\d{1,5})?|[0-9A-Fa-f:.\[\]]{1,60}")
_MOST_LABEL_BYTES: Final = 63
_MOST_NAME_BYTES: Final = 253
_HIGHEST_PORT: Final = 65_535


def is_open(text: str) -> bool:
    """Whether the text contains a variable."""
    return _OPEN in text


def url_problem(url: str) -> str | None:
    """A URL must be http or https, or begin with a variable."""
    if url.startswith(_OPEN):
        return None
    if not url.lower().startswith(_SCHEMES):
        return "must begin with http:// or https:// or a {{VARIABLE}}"
    if is_open(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return "has an invalid host: only IPv6 addresses have brackets"
    return _port_problem(parts) or _url_host_problem(parts.hostname or "")


def _port_problem(parts: SplitResult) -> str | None:
    try:
        is_good = parts.port != 0
    except ValueError:
        is_good = False
    return None if is_good else "has an invalid port; use a number from 1 to 65535"


def _url_host_problem(host: str) -> str | None:
    if not host:
        return "has no host"
    if problem := _host_problem(host if ":" in host else unquote(host)):
        return f"has an invalid host: it {problem}"
    return None


def hostname_problem(hostname: str) -> str | None:
    """A host must be a name or an IP address, without scheme, port or path."""
    return _with_name(hostname, _host_problem(hostname))


def _host_problem(hostname: str) -> str | None:
    if is_open(hostname):
        return None
    if _NOT_IN_A_HOST.search(hostname):
        return _MORE_THAN_A_HOST
    host = hostname[1:-1] if hostname.startswith("[") and hostname.endswith("]") else hostname
    if host.count(":") == 1:
        return "must not contain a port; use the field port"
    if ":" in host:
        return None if _is_address(host, IPv6Address) else "is not a valid IPv6 address"
    if _FOUR_NUMBERS.fullmatch(host):
        return None if _is_address(host, IPv4Address) else "is not a valid IPv4 address"
    return (
        "has brackets, which only IPv6 addresses may have"
        if "[" in hostname
        else _label_problem(host)
    )


def connect_to_problem(text: str) -> str | None:
    """What to connect to must be an IP address, perhaps with a port."""
    if split_address(text) is not None:
        return None
    return "must be an IP address, perhaps with a port, as in 10.0.0.7, 10.0.0.7:8443 or [::1]:443"


def split_address(text: str) -> tuple[str, int | None] | None:
    """Split an IP address, in brackets where it is IPv6 with a port, from its port.

    None: it is no address. The port is None where there is none.
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if _is_address(bare, IPv6Address) or _is_address(text, IPv4Address):
        return bare, None
    host, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 1 <= int(port) <= _HIGHEST_PORT
    if not is_port:
        return None
    if host.startswith("[") and host.endswith("]"):
        return (host[1:-1], int(port)) if _is_address(host[1:-1], IPv6Address) else None
    return (host, int(port)) if _is_address(host, IPv4Address) else None


def dns_name_problem(name: str) -> str | None:
    """A DNS name must be valid; an IP address is valid too, for PTR queries."""
    return _with_name(name, _name_problem(name))


def _with_name(name: str, problem: str | None) -> str | None:
    """Quote the value if it is a plain name; other text may contain a password."""
    is_shown = problem is not None and _ONLY_A_NAME.fullmatch(name) is not None
    return f"is {format_value(name)}, which {problem}" if is_shown else problem


def _name_problem(name: str) -> str | None:
    if is_open(name) or name == "." or _is_address(name, IPv6Address):
        return None
    if "://" in name or any(ord(letter) < 0x20 for letter in name):
        return "must be a DNS name, without a scheme"
    # A backslash escapes a character by its number; only DNS itself can measure those.
    return None if "\\" in name else _label_problem(name)


def header_problem(key: str, value: str) -> str | None:
    """A header must be one line with a valid name; white space around the name is not sent."""
    if any(letter in "\r\n" for letter in key + value):
        return "must not contain a line break"
    if is_open(key) or (start := start_of_no_header_name(key.strip())) is None:
        return None
    if not start:
        return "has a name with white space or a colon, which header names may not contain"
    return f"is called {start}…; header names may not contain white space or a colon"


def start_of_no_header_name(name: str) -> str | None:
    """Return what precedes the invalid white space or colon. None: the name has neither.

    Empty: what precedes it is not a plain name and may itself be secret, such as a cookie or a key.
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
    """A name must be labels separated by dots; a final dot marks it as fully qualified."""
    labels = name.removesuffix(".").split(".")
    if not all(labels):
        return "must not have two dots in a row or begin with a dot"
    try:
        sizes = [len(_ascii(label)) for label in labels]
    except UnicodeError:
        return "contains characters that no host name can have"
    if max(sizes) > _MOST_LABEL_BYTES:
        return f"has a part of more than {_MOST_LABEL_BYTES} characters between two dots"
    if sum(sizes) + len(sizes) - 1 > _MOST_NAME_BYTES:
        return f"is longer than a name can be: {_MOST_NAME_BYTES} characters"
    return None


def _ascii(label: str) -> bytes:
    """Return the label as DNS packets have it: IDNA-encoded if it is not ASCII."""
    return label.encode() if label.isascii() else label.encode("idna")


_MOST_LETTERS: Final = 60
_LARGEST: Final = 1e300
"""The size from which errors do not write numbers out."""
_KINDS: Final = (
    (bool, "a boolean"),
    (int | float, "a number"),
    (str, "a text"),
    (Mapping, "an object"),
    (list | tuple, "an array"),
)
_MAY_HOLD_A_SECRET: Final = re.compile(r"^(cu|sv|pl)_|://|@", re.IGNORECASE)
"""Texts that errors do not quote: a key in the wrong field, or a URL with credentials."""


def format_value(value: object) -> str:
    """Return the value as errors show it, or only its kind: `80`, `mars-1`, `empty`, `an array`.

    Use it for fields with keywords, names, numbers and times; free text may be a secret.
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str):
        return _text(value)
    return kind_of(value)


def kind_of(value: object) -> str:
    """Return what kind of value it is, without the value itself."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "null")


def _number(value: float) -> str:
    if not abs(value) < _LARGEST:
        is_finite = isinstance(value, int) or math.isfinite(value)
        return "too large a number" if is_finite else "not a finite number"
    return str(value) if abs(value) < 1e15 else f"{value:g}"


def _text(text: str) -> str:
    if not text.strip():
        return "blank" if text else "empty"
    if len(text) > _MOST_LETTERS:
        return f"a text of {len(text)} characters"
    if not text.isprintable() or _MAY_HOLD_A_SECRET.search(text):
        return "a text"
    return text


LOWEST_ERROR: Final = 400
"""Without a list, what is below passes."""
_STATUS_CODES: Final = re.compile(r"([1-9])xx|([1-9]\d\d)(?:-([1-9]\d\d))?", re.IGNORECASE)


def status_codes_problem(text: str) -> str | None:
    """Return what is wrong with an entry of the list. None: it can be used."""
    codes = _read_codes(text)
    if codes is None:
        return f"is {format_value(text)}; use a code, a range or a class, as in 429, 200-299 or 4xx"
    if not codes:
        return f"is {text}, which holds no code; write the lower one first"
    return None


def is_accepted(status: int, accepted: Iterable[str | int]) -> bool:
    """Whether the status is on the list."""
    return any(status in (_read_codes(str(entry)) or ()) for entry in accepted)


def _read_codes(text: str) -> range | None:
    found = _STATUS_CODES.fullmatch(text.strip())
    if found is None:
        return None
    first_digit, low, high = found.groups()
    if first_digit is not None:
        return range(int(first_digit) * 100, int(first_digit) * 100 + 100)
    return range(int(low), int(high or low) + 1)
