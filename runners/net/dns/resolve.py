"""Resolves names to addresses, for runners that open their own sockets."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from contract.requests import IpFamily, RecordType
from contract.result import CheckFailed, FailureKind
from contract.targets import ascii_host
from runners.net.dns.messages import TYPE_NUMBERS, build_question
from runners.net.dns.name_servers import HostFiles
from runners.net.dns.query import DnsAnswer, ask
from runners.net.sockets import SOCKET_FAMILY, explain_wrong_family, literal_family, strip_brackets

_SYSCALLS: Final = {IpFamily.IPV4: "queryA", IpFamily.IPV6: "queryAaaa"}
"""The names of the two lookups in a failure's detail, which are those of Node's dns module."""

RECORD_TYPES: Final = {IpFamily.IPV4: RecordType.A, IpFamily.IPV6: RecordType.AAAA}
LOOPBACK: Final = {IpFamily.IPV4: "127.0.0.1", IpFamily.IPV6: "::1"}
USABLE: Final = frozenset({"NOERROR", "NXDOMAIN"})
"""Response codes that are about the name; the others are about the server."""
SERVER_TIMEOUT_S: Final = 2.0
LOOKUP_ROUNDS: Final = 2
"""How often each server is asked when none has a usable answer."""
LOOKUP_THREADS: Final = 64
LOOKUP_TIMEOUT_S: Final = 10.0
"""The longest that one lookup may take, over all servers and search domains."""

INVALID_ADDRESS: Final = "ERR_INVALID_IP_ADDRESS"

SYSTEM_REASONS: Final = {
    socket.EAI_NONAME: ("the name does not exist", "ENOTFOUND"),
    socket.EAI_NODATA: ("the name has no address of this kind", "ENOTFOUND"),
    socket.EAI_FAIL: ("the name service failed", "ESERVFAIL"),
    socket.EAI_AGAIN: ("the name service did not answer", "ETIMEOUT"),
}
"""Reason and code by error of getaddrinfo; any other error is ours."""


class Resolver(Protocol):
    """Resolves a host name to its addresses of one family; a setting chooses between two."""

    async def resolve(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """Resolve the name, to addresses in the order to try; an address literal is its own answer.

        Raises:
            CheckFailed: of kind DNS, when the name has no address of this family.
        """


def lookup_error(
    hostname: str, family: IpFamily, reason: str, *, code: str = "ENOTFOUND"
) -> CheckFailed:
    """Make the failure of a lookup, with the detail that Node's dns module gives."""
    return CheckFailed(
        FailureKind.DNS,
        f"{hostname} has no {family} address: {reason}.",
        {"code": code, "syscall": _SYSCALLS[family], "hostname": hostname},
    )


def _encode(hostname: str, family: IpFamily) -> str:
    try:
        return ascii_host(hostname)
    except UnicodeError as problem:
        raise lookup_error(hostname, family, "it is no host name") from problem


def resolve_literal(hostname: str, family: IpFamily) -> tuple[str, ...] | None:
    """Resolve an address literal, in brackets or not. None: it is a name.

    Raises:
        CheckFailed: CONNECT: it is a literal of the other family; DNS: its scope is no interface.
    """
    literal = strip_brackets(hostname)
    found = literal_family(literal)
    if found is None:
        return None
    if (mismatch := explain_wrong_family(literal, family)) is not None:
        detail = {"code": INVALID_ADDRESS, "hostname": literal}
        raise CheckFailed(FailureKind.CONNECT, mismatch, detail)
    _, _, scope = literal.partition("%")
    if scope and not scope.isdecimal() and scope not in _interfaces():
        raise lookup_error(hostname, family, f"there is no interface {scope}", code=INVALID_ADDRESS)
    return (literal,)


def _interfaces() -> frozenset[str]:
    return frozenset(name for _, name in socket.if_nameindex())


class SystemResolver:
    """Asks the operating system (`USE_OS_DNS_RESOLVER=on`): its hosts file, its name service."""

    def __init__(self) -> None:
        # Own threads: the loop's shared pool has as few as four, and one dead server stops them.
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="resolve")

    async def resolve(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """Ask the system for the addresses of the name.

        Raises:
            CheckFailed: of kind DNS, when the name has no address of this family.
        """
        name = _encode(hostname, family)
        literal = resolve_literal(name, family)
        return literal if literal is not None else await self._ask(name, family)

    async def _ask(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        limit = asyncio.timeout(LOOKUP_TIMEOUT_S)
        try:
            async with limit:
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads, _getaddrinfo, hostname, family
                )
        except socket.gaierror as problem:
            if problem.errno not in SYSTEM_REASONS:
                raise
            reason, code = SYSTEM_REASONS[problem.errno]
            raise lookup_error(hostname, family, reason, code=code) from problem
        except UnicodeError as problem:
            raise lookup_error(hostname, family, "it is no host name") from problem
        except TimeoutError as problem:
            if not limit.expired():
                raise
            reason = f"the system did not say within {LOOKUP_TIMEOUT_S:g} s"
            raise lookup_error(hostname, family, reason, code="ETIMEOUT") from problem

    def close(self) -> None:
        """Release the threads without waiting for lookups in progress."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _getaddrinfo(hostname: str, family: IpFamily) -> tuple[str, ...]:
    found = socket.getaddrinfo(hostname, None, SOCKET_FAMILY[family], socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class DnsServerResolver:
    """Asks the DNS servers of this host directly, after its hosts file."""

    def __init__(self, files: HostFiles | None = None) -> None:
        self._files = files or HostFiles()

    async def resolve(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """Look the name up in `/etc/hosts`, else ask the servers.

        Raises:
            CheckFailed: of kind DNS, when the name has no address of this family.
        """
        name = _encode(hostname, family)
        known = (
            resolve_literal(name, family)
            or self._files.addresses(name, family)
            or _resolve_localhost(name, family)
        )
        return known or await self._ask(name, family)

    async def _ask(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        limit = asyncio.timeout(LOOKUP_TIMEOUT_S)
        try:
            async with limit:
                return await self._search(hostname, family)
        except TimeoutError as problem:
            if not limit.expired():
                raise
            reason = f"no DNS server answered within {LOOKUP_TIMEOUT_S:g} s"
            raise lookup_error(hostname, family, reason, code="ETIMEOUT") from problem

    async def _search(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """Look up the name with and without search domains; the failure is that without."""
        failures: dict[str, CheckFailed] = {}
        for candidate in self._files.resolv_conf().candidates(hostname):
            try:
                return await self._look_up(candidate, hostname, family)
            except CheckFailed as failed:
                failures[candidate] = failed
        raise failures[hostname]

    async def _look_up(self, candidate: str, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """Look up one full name; when a server fails, the next one is asked."""
        question = build_question(candidate, RECORD_TYPES[family])
        reason, code = "", ""
        for server in self._files.resolv_conf().servers * LOOKUP_ROUNDS:
            try:
                answer = await ask(question, server, timeout_s=SERVER_TIMEOUT_S)
            except CheckFailed as failed:
                reason, code = failed.failure.message.rstrip("."), "ETIMEOUT"
                continue
            response_code = answer.message.response_code
            if response_code in USABLE:
                return _addresses(answer, hostname, family)
            reason, code = f"the name server {server} answered {response_code}", "ESERVFAIL"
        raise lookup_error(hostname, family, reason, code=code)


def _resolve_localhost(hostname: str, family: IpFamily) -> tuple[str, ...]:
    """Resolve localhost and names below it here, as RFC 6761 demands; empty for other names."""
    name = hostname.lower().rstrip(".")
    return (LOOPBACK[family],) if name == "localhost" or name.endswith(".localhost") else ()


def _addresses(answer: DnsAnswer, hostname: str, family: IpFamily) -> tuple[str, ...]:
    wanted = TYPE_NUMBERS[RECORD_TYPES[family]]
    found = tuple(record.value for record in answer.message.answer if record.kind == wanted)
    if found:
        return found
    missing = "the name does not exist"
    if answer.message.response_code != "NXDOMAIN":
        missing = "the name has no address of this family"
    raise lookup_error(hostname, family, f"{missing}, says {answer.server}")
