"""One ICMP socket of the host: raw where that is allowed, else unprivileged."""

import errno
import os
import socket
import struct
from array import array
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from contract.requests import IpFamily
from contract.result import MachineError
from runners.net.icmp.messages import (
    ERROR_TYPES,
    NONCE_BYTES,
    EchoResponse,
    echo_request,
    error_name,
    quoted_key,
    read_response,
    reply_type,
)
from runners.net.sockets import SOCKET_FAMILY, SocketAddress

RECEIVE_BUFFER_BYTES: Final = 4 * 1024 * 1024

# Linux's numbers (asm-generic/socket.h, linux/in.h, linux/in6.h), which Python does not name.
_SO_ATTACH_FILTER: Final = 26
_SO_RCVBUFFORCE: Final = 33
_SO_TIMESTAMPNS: Final = 35
_IP_TTL: Final = 2
_IP_RECVERR: Final = 11
_IP_RECVTTL: Final = 12
_IPV6_RECVERR: Final = 25
_IPV6_RECVHOPLIMIT: Final = 51
_IPV6_HOPLIMIT: Final = 52
_MSG_ERRQUEUE: Final = 0x2000

_TIMESPEC: Final = struct.Struct("@ll")
_INT: Final = struct.Struct("@i")
_EXTENDED_ERROR: Final = struct.Struct("=IBBBBII")
_FROM_ICMP: Final = (2, 3)
_DATA_BYTES: Final = 2048
_ANCILLARY_BYTES: Final = 256


ICMP_REMEDY: Final = (
    "run `sysctl -w net.ipv4.ping_group_range='0 2147483647'` as root (for a container "
    "`docker run --sysctl` with the same), or give the agent CAP_NET_RAW"
)


class PingerUnavailableError(MachineError):
    """This host does not let us send pings; no target's fault."""


class IcmpPrivilege(StrEnum):
    """How this host lets us send pings."""

    RAW = "raw"
    """A raw socket: we have CAP_NET_RAW."""
    UNPRIVILEGED = "unprivileged"
    """A datagram socket: our group is in net.ipv4.ping_group_range."""


class Arrival(msgspec.Struct, frozen=True):
    """A response, with the facts of the packet that brought it."""

    response: EchoResponse
    ttl: int | None
    """The packet's time to live. None: the system did not report it."""
    at_ns: int | None
    """When it arrived, by the kernel's wall clock. None: the system did not report it."""


class IcmpSocket:
    """A non-blocking socket that sends echo requests and receives their responses."""

    def __init__(self, sock: socket.socket, family: IpFamily, privilege: IcmpPrivilege) -> None:
        self.privilege = privilege
        self.keys = 1 << 32 if privilege is IcmpPrivilege.RAW else 1 << 16
        """Keys are below this: the kernel sets an unprivileged socket's identifier."""
        self._sock = sock
        self._family = family
        self._has_ip_header = privilege is IcmpPrivilege.RAW and family is IpFamily.IPV4
        self._nonce = os.urandom(NONCE_BYTES)
        self._set_options()

    def fileno(self) -> int:
        """The descriptor, for the event loop."""
        return self._sock.fileno()

    def request(self, key: int) -> bytes:
        """Encode the packet to send under this key."""
        return echo_request(self._family, key, self._nonce)

    def send(self, packet: bytes, address: SocketAddress) -> None:
        """Send one packet; errors are the system's."""
        self._sock.sendto(packet, address)

    def receive(self) -> Arrival | None:
        """The next response to one of our requests; others' packets are skipped.

        None: there is nothing more.
        """
        while True:
            try:
                packet, ancillary, _, _ = self._sock.recvmsg(_DATA_BYTES, _ANCILLARY_BYTES)
            except BlockingIOError:
                return None
            except OSError:
                # An error of an earlier request; `receive_error` has its details.
                if self.privilege is IcmpPrivilege.RAW:
                    raise
                return None
            arrival = self._read(packet, ancillary)
            if arrival is not None:
                return arrival

    def receive_error(self) -> Arrival | None:
        """The next ICMP error of an unprivileged socket. None: there is nothing more."""
        while self.privilege is IcmpPrivilege.UNPRIVILEGED:
            try:
                quoted, ancillary, _, _ = self._sock.recvmsg(
                    _DATA_BYTES, _ANCILLARY_BYTES, _MSG_ERRQUEUE
                )
            except OSError:
                return None  # nothing more: the error queue reports nothing else
            arrival = self._read_error(quoted, ancillary)
            if arrival is not None:
                return arrival
        return None

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def _read(self, packet: bytes, ancillary: Sequence[tuple[int, int, bytes]]) -> Arrival | None:
        ttl, at_ns = None, None
        if self._has_ip_header:
            ttl, packet = packet[8], packet[(packet[0] & 0x0F) * 4 :]
        response = read_response(packet, self._family, self._nonce)
        if response is None:
            return None
        for level, kind, value in ancillary:
            if kind == _SO_TIMESTAMPNS and level == socket.SOL_SOCKET:
                seconds, nanoseconds = _TIMESPEC.unpack_from(value)
                at_ns = seconds * 1_000_000_000 + nanoseconds
            elif kind in (_IP_TTL, _IPV6_HOPLIMIT) and level != socket.SOL_SOCKET:
                (ttl,) = _INT.unpack_from(value)
        return Arrival(response, ttl, at_ns)

    def _read_error(
        self, quoted: bytes, ancillary: Sequence[tuple[int, int, bytes]]
    ) -> Arrival | None:
        key = quoted_key(quoted, self._family, self._nonce)
        for level, _, value in ancillary:
            if level == socket.SOL_SOCKET or len(value) < _EXTENDED_ERROR.size:
                continue
            _, origin, kind, code, _, _, _ = _EXTENDED_ERROR.unpack_from(value)
            error = error_name(self._family, kind, code) if origin in _FROM_ICMP else None
            if key is not None and error is not None:
                return Arrival(EchoResponse(key & 0xFFFF, error), None, None)
        return None

    def _set_options(self) -> None:
        self._sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        try:
            self._sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
        except PermissionError:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if self._family is IpFamily.IPV6:
            self._sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVHOPLIMIT, 1)
        if self.privilege is IcmpPrivilege.RAW:
            self._attach_filter()
        elif self._family is IpFamily.IPV6:
            self._sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
        else:
            self._sock.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)
            self._sock.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)

    def _attach_filter(self) -> None:
        """Let the kernel drop packets of others: a raw socket receives all of the host's ICMP."""
        program = _filter_program(self._family, self._nonce)
        # An array knows its own address, as ctypes does for a MB of memory more.
        instructions = array("B", b"".join(program))
        address, _ = instructions.buffer_info()
        described = struct.pack("@HP", len(program), address)
        self._sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)


def open_icmp_socket(family: IpFamily, privileges: Sequence[IcmpPrivilege]) -> IcmpSocket:
    """A socket with the first of these privileges that we have.

    Raises:
        PingerUnavailableError: we have none of them, or the host has no such family.
    """
    protocol = socket.IPPROTO_ICMP if family is IpFamily.IPV4 else socket.IPPROTO_ICMPV6
    for privilege in privileges:
        kind = socket.SOCK_RAW if privilege is IcmpPrivilege.RAW else socket.SOCK_DGRAM
        try:
            sock = socket.socket(SOCKET_FAMILY[family], kind | socket.SOCK_NONBLOCK, protocol)
        except PermissionError:
            continue
        except OSError as problem:
            if problem.errno not in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT):
                raise
            continue
        return IcmpSocket(sock, family, privilege)
    raise PingerUnavailableError(
        f"This host does not let this user send {family} pings; {ICMP_REMEDY}."
    )


def _filter_program(family: IpFamily, nonce: bytes) -> list[bytes]:
    """Classic BPF: replies that carry the nonce, and errors."""
    errors = sorted(ERROR_TYPES[family])
    # IPv4: X = length of the IP header in front. IPv6: the kernel takes the header off, X = 0.
    start = (0xB1, 0, 0, 0) if family is IpFamily.IPV4 else (0x01, 0, 0, 0)
    program = [
        start,
        (0x50, 0, 0, 0),  # A = type
        (0x15, len(errors), 0, reply_type(family)),  # a reply: on to the nonce
        *((0x15, len(errors) - at + 2, 0, kind) for at, kind in enumerate(errors)),  # take it
    ]
    program[-1] = (0x15, 3, 2, errors[-1])  # the last error type: take it, or else drop it
    program += [
        (0x40, 0, 0, 8),  # A = first half of the nonce
        (0x15, 1, 0, int.from_bytes(nonce[:4], "big")),
        (0x06, 0, 0, 0),  # drop
        (0x06, 0, 0, 0xFFFF),  # take
    ]
    return [struct.pack("@HBBI", *step) for step in program]
