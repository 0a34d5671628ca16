"""What `/etc/hosts` and `/etc/resolv.conf` say about names, read anew whenever they change."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

from contract.requests import IpFamily
from runners.net.sockets import literal_family

DNS_PORT: Final = 53
MAX_SERVERS: Final = 3
"""As glibc: further lines are ignored."""

FileT = TypeVar("FileT")


@dataclass(frozen=True, slots=True)
class NameServer:
    """A DNS server to ask."""

    address: str
    port: int = DNS_PORT

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ResolvConf:
    """The part of resolv.conf that matters here."""

    servers: tuple[NameServer, ...] = (NameServer("127.0.0.1"),)
    """In the order to ask; as in glibc, the host itself when the file names none."""
    search: tuple[str, ...] = ()
    ndots: int = 1
    """A name with at least this many dots is tried as it stands first."""

    def candidates(self, hostname: str) -> tuple[str, ...]:
        """The full names to ask for, in order; a final dot switches the search list off."""
        if hostname.endswith("."):
            return (hostname,)
        searched = tuple(f"{hostname}.{domain}" for domain in self.search)
        if hostname.count(".") >= self.ndots:
            return (hostname, *searched)
        return (*searched, hostname)


def parse_resolv_conf(text: str) -> ResolvConf:
    """Read `nameserver`, `search`, `domain` and `options ndots:N`; the rest is skipped."""
    servers: list[NameServer] = []
    search: tuple[str, ...] = ()
    ndots = 1
    for line in text.splitlines():
        match line.split("#")[0].split(";")[0].split():
            case ["nameserver", address, *_] if literal_family(address) is not None:
                servers.append(NameServer(address))
            case ["search" | "domain", *domains]:
                search = tuple(domain.strip(".") for domain in domains if domain != ".")
            case ["options", *options]:
                ndots = _ndots(options, default=ndots)
            case _:
                continue
    known = tuple(servers[:MAX_SERVERS]) or ResolvConf().servers
    return ResolvConf(servers=known, search=search, ndots=ndots)


def _ndots(options: Sequence[str], *, default: int) -> int:
    values = [option.removeprefix("ndots:") for option in options if option.startswith("ndots:")]
    return min(int(values[-1]), 15) if values and values[-1].isdecimal() else default


HostsTable = Mapping[tuple[str, IpFamily], tuple[str, ...]]
"""Addresses by lower-case name and family."""


def parse_hosts(text: str) -> HostsTable:
    """Read lines of an address and its names."""
    table: dict[tuple[str, IpFamily], tuple[str, ...]] = {}
    for line in text.splitlines():
        address, *names = line.split("#")[0].split() or [""]
        family = literal_family(address)
        if family is None:
            continue
        for name in names:
            known = table.get((name.lower(), family), ())
            table[name.lower(), family] = known if address in known else (*known, address)
    return table


@dataclass(slots=True)
class WatchedFile(Generic[FileT]):
    """A file that is parsed again whenever it has changed."""

    path: Path
    parse: Callable[[str], FileT]
    _stamp: tuple[int, int] | None = field(default=None, init=False)
    """Time of change and size when it was last read. None: there is no such file."""
    _parsed: FileT | None = field(default=None, init=False)
    """None: it was not read yet."""

    def read(self) -> FileT:
        """What the file says now; a missing file is as good as an empty one."""
        stamp = self._look()
        if self._parsed is None or stamp != self._stamp:
            text = "" if stamp is None else self.path.read_text(errors="replace")
            self._parsed, self._stamp = self.parse(text), stamp
        return self._parsed

    def _look(self) -> tuple[int, int] | None:
        try:
            seen = os.stat(self.path)  # noqa: PTH116 - three times as fast, once per lookup
        except FileNotFoundError:
            return None
        return seen.st_mtime_ns, seen.st_size


class HostFiles:
    """The two files together."""

    def __init__(
        self,
        *,
        hosts: Path = Path("/etc/hosts"),
        resolv_conf: Path = Path("/etc/resolv.conf"),
    ) -> None:
        self._hosts = WatchedFile(hosts, parse_hosts)
        self._resolv_conf = WatchedFile(resolv_conf, parse_resolv_conf)

    def addresses(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """What `/etc/hosts` says of the name; empty when it says nothing."""
        return self._hosts.read().get((hostname.lower().rstrip("."), family), ())

    def resolv_conf(self) -> ResolvConf:
        """Which servers to ask, and how."""
        return self._resolv_conf.read()
