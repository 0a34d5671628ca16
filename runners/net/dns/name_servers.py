"""Reads `/etc/hosts` and `/etc/resolv.conf`, again whenever they change."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

from contract.requests import IpFamily
from runners.net.sockets import literal_family

DNS_PORT: Final = 53
MAX_SERVERS: Final = 3
"""How many `nameserver` lines are used; glibc too ignores further ones."""

FileT = TypeVar("FileT")


@dataclass(frozen=True, slots=True)
class NameServer:
    """The address and port of a DNS server."""

    address: str
    port: int = DNS_PORT

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ResolvConf:
    """The settings of resolv.conf that are used here."""

    servers: tuple[NameServer, ...] = (NameServer("127.0.0.1"),)
    """The servers in the order to ask; this host when the file names none, as in glibc."""
    search: tuple[str, ...] = ()
    ndots: int = 1
    """A name with at least this many dots is tried without a search domain first."""

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
    """Time of change and size at the last reading. None: there was no such file."""
    _parsed: FileT | None = field(default=None, init=False)
    """The parsed content. None: the file was not read yet."""

    def read(self) -> FileT:
        """Return the current content; a missing file counts as an empty one."""
        stamp = self._read_stamp()
        if self._parsed is None or stamp != self._stamp:
            text = "" if stamp is None else self.path.read_text(errors="replace")
            self._parsed, self._stamp = self.parse(text), stamp
        return self._parsed

    def _read_stamp(self) -> tuple[int, int] | None:
        try:
            stat = os.stat(self.path)  # noqa: PTH116 - three times as fast, once per lookup
        except FileNotFoundError:
            return None
        return stat.st_mtime_ns, stat.st_size


class HostFiles:
    """The hosts file and resolv.conf of this host."""

    def __init__(
        self,
        *,
        hosts: Path = Path("/etc/hosts"),
        resolv_conf: Path = Path("/etc/resolv.conf"),
    ) -> None:
        self._hosts = WatchedFile(hosts, parse_hosts)
        self._resolv_conf = WatchedFile(resolv_conf, parse_resolv_conf)

    def addresses(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """The name's addresses in `/etc/hosts`; empty when it is not there."""
        return self._hosts.read().get((hostname.lower().rstrip("."), family), ())

    def resolv_conf(self) -> ResolvConf:
        """The current settings: which servers to ask, and how."""
        return self._resolv_conf.read()
