"""A network of its own for one test: a place where packets vanish, and a router that complains.

Needs the right to make network namespaces (root). Nothing leaves it.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import select
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

import pytest

from contract.requests import IpFamily
from runners.net.icmp.messages import internet_checksum
from runners.net.icmp.socket import IcmpPrivilege, PingerUnavailableError, open_icmp_socket
from runners.net.sockets import SOCKET_FAMILY
from tests.builders.patience import LONG_S

CLONE_NEWNET: Final = 0x40000000
SWALLOWED: Final = {IpFamily.IPV4: "192.0.2.9", IpFamily.IPV6: "2001:db8::9"}
"""Hosts that never answer: their packets end in a tun interface that nobody reads."""
OWN: Final = {IpFamily.IPV4: "192.0.2.1", IpFamily.IPV6: "2001:db8::1"}
ROUTER: Final = {IpFamily.IPV4: "192.0.2.254", IpFamily.IPV6: "2001:db8::fe"}
UNREACHABLE: Final = "198.51.100.1"
"""Behind a route that says unreachable."""
PROHIBITED: Final = "203.0.113.1"
"""Behind a route that says prohibited."""

_SETUP: Final = (
    "link set lo up",
    "addr add 192.0.2.1/24 dev swallow",
    "addr add 2001:db8::1/64 dev swallow nodad",
    "link set swallow up",
    "route add unreachable 198.51.100.0/24",
    "route add prohibit 203.0.113.0/24",
)
_TUNSETIFF: Final = 0x400454CA
_TUN_WITHOUT_PREFIX: Final = 0x1001


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def island() -> Iterator[int]:
    """Sockets opened inside belong to a network that has nothing but the hosts above.

    Yields the descriptor of the wire that leads to the swallowed hosts.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        _leave_out("making a network namespace needs root and iproute2")
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if _libc().unshare(CLONE_NEWNET) != 0:
            _leave_out(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        try:
            with _wire() as wire:
                for command in _SETUP:
                    subprocess.run(["ip", *command.split()], check=True)
                for family in IpFamily:
                    _await_link(wire, family)
                yield wire
        finally:
            assert _libc().setns(home, CLONE_NEWNET) == 0
    finally:
        os.close(home)


@contextlib.contextmanager
def _wire() -> Iterator[int]:
    """A tun interface: what is sent to it can be read here, and the other way round."""
    try:
        wire = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    except OSError as problem:
        _leave_out(f"no tun interface: {problem}")
    try:
        fcntl.ioctl(wire, _TUNSETIFF, struct.pack("16sH22x", b"swallow", _TUN_WITHOUT_PREFIX))
        yield wire
    finally:
        os.close(wire)


def _await_link(wire: int, family: IpFamily) -> None:
    """A link that has just come up drops packets both ways; ping ourselves from the other end."""
    probe = _echo_from_outside(family)
    give_up = time.monotonic() + LONG_S
    while time.monotonic() < give_up:
        os.write(wire, probe)
        while select.select([wire], [], [], 0.02)[0]:
            if _is_echo_reply(os.read(wire, 2048), family):
                return
    pytest.fail(f"nothing goes through the wire over {family}")


def _echo_from_outside(family: IpFamily) -> bytes:
    message = bytes((8 if family is IpFamily.IPV4 else 128, 0)) + bytes(6)
    return _packet(family, SWALLOWED[family], OWN[family], message)


def _is_echo_reply(packet: bytes, family: IpFamily) -> bool:
    if family is IpFamily.IPV4:
        return packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_ICMP and packet[20] == 0
    return packet[0] >> 4 == 6 and packet[6] == socket.IPPROTO_ICMPV6 and packet[40] == 129


def _packet(family: IpFamily, source: str, destination: str, message: bytes) -> bytes:
    """An IP packet with an ICMP message whose checksum is still to be set."""
    ends = b"".join(socket.inet_pton(SOCKET_FAMILY[family], end) for end in (source, destination))
    if family is IpFamily.IPV4:
        message = _with_checksum(message, b"", at=2)
        fields = (0x45, 0, 20 + len(message), 0, 0, 64, socket.IPPROTO_ICMP, 0)
        return _with_checksum(struct.pack("!BBHHHBBH", *fields) + ends, b"", at=10) + message
    pseudo = ends + struct.pack("!II", len(message), socket.IPPROTO_ICMPV6)
    head = struct.pack("!IHBB", 6 << 28, len(message), socket.IPPROTO_ICMPV6, 64) + ends
    return head + _with_checksum(message, pseudo, at=2)


def _with_checksum(message: bytes, pseudo: bytes, *, at: int) -> bytes:
    checksum = internet_checksum(pseudo + message).to_bytes(2, "big")
    return message[:at] + checksum + message[at + 2 :]


def let_everybody_ping() -> None:
    """Open unprivileged ICMP sockets to all groups of the island."""
    Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 2147483647")


def need_pings(family: IpFamily = IpFamily.IPV4) -> None:
    """Skip where this host lets nobody ping; in CI that is a failure."""
    try:
        open_icmp_socket(family, tuple(IcmpPrivilege)).close()
    except PingerUnavailableError as problem:
        _leave_out(str(problem))


def _leave_out(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to run this: {reason}")
    pytest.skip(reason)


@contextlib.contextmanager
def complaining_router(
    wire: int, family: IpFamily, kind: int, code: int, *, quoted_bytes: int
) -> Iterator[None]:
    """Answers each echo request with an ICMP error that quotes so much of it."""
    loop = asyncio.get_running_loop()

    def complain() -> None:
        packet = os.read(wire, 2048)
        if _is_echo_request(packet, family):
            message = struct.pack("!BBHI", kind, code, 0, 0) + packet[:quoted_bytes]
            os.write(wire, _packet(family, ROUTER[family], OWN[family], message))

    loop.add_reader(wire, complain)
    try:
        yield
    finally:
        loop.remove_reader(wire)


def _is_echo_request(packet: bytes, family: IpFamily) -> bool:
    if family is IpFamily.IPV4:
        return packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_ICMP and packet[20] == 8
    return packet[0] >> 4 == 6 and packet[6] == socket.IPPROTO_ICMPV6 and packet[40] == 128
