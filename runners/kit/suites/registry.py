"""Tells a registry that cannot be reached, which is our fault, from one that says no. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from runners.kit.failures import MachineError

_AWAY: Final = re.compile(
    r"\b(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH"
    r"|ERR_SOCKET_TIMEOUT|ConnectionRefused|FailedToOpenSocket)\b"
)
"""What npm, pnpm, yarn and Bun say when nobody answered."""
_ASKED: Final = re.compile(r"(?:https?://|(?:ENOTFOUND|EAI_AGAIN) )([\w.-]+)")
_PUBLIC: Final = re.compile(r"registry\.(?:npm|yarn)[a-z]+\.(?:org|com)")
"""Where a package manager asks unless it is told otherwise."""
_CHOICE: Final = re.compile(r"registry|proxy", re.IGNORECASE)


class RegistryAwayError(MachineError):
    """Packages cannot be fetched here now; no suite is to blame for that."""


def is_away(said: Iterable[str], agents: Mapping[str, str]) -> bool:
    """Whether an installation failed since nobody answered where we asked.

    `agents`: the agent's own environment, which may name proxies. Another host is one that the
    suite has named, in its lock file or by what its packages do.
    """
    of_that = [line for line in said if _AWAY.search(line) or "request to " in line]
    hosts = {host for line in of_that for host in _ASKED.findall(line)}
    proxies = {urlsplit(value).hostname for value in agents.values()}
    others = [host for host in hosts - proxies if not _PUBLIC.fullmatch(host)]
    return any(map(_AWAY.search, of_that)) and not others


def chooses(names_or_settings: Iterable[str]) -> bool:
    """Whether a suite says itself where its packages come from."""
    return any(map(_CHOICE.search, names_or_settings))
