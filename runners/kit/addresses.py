"""Address literals: telling them from names, and what a socket wants to hear."""

import socket
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

from contract.requests import IpFamily

SOCKET_FAMILY: Final = {
    IpFamily.IPV4: socket.AF_INET,
    IpFamily.IPV6: socket.AF_INET6,
}

SocketAddress = tuple[str, int] | tuple[str, int, int, int]


def without_brackets(host: str) -> str:
    """`[::1]` is `::1`, as in a URL."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


@lru_cache(maxsize=4096)
def literal_family(text: str) -> IpFamily | None:
    """The family of an address literal, scoped ones such as fe80::1%eth0 included.

    None: it is no literal but a name.
    """
    if ":" in text:
        return IpFamily.IPV6 if _is_ipv6(text) else None
    try:
        socket.inet_pton(socket.AF_INET, text)
    except (OSError, ValueError):
        return None
    return IpFamily.IPV4


def wrong_family(host: str, wanted: IpFamily) -> str | None:
    """Why an address literal cannot be reached by this family. None: it can, or it is a name."""
    found = literal_family(host)
    if found is None or found is wanted:
        return None
    return (
        f"{host} is an {found} address, and the check's ipFamily is {wanted}; "
        f"set ipFamily to {found}."
    )


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def socket_address(address: str, port: int) -> SocketAddress:
    """What `connect` and `sendto` take, the scope of a link-local address included."""
    if "%" not in address:
        return address, port
    plain, _, scope = address.partition("%")
    return plain, port, 0, int(scope) if scope.isdecimal() else socket.if_nametoindex(scope)


def shown(address: str, port: int) -> str:
    """The address with its port, as people write it."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@lru_cache(maxsize=4096)
def packed_address(address: str, family: IpFamily) -> bytes:
    """The address as it stands in a packet, without its scope."""
    return socket.inet_pton(SOCKET_FAMILY[family], address.partition("%")[0])
