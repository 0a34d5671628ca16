"""Other addresses at which links run checks, such as that of a preview before it is released.

Whoever has a link has no key, and a run sends what its check sends: headers, passwords, scripts'
secrets. So the operator names the hosts that may get them, and without the setting there are none.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from service.http.errors import InvalidError

_MOST_LETTERS: Final = 2_000
_PATTERN: Final = re.compile(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]")
# RFC 3986 has no others. By a backslash browsers end the host, and braces are filled with secrets.
_LETTERS: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*")
_HOST: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f:.]+")
_FIELD: Final = "environmentUrl"
_VARIABLE: Final = r"\{\{[^{}]*\}\}"
_ORIGIN: Final = re.compile(
    rf"(?:[A-Za-z][A-Za-z0-9+.-]*|{_VARIABLE})://[^/?#]*?"
    rf"(?=(?<=[A-Za-z0-9]){_VARIABLE}(?:[/?#]|$)|[/?#]|$)|{_VARIABLE}"
)
"""Scheme, host and port. A variable right behind a host is the beginning of the path."""
VARIABLE: Final = "ENVIRONMENT_URL"
"""What scripts have the address as."""


@dataclass(frozen=True, slots=True)
class EnvironmentHosts:
    """The hosts that `environmentUrl` may name."""

    patterns: tuple[str, ...] = ()
    """In lower case: a host, `*.` and a domain for all hosts below it, or `*` for any."""

    def read_url(self, text: str) -> str:
        """The address, if checks may be run there.

        Raises:
            InvalidError: it is none, or its host may not be named.
        """
        if not self.patterns:
            raise _refuse(
                "is not allowed here: the service's setting ENVIRONMENT_URL_HOSTS names no host"
                " that it may lead to"
            )
        url = _split(text)
        if (
            url is None
            or url.scheme not in {"http", "https"}
            or not url.hostname
            or not _HOST.fullmatch(url.hostname)
        ):
            raise _refuse("must be an http or https URL, such as https://preview.example.com")
        if "@" in url.netloc:
            raise _refuse("must not have a user name or password in it")
        if not any(_matches(url.hostname, one) for one in self.patterns):
            raise _refuse(
                f"must not lead to {url.hostname}: the service's setting ENVIRONMENT_URL_HOSTS has"
                f" {', '.join(self.patterns)}"
            )
        return text


NO_HOSTS: Final = EnvironmentHosts()
"""Checks are run at their own addresses only."""


def parse_hosts(text: str) -> EnvironmentHosts:
    """Read hosts such as `*.preview.example.com,10.0.0.7`, with blanks or commas between them.

    Raises:
        ValueError: with the rest of a sentence that says what is wrong.
    """
    words = text.replace(",", " ").split()
    for word in words:
        if not _PATTERN.fullmatch(word):
            raise ValueError(
                f"has {word}; write a host without a port, as in preview.example.com, or"
                " *.example.com for all hosts below example.com, or * for any host"
            )
    return EnvironmentHosts(tuple(word.strip("[]").lower() for word in words))


def move_url(url: str, environment_url: str) -> str:
    """The URL of a request at another address.

    An address without a path replaces scheme, host and port, or the variable `{{…}}` that stands
    for them; one with a path replaces the whole URL.
    """
    wanted = urlsplit(environment_url)
    origin = _ORIGIN.match(url)
    if origin is None or wanted.path not in {"", "/"} or wanted.query or wanted.fragment:
        return environment_url
    return f"{wanted.scheme}://{wanted.netloc}{url[origin.end() :]}"


def _split(text: str) -> SplitResult | None:
    if len(text) > _MOST_LETTERS or not _LETTERS.fullmatch(text):
        return None
    try:
        url = urlsplit(text)
        _ = url.port  # which may be none
    except ValueError:
        return None
    return url


def _matches(host: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return pattern in {"*", host}


def _refuse(reason: str) -> InvalidError:
    return InvalidError(f'"{_FIELD}" {reason}.', keys=(_FIELD,), source="query")
