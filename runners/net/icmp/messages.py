"""ICMP echo messages as bytes: making requests, reading what comes back. Pure."""

import struct
from collections.abc import Mapping
from typing import Final

import msgspec

from contract.requests import IpFamily

PACKET_BYTES: Final = 64
"""The size of a request: the ICMP header of 8 bytes, and the 56 bytes that `ping` sends."""
NONCE_BYTES: Final = 8
"""The size of each socket's random nonce, which tells our replies from those of other processes."""

_HEADER: Final = struct.Struct("!BBHHH")
_KEY: Final = struct.Struct("!I")
_NONCE_AT: Final = _HEADER.size
_KEY_AT: Final = _NONCE_AT + NONCE_BYTES
_FILLER: Final = bytes(range(PACKET_BYTES - _KEY_AT - _KEY.size))

_REQUEST: Final = {IpFamily.IPV4: 8, IpFamily.IPV6: 128}
_REPLY: Final = {IpFamily.IPV4: 0, IpFamily.IPV6: 129}

_UNREACHABLE_4: Final = (
    "network-unreachable",
    "host-unreachable",
    "protocol-unreachable",
    "port-unreachable",
    "fragmentation-needed",
    "source-route-failed",
    "network-unknown",
    "host-unknown",
    "source-host-isolated",
    "network-prohibited",
    "host-prohibited",
    "network-unreachable-for-service",
    "host-unreachable-for-service",
    "communication-prohibited",
    "host-precedence-violation",
    "precedence-cutoff",
)
_UNREACHABLE_6: Final = (
    "no-route",
    "communication-prohibited",
    "beyond-scope",
    "address-unreachable",
    "port-unreachable",
    "source-address-failed-policy",
    "route-rejected",
    "source-route-failed",
)
_TIME_EXCEEDED: Final = ("time-to-live-exceeded", "reassembly-time-exceeded")

ERROR_TYPES: Final[Mapping[IpFamily, Mapping[int, tuple[str, tuple[str, ...]]]]] = {
    IpFamily.IPV4: {
        3: ("destination-unreachable", _UNREACHABLE_4),
        11: ("time-exceeded", _TIME_EXCEEDED),
        12: ("parameter-problem", ()),
    },
    IpFamily.IPV6: {
        1: ("destination-unreachable", _UNREACHABLE_6),
        2: ("packet-too-big", ()),
        3: ("time-exceeded", _TIME_EXCEEDED),
        4: ("parameter-problem", ()),
    },
}
"""Per family and type: the name of the type, and the names of its codes."""


class EchoResponse(msgspec.Struct, frozen=True):
    """The reply to one of our requests, or the ICMP error that it caused."""

    key: int
    error: str | None
    """The ICMP error by name. None: it is a reply."""
    destination: bytes | None = None
    """Where the quoted request went. None: it is a reply, or the kernel matched it already."""


def reply_type(family: IpFamily) -> int:
    """The ICMP type of an echo reply."""
    return _REPLY[family]


def error_name(family: IpFamily, kind: int, code: int) -> str | None:
    """The name of an ICMP error. None: the type is no error."""
    known = ERROR_TYPES[family].get(kind)
    if known is None:
        return None
    name, codes = known
    return codes[code] if code < len(codes) else f"{name}-{code}" if codes else name


def echo_request(family: IpFamily, key: int, nonce: bytes) -> bytes:
    """Encode a request whose identifier and sequence are the halves of the key.

    The key is in the payload as well: an unprivileged socket's identifier is the kernel's.
    """
    identifier, sequence = key >> 16, key & 0xFFFF
    body = nonce + _KEY.pack(key) + _FILLER
    checksum = 0  # for IPv6 the kernel computes it: it covers addresses that only the kernel knows
    if family is IpFamily.IPV4:
        bare = _HEADER.pack(_REQUEST[family], 0, 0, identifier, sequence) + body
        checksum = internet_checksum(bare)
    return _HEADER.pack(_REQUEST[family], 0, checksum, identifier, sequence) + body


def internet_checksum(packet: bytes) -> int:
    """RFC 1071, of a packet of even length: a sum of 16-bit words is the number modulo 65535."""
    return 0xFFFF - int.from_bytes(packet, "big") % 0xFFFF


def read_response(message: bytes, family: IpFamily, nonce: bytes) -> EchoResponse | None:
    """Read an ICMP message. None: it does not answer a request with this nonce."""
    if not message:
        return None
    if message[0] == _REPLY[family]:
        return _read_reply(message, nonce)
    if len(message) < _HEADER.size:
        return None
    error = error_name(family, message[0], message[1])
    return None if error is None else _read_error(message[_HEADER.size :], family, error, nonce)


def _read_reply(message: bytes, nonce: bytes) -> EchoResponse | None:
    if message[_NONCE_AT:_KEY_AT] != nonce or len(message) < _KEY_AT + _KEY.size:
        return None
    return EchoResponse(_KEY.unpack_from(message, _KEY_AT)[0], None)


def _read_error(packet: bytes, family: IpFamily, error: str, nonce: bytes) -> EchoResponse | None:
    """Find our request in the IP packet that an ICMP error quotes, perhaps not to its end."""
    if family is IpFamily.IPV4:
        if len(packet) < 20 or packet[9] != 1:
            return None
        quoted, destination = packet[(packet[0] & 0x0F) * 4 :], packet[16:20]
    else:
        if len(packet) < 40 or packet[6] != 58:
            return None
        quoted, destination = packet[40:], packet[24:40]
    key = quoted_key(quoted, family, nonce)
    return None if key is None else EchoResponse(key, error, destination)


def quoted_key(request: bytes, family: IpFamily, nonce: bytes) -> int | None:
    """The key of a quoted echo request. None: it is not ours."""
    if len(request) < _HEADER.size or request[0] != _REQUEST[family]:
        return None
    seen = request[_NONCE_AT:_KEY_AT]
    if not nonce.startswith(seen):
        return None
    _, _, _, identifier, sequence = _HEADER.unpack_from(request)
    return int(identifier) << 16 | int(sequence)


def find_type_and_code(family: IpFamily, error: str | None) -> tuple[int, int] | None:
    """Find the ICMP type and code of an error by its name, or those of a reply for None.

    None: this family has no such error.
    """
    if error is None:
        return _REPLY[family], 0
    return _TYPE_AND_CODE[family].get(error)


_TYPE_AND_CODE: Final = {
    family: {
        error_name(family, kind, code): (kind, code)
        for kind, (_, codes) in kinds.items()
        for code in range(max(len(codes), 1))
    }
    for family, kinds in ERROR_TYPES.items()
}
