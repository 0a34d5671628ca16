"""Which addresses the service's own requests may reach.

Who may create a channel chooses where the service connects to. Private networks are allowed, since
receivers of a self-hosted service stand there; the machine itself and its link are not.
"""

import socket
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any, Final

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_NAT64: Final = IPv6Network("64:ff9b::/96")
_THIS_HOST: Final = IPv4Network("0.0.0.0/8")
_LOW_32_BITS: Final = (1 << 32) - 1


class EgressError(OSError):
    """An address that requests of the service must not reach."""


@dataclass(frozen=True, slots=True)
class EgressRule:
    """What may be reached."""

    allowed: tuple[Network, ...] = ()
    """Networks that may be reached although they are local."""

    def check(self, address: str) -> None:
        """Refuse an address.

        Raises:
            EgressError: it must not be reached.
        """
        found = unwrap(ip_address(address.partition("%")[0]))
        if any(found in network for network in self.allowed):
            return
        if kind := local_kind(found):
            raise EgressError(f"{found} is {kind}")


class EgressGate:
    """The way out of one request: each of its connections passes here."""

    def __init__(self, rule: EgressRule) -> None:
        self._rule = rule
        self.refusal: EgressError | None = None
        """The last address that was refused; clients hide it in words of their own. None: none."""

    def open_socket(self, target: tuple[Any, ...]) -> socket.socket:
        """The socket for an address that was resolved; the moment before it is connected."""
        family, kind, protocol, _, address = target
        try:
            self._rule.check(str(address[0]))
        except EgressError as problem:
            self.refusal = problem
            raise
        return socket.socket(family, kind, protocol)


def unwrap(address: Address) -> Address:
    """The IPv4 address that is meant by one of IPv6, if it is of such a kind."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & _LOW_32_BITS)
    return address


def local_kind(address: Address) -> str | None:
    """Why an address is not to be reached. None: it may be."""
    if address.is_unspecified or (isinstance(address, IPv4Address) and address in _THIS_HOST):
        return "the unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast or address == IPv4Address("255.255.255.255"):
        return "a multicast address"
    return None


def parse_networks(text: str) -> tuple[Network, ...]:
    """The networks of a setting, as in `127.0.0.0/8,169.254.7.1`.

    Raises:
        ValueError: one of them is none.
    """
    return tuple(map(_parse_network, filter(None, (part.strip() for part in text.split(",")))))


def _parse_network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(f"has {text}; use networks as in 127.0.0.0/8,192.0.2.7") from None
