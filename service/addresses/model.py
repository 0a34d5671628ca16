"""Addresses by region, read from a setting."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

Network = IPv4Network | IPv6Network
_BARE: Final = 4
_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class StaticAddresses:
    """Where agents' requests come from: pairs of a region and a network, as they were set."""

    pairs: tuple[tuple[str, Network], ...] = ()

    def of_version(self, version: int) -> list[str]:
        """The addresses of IPv4 or IPv6, each once."""
        return list(dict.fromkeys(text for _, text in self._spelled(version)))

    def by_region(self, version: int) -> dict[str, list[str]]:
        """The addresses of IPv4 or IPv6 by region; a region without any is left out."""
        found: dict[str, list[str]] = {}
        for region, text in self._spelled(version):
            found.setdefault(region, []).append(text)
        return found

    def _spelled(self, version: int) -> Iterator[tuple[str, str]]:
        for region, network in self.pairs:
            if network.version == version:
                yield region, _format_network(network)


NO_ADDRESSES: Final = StaticAddresses()
"""None are set."""


def parse_addresses(text: str) -> StaticAddresses:
    """Read words such as `eu-west-1=203.0.113.7`, with blanks or commas between them.

    Raises:
        ValueError: with what is wrong, and with what.
    """
    words = text.replace(",", " ").split()
    return StaticAddresses(tuple(map(_parse_pair, words)))


def _parse_pair(word: str) -> tuple[str, Network]:
    region, equals, address = word.partition("=")
    if not equals or not region:
        raise ValueError(f"has {word}; write a location, = and an address, as in cellar=192.0.2.7")
    try:
        return region, ip_network(address)
    except ValueError as problem:
        raise ValueError(f"has {word}, which is not an address or network: {problem}") from problem


def _format_network(network: Network) -> str:
    """An IPv4 address has no length behind it; clients read all of IPv6 as networks."""
    is_one = network.version == _BARE and network.prefixlen == _BITS
    return str(network.network_address) if is_one else str(network)
