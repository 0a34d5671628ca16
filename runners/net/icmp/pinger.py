"""Pings of many targets at once over one shared socket per address family.

Each raw ICMP socket receives every ICMP packet of the host, so a socket per ping drowns: replies
are lost and outages invented.
"""

import asyncio
import errno
import math
import secrets
import time
from collections.abc import Sequence
from typing import Final

from contract.requests import IpFamily
from contract.result import Echo
from runners.net.deadlines import Deadlines
from runners.net.icmp.messages import EchoResponse
from runners.net.icmp.socket import (
    Arrival,
    IcmpPrivilege,
    IcmpSocket,
    PingerUnavailableError,
    open_icmp_socket,
)
from runners.net.sockets import SocketAddress, pack_address, socket_address

ECHO_INTERVAL_S: Final = 0.5
MAX_IN_FLIGHT: Final = 60_000
"""The most requests in flight per family; keys of unprivileged sockets have 16 bits."""
MAX_READS: Final = 256
"""How many packets are read before other work of the loop gets its turn."""
SENDS_BETWEEN_READS: Final = 64
"""How many sends may pass before replies are read: the receive buffer must not overflow."""
SEND_PAUSES_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""How long to wait, try after try, while the system's send queue is full."""
STALE_ERRORS: Final = 3
"""How many errors of earlier requests an unprivileged socket may report when it sends the next."""
CLOCK_SLACK_NS: Final = 1_000_000

_BUSY: Final = frozenset({errno.EAGAIN, errno.ENOBUFS})
_LOCAL_ERRORS: Final = {
    errno.ENETUNREACH: "network-unreachable",
    errno.EHOSTUNREACH: "host-unreachable",
    errno.EHOSTDOWN: "host-unreachable",
    errno.EACCES: "communication-prohibited",
    errno.EPERM: "communication-prohibited",
    errno.EINVAL: "network-unreachable",
}
"""ICMP errors that this host itself reports of a target, by errno. Any other error is ours."""


class Pinger:
    """Sends echo requests; made once per process, used by all runs."""

    def __init__(self, *, privileges: Sequence[IcmpPrivilege] = tuple(IcmpPrivilege)) -> None:
        self._privileges = tuple(privileges)
        self._exchanges: dict[IpFamily, _Exchange] = {}

    def privilege(self, family: IpFamily) -> IcmpPrivilege:
        """Return how this host lets us ping; opens the family's socket within a running loop.

        Raises:
            PingerUnavailableError: this host does not let us.
        """
        return self._exchange(family).privilege

    async def ping(
        self,
        address: str,
        family: IpFamily,
        *,
        count: int,
        interval_s: float = ECHO_INTERVAL_S,
        wait_s: float,
    ) -> tuple[Echo, ...]:
        """Send `count` requests and wait for replies, at most `wait_s` after the last one.

        Raises:
            PingerUnavailableError: this host does not let us send pings.
        """
        exchange = self._exchange(family)
        loop = exchange.loop
        run = _PingRun(count, loop.create_future())
        target = socket_address(address, 0)
        began_s = loop.time()
        try:
            for position in range(count):
                if position:
                    await asyncio.sleep(began_s + position * interval_s - loop.time())
                await exchange.send(run, position, target)
            await run.wait(loop.time() + wait_s, exchange.deadlines)
        finally:
            exchange.forget(run)
        return run.echoes()

    @property
    def in_flight(self) -> int:
        """How many requests wait for a response."""
        return sum(exchange.in_flight for exchange in self._exchanges.values())

    def close(self) -> None:
        """Close the sockets; the pinger can be used again."""
        while self._exchanges:
            _, exchange = self._exchanges.popitem()
            exchange.close()

    def _exchange(self, family: IpFamily) -> "_Exchange":
        found = self._exchanges.get(family)
        if found is None:
            found = _Exchange(open_icmp_socket(family, self._privileges), family)
            self._exchanges[family] = found
        return found


class _PingRun:
    """The echoes of one call of `ping`."""

    __slots__ = ("_completed", "_echoes", "_open", "ends_at", "keys")

    def __init__(self, count: int, answered: asyncio.Future[None]) -> None:
        self._echoes: list[Echo | None] = [None] * count
        self._open = count
        self._completed = answered
        self.ends_at = math.inf
        self.keys: list[int] = []

    def settle(self, position: int, echo: Echo) -> None:
        self._echoes[position] = echo
        self._open -= 1
        if self._open == 0:
            self.expire()

    async def wait(self, ends_at: float, deadlines: Deadlines) -> None:
        # Not a time limit: running out of time is the ordinary end of a ping with loss.
        self.ends_at = ends_at
        deadlines.watch(self)
        try:
            await self._completed
        finally:
            deadlines.forget(self)

    def expire(self) -> None:
        if not self._completed.done():
            self._completed.set_result(None)

    def echoes(self) -> tuple[Echo, ...]:
        return tuple(
            echo or Echo(sequence=position, success=False)
            for position, echo in enumerate(self._echoes, start=1)
        )


class _PendingEcho:
    """A request that waits for its response."""

    __slots__ = ("_monotonic_ns", "_wall_ns", "destination", "position", "run")

    def __init__(self, run: _PingRun, position: int, destination: bytes) -> None:
        self.run = run
        self.position = position
        self.destination = destination

    def mark_sent(self) -> None:
        """Record the time; called before every try to send it."""
        self._monotonic_ns = time.monotonic_ns()
        self._wall_ns = time.time_ns()

    def complete(self, arrival: Arrival) -> None:
        """Settle it with its response."""
        error = arrival.response.error
        self.run.settle(
            self.position,
            Echo(
                sequence=self.position + 1,
                success=error is None,
                rtt_ms=self._rtt_ms(arrival.at_ns) if error is None else None,
                ttl=arrival.ttl if error is None else None,
                error=error,
            ),
        )

    def _rtt_ms(self, at_ns: int | None) -> float:
        # The kernel's time of arrival leaves out how long the reply waited for a busy loop. It is
        # of the wall clock, which may have been set meanwhile: then the monotonic clock decides.
        elapsed_ns = time.monotonic_ns() - self._monotonic_ns
        if at_ns is not None and 0 <= at_ns - self._wall_ns <= elapsed_ns + CLOCK_SLACK_NS:
            elapsed_ns = at_ns - self._wall_ns
        return round(elapsed_ns / 1_000_000, 3)


class _Exchange:
    """The traffic of one address family: sends requests, and gives responses to their runs."""

    def __init__(self, sock: IcmpSocket, family: IpFamily) -> None:
        self.privilege = sock.privilege
        self._socket = sock
        self._family = family
        self._pending: dict[int, _PendingEcho] = {}
        self._next_key = secrets.randbelow(sock.keys)
        self._unread_sends = 0
        self.deadlines = Deadlines()
        self.loop = asyncio.get_running_loop()
        """The running loop, cached: CPython 3.11 asks for our process id at each look-up."""
        self.loop.add_reader(sock.fileno(), self._read)

    @property
    def in_flight(self) -> int:
        return len(self._pending)

    async def send(self, run: _PingRun, position: int, target: SocketAddress) -> None:
        """Send one request, waiting while the system's queue is full."""
        key = self._free_key()
        pending = _PendingEcho(run, position, pack_address(target[0], self._family))
        self._pending[key] = pending
        run.keys.append(key)
        packet = self._socket.request(key)
        for pause_s in SEND_PAUSES_S:
            problem = self._try(pending, packet, target)
            if problem is None:
                return
            if problem.errno in _LOCAL_ERRORS:
                self._refuse(key, _LOCAL_ERRORS[problem.errno])
                return
            if problem.errno not in _BUSY:
                raise problem
            await asyncio.sleep(pause_s)
        raise PingerUnavailableError("The system's send queue for pings stays full.")

    def _try(self, pending: _PendingEcho, packet: bytes, target: SocketAddress) -> OSError | None:
        """Send it now, and return the system's error. None: it was sent."""
        self._unread_sends += 1
        if self._unread_sends >= SENDS_BETWEEN_READS:
            self._read()
        failed: OSError | None = None
        for _ in range(1 if self.privilege is IcmpPrivilege.RAW else STALE_ERRORS):
            try:
                pending.mark_sent()
                self._socket.send(packet, target)
            except OSError as problem:
                failed = problem
                self._read_errors()
            else:
                return None
        return failed

    def _refuse(self, key: int, error: str) -> None:
        self._settle(Arrival(EchoResponse(key, error), ttl=None, at_ns=None))

    def forget(self, run: _PingRun) -> None:
        """Stop waiting for the run's responses."""
        for key in run.keys:
            self._pending.pop(key, None)

    def close(self) -> None:
        """Close the socket; runs in progress get no more responses."""
        if not self.loop.is_closed():
            self.loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _free_key(self) -> int:
        if len(self._pending) >= MAX_IN_FLIGHT:
            raise PingerUnavailableError(f"{MAX_IN_FLIGHT} pings are under way already.")
        while self._next_key in self._pending:
            self._next_key = (self._next_key + 1) % self._socket.keys
        key = self._next_key
        self._next_key = (key + 1) % self._socket.keys
        return key

    def _read(self) -> None:
        self._unread_sends = 0
        for _ in range(MAX_READS):
            arrival = self._socket.receive()
            if arrival is None:
                break
            self._settle(arrival)
        if self._read_errors():
            self.loop.call_soon(self._watch_again)

    def _read_errors(self) -> int:
        for count in range(MAX_READS):
            arrival = self._socket.receive_error()
            if arrival is None:
                return count
            self._settle(arrival)
        return MAX_READS

    def _watch_again(self) -> None:
        # libuv stops watching a descriptor that has reported an error.
        if self._socket.fileno() >= 0:
            self.loop.remove_reader(self._socket.fileno())
            self.loop.add_reader(self._socket.fileno(), self._read)

    def _settle(self, arrival: Arrival) -> None:
        response = arrival.response
        pending = self._pending.get(response.key)
        if pending is None or response.destination not in (None, pending.destination):
            return
        del self._pending[response.key]
        pending.complete(arrival)
