"""Addresses as egress rules see them: read once, with every IPv4 address that hides inside."""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

Form = tuple[int, int]
"""Version (4 or 6) and the address as a number."""

_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")
_EXPECTED: Final = "write a network (10.0.0.0/8), an address, a host name, *.suffix or *."


@dataclass(frozen=True, slots=True)
class Network:
    """A network, ready to be compared in one operation."""

    version: int
    start: int
    mask: int
    rule: str
    """The rule as the operator wrote it."""

    @classmethod
    def read(cls, rule: str) -> "Network":
        """Read a network or an address; IPv4-mapped ones become plain IPv4.

        Raises:
            ValueError: with a sentence.
        """
        try:
            network = ipaddress.ip_network(rule, strict=False)
            address = ipaddress.ip_interface(rule).ip
        except ValueError:
            raise ValueError(_EXPECTED) from None
        if address != network.network_address:
            raise ValueError(f"{address} lies inside the network; write {network}.")
        if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
            start = int(network.network_address) & 0xFFFFFFFF
            return cls(4, start, int(network.netmask) & 0xFFFFFFFF, rule)
        return cls(network.version, int(network.network_address), int(network.netmask), rule)

    def holds(self, form: Form) -> bool:
        """Whether the address lies in the network."""
        return form[0] == self.version and form[1] & self.mask == self.start

    def within(self, other: "Network") -> bool:
        """Whether this network is the other or a part of it."""
        return self.mask >= other.mask and other.holds((self.version, self.start))


class AddressForms(msgspec.Struct, frozen=True):
    """An address in every form that rules may name."""

    reached: tuple[Form, ...]
    """The addresses that packets reach: all of these must be allowed."""
    also: tuple[Form, ...] = ()
    """The spelling of a translated address, the end points of a tunnel, what `0.0.0.0` means."""

    @property
    def every(self) -> tuple[Form, ...]:
        """All forms: none of these may be denied."""
        return self.reached + self.also


@lru_cache(maxsize=4096)
def read_address(text: str) -> AddressForms | None:
    """Read an address as a resolver or the kernel spells it; None: that is no address."""
    try:
        address = ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return _read_4(int(address))
    return _read_6(int(address))


@lru_cache(maxsize=4096)
def read_host(host: str) -> AddressForms | None:
    """Read a host of a URL that is an address, `0x7f.1` and `2130706433` included; None: a name."""
    read = read_address(host)
    if read is not None:
        return read
    number = _parse_classful(host.removesuffix("."))
    return None if number is None else _read_4(number)


def _read_4(number: int) -> AddressForms:
    # Linux takes "this host" for the loopback address.
    return AddressForms(((4, number),), () if number else ((4, 0x7F000001),))


def _read_6(number: int) -> AddressForms:
    for prefix, unwrap in _WRAPPERS.items():
        if prefix.holds((6, number)):
            return unwrap(number)
    return AddressForms(((6, number),))


def _read_unspecified(number: int) -> AddressForms:
    return AddressForms(((6, number),), ((6, 1),))


def _read_mapped(number: int) -> AddressForms:
    return _read_4(number & _LAST_32)


def _read_translated(number: int) -> AddressForms:
    inner = _read_4(number & _LAST_32)
    return AddressForms(inner.reached, (*inner.also, (6, number)))


def _read_local_translation(number: int) -> AddressForms:
    """RFC 8215 leaves the prefix's length to the site: take every reading of RFC 6052."""
    readings = {number & _LAST_32}
    for low_bits, high_bits in ((40, 16), (32, 8), (24, 0)):
        if number & (1 << low_bits) - 1 == 0:
            high = number >> 64 & (1 << high_bits) - 1
            low = number >> low_bits & (1 << 32 - high_bits) - 1
            readings.add(high << 32 - high_bits | low)
    forms = tuple((4, reading) for reading in sorted(readings - {0}))
    return AddressForms(forms, ((6, number),)) if forms else AddressForms(((6, number),))


def _read_compatible(number: int) -> AddressForms:
    return AddressForms(((6, number),), _read_4(number & _LAST_32).every)


def _read_6to4(number: int) -> AddressForms:
    return AddressForms(((6, number),), _read_4(number >> 80 & _LAST_32).every)


def _read_teredo(number: int) -> AddressForms:
    server = _read_4(number >> 64 & _LAST_32).every
    return AddressForms(((6, number),), server + _read_4(~number & _LAST_32).every)


_LAST_32: Final = 0xFFFFFFFF
_WRAPPERS: Final[dict[Network, Callable[[int], AddressForms]]] = {
    Network.read("::/128"): _read_unspecified,
    Network.read("::1/128"): lambda number: AddressForms(((6, number),)),
    Network(6, 0xFFFF << 32, (1 << 128) - (1 << 32), "::ffff:0:0/96"): _read_mapped,
    Network.read("::ffff:0:0:0/96"): _read_translated,
    Network.read("64:ff9b::/96"): _read_translated,
    Network.read("64:ff9b:1::/48"): _read_local_translation,
    Network.read("::/96"): _read_compatible,
    Network.read("2002::/16"): _read_6to4,
    Network.read("2001::/32"): _read_teredo,
}
"""What an address inside each network stands for; the first network that holds it counts."""


def _parse_classful(host: str) -> int | None:
    """The number behind `127.1`, `0x7f000001` or `017700000001`; None: a name."""
    *firsts, last = parts = [_parse_integer(part) for part in host.split(".")]
    if len(parts) > 4 or last is None or any(part is None or part > 255 for part in firsts):
        return None
    room = 8 * (4 - len(firsts))
    if last >= 1 << room:
        return None
    return sum((part or 0) << 8 * (3 - at) for at, part in enumerate(firsts)) + last


def _parse_integer(text: str) -> int | None:
    """A number as C reads it: hexadecimal, octal or decimal; None: no number."""
    if not (text.isascii() and text[:1].isdigit()):
        return None
    base = 16 if text[:2] in ("0x", "0X") else 8 if text[0] == "0" else 10
    try:
        return int(text, base) if "_" not in text else None
    except ValueError:
        return 0 if text in ("0x", "0X") else None
