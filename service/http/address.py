"""Where a request comes from, and what of that counts as one place."""

from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.requests import HTTPConnection

_MOST_LETTERS: Final = 100
_OF_ONE_PLACE_BITS: Final = 64


def address_of(request: HTTPConnection) -> str | None:
    """The other end's address; None: not known.

    What a trusted proxy says of it counts, and whoever asks through another can write anything.
    """
    return request.client.host[:_MOST_LETTERS] if request.client else None


def place_of(request: HTTPConnection) -> str:
    """The address as limits count it: whoever has one IPv6 address has 2^64 of them."""
    host = address_of(request) or ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), _OF_ONE_PLACE_BITS), strict=False))
