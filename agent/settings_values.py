"""Reads single values of settings; what cannot be used raises `ValueError`."""

import os
import re
import ssl
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import SplitResult, urlsplit

EnumT = TypeVar("EnumT", bound=StrEnum)

BYTES_PER_MAIN_JOB: Final = 1_500_000_000
"""What a browser and its Node process need."""
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~\-]{1,100}")
_SWITCH: Final = {
    "on": True, "true": True, "yes": True, "1": True,
    "off": False, "false": False, "no": False, "0": False,
}  # fmt: skip
_UNITS: Final = {
    "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4,
    "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4,
}  # fmt: skip
_CGROUP_LIMITS: Final = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


_ACCOUNT_KEY: Final = "cu_"
"""What the keys of the public API begin with."""


class OtherKindError(ValueError):
    """The value is one of another kind; the text says of which, and never the value."""


class BadPartError(ValueError):
    """A part of the value is wrong; the text says what to use, and never the value."""


def location_key(text: str) -> str:
    """A key that goes into a header: no blanks, no control characters, ASCII.

    Only what is known to be another key is refused for its beginning.
    """
    if text.startswith(_ACCOUNT_KEY):
        raise OtherKindError(f"a key of the public API, which begins with {_ACCOUNT_KEY}")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(text)
    return text


def service_url(text: str) -> str:
    """An http or https address without credentials, query and fragment, no slash at its end.

    One of its API is none: what the agent asks for begins with that itself.
    """
    parts = _http_url(text)
    is_of_api = parts.path.rstrip("/").endswith(("/v1", "/v2"))
    if parts.username is not None or parts.query or parts.fragment or is_of_api:
        raise ValueError(text)
    return text.rstrip("/")


def proxy_url(text: str) -> str:
    """The address of an HTTP proxy, perhaps with credentials; `http://` may be left out."""
    text = text if "://" in text else f"http://{text}"
    _http_url(text)
    return text


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number within bounds."""

    def read(text: str) -> int:
        number = int(text)
        if not low <= number <= high:
            raise ValueError(text)
        return number

    return read


def seconds(low: float, high: float) -> Callable[[str], float]:
    """A number of seconds within bounds."""

    def read(text: str) -> float:
        number = float(text.removesuffix("s"))
        if not low <= number <= high:
            raise ValueError(text)
        return number

    return read


def size_bytes(text: str) -> int:
    """A size: plain bytes, or a number with a unit as in `512MiB`."""
    lower = text.replace(" ", "").lower()
    unit = next((unit for unit in _UNITS if lower.endswith(unit)), "")
    size = int(lower.removesuffix(unit)) * _UNITS.get(unit, 1)
    if size < 0:
        raise ValueError(text)
    return size


def switch(text: str) -> bool:
    """`on` or `off`, in the usual spellings."""
    try:
        return _SWITCH[text.lower()]
    except KeyError:
        raise ValueError(text) from None


def word_of(words: type[EnumT], *, upper: bool) -> Callable[[str], EnumT]:
    """One of a closed set of words, in any case."""
    return lambda text: words(text.upper() if upper else text.lower())


def listed(text: str) -> tuple[str, ...]:
    """Values separated by commas; blanks around them do not count."""
    return tuple(filter(None, map(str.strip, text.split(","))))


def header_names(text: str) -> tuple[str, ...]:
    """Names of headers, separated by commas."""
    names = listed(text)
    if not all(_HEADER_NAME.fullmatch(name) for name in names):
        raise ValueError
    return names


def directory(text: str) -> Path:
    """An absolute path; it is made later, when something is to be kept in it."""
    path = Path(text)
    if not path.is_absolute():
        raise ValueError(text)
    return path


def existing_directory(text: str) -> Path:
    """A folder that is there."""
    path = directory(text)
    if not path.is_dir():
        raise ValueError(text)
    return path


def program(text: str) -> Path:
    """A file that may be executed, by its absolute path."""
    path = directory(text)
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise ValueError(text)
    return path


def pem_file(text: str) -> Path:
    """A readable file of at least one certificate."""
    path = Path(text)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except OSError as problem:  # ssl.SSLError is one
        raise ValueError(text) from problem
    return path


def default_main_slots(*, cores: int, free_bytes: int) -> int:
    """One job per 1.5 GB of free memory, at most one per core, at least one."""
    return max(1, min(cores, free_bytes // BYTES_PER_MAIN_JOB))


def free_memory_bytes() -> int:
    """What this process may still use, by the machine and by its container's limit."""
    free = [_available_bytes()]
    for limit, used in _CGROUP_LIMITS:
        try:
            free.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # no such limit, or the word "max"
            continue
    return max(0, min(free))


def _available_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return BYTES_PER_MAIN_JOB
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return kilobytes[0] * 1024 if kilobytes else BYTES_PER_MAIN_JOB


def _http_url(text: str) -> SplitResult:
    parts = urlsplit(text)
    blank = any(letter.isspace() for letter in text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or blank:
        raise ValueError(text)
    if not _has_good_port(parts):
        raise BadPartError("a port from 1 to 65535, or none")
    parts.hostname.encode("idna")  # raises UnicodeError, a ValueError, when it can be no name
    return parts


def _has_good_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False
