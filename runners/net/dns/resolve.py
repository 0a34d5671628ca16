"""Names to addresses, for the runners that connect by themselves."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from contract.requests import IpFamily, RecordType
from contract.result import CheckFailed, FailureKind
from runners.net.dns.messages import TYPE_NUMBERS, ask_for
from runners.net.dns.name_servers import HostFiles
from runners.net.dns.query import DnsAnswer, ask
from runners.net.sockets import SOCKET_FAMILY, literal_family, without_brackets, wrong_family

SYSCALLS: Final = {IpFamily.IPV4: "queryA", IpFamily.IPV6: "queryAaaa"}
"""As the ecosystem names the two lookups in a failure's detail."""

RECORD_TYPES: Final = {IpFamily.IPV4: RecordType.A, IpFamily.IPV6: RecordType.AAAA}
LOOPBACK: Final = {IpFamily.IPV4: "127.0.0.1", IpFamily.IPV6: "::1"}
USABLE: Final = frozenset({"NOERROR", "NXDOMAIN"})
"""Response codes that say something of the name; the others speak of the server."""
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
    """Turns a host name into addresses of one family."""

    async def resolve(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """The addresses of the name, in the order to try; an address literal is its own answer.

        Raises:
            CheckFailed: of kind DNS, when the name has no address of this family.
        """


def lookup_failed(
    hostname: str, family: IpFamily, reason: str, *, code: str = "ENOTFOUND"
) -> CheckFailed:
    """The failure of a lookup, with the facts that the ecosystem expects in its detail."""
    return CheckFailed(
        FailureKind.DNS,
        f"{hostname} has no {family} address: {reason}.",
        {"code": code, "syscall": SYSCALLS[family], "hostname": hostname},
    )


def literal_answer(hostname: str, family: IpFamily) -> tuple[str, ...] | None:
    """The answer to an address literal, in brackets or not. None: it is a name.

    Raises:
        CheckFailed: CONNECT: it is a literal of the other family; DNS: its scope is no interface.
    """
    literal = without_brackets(hostname)
    found = literal_family(literal)
    if found is None:
        return None
    if (mismatch := wrong_family(literal, family)) is not None:
        detail = {"code": INVALID_ADDRESS, "hostname": literal}
        raise CheckFailed(FailureKind.CONNECT, mismatch, detail)
    _, _, scope = literal.partition("%")
    if scope and not scope.isdecimal() and scope not in _interfaces():
        raise lookup_failed(
            hostname, family, f"there is no interface {scope}", code=INVALID_ADDRESS
        )
    return (literal,)


def _interfaces() -> frozenset[str]:
    return frozenset(name for _, name in socket.if_nameindex())


class SystemResolver:
    """Asks the operating system (`USE_OS_DNS_RESOLVER=on`): its hosts file, its name service."""

    def __init__(self) -> None:
        # Own threads: the loop's shared pool has as few as four, and one dead server stops them.
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="resolve")

    async def resolve(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """The system's addresses of the name.

        Raises:
            CheckFailed: of kind DNS, when the name has no address of this family.
        """
        literal = literal_answer(hostname, family)
        return literal if literal is not None else await self._ask(hostname, family)

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
            raise lookup_failed(hostname, family, reason, code=code) from problem
        except UnicodeError as problem:
            raise lookup_failed(hostname, family, "it is no host name") from problem
        except TimeoutError as problem:
            if not limit.expired():
                raise
            reason = f"the system did not say within {LOOKUP_TIMEOUT_S:g} s"
            raise lookup_failed(hostname, family, reason, code="ETIMEOUT") from problem

    def close(self) -> None:
        """Let the threads go; lookups under way are not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _getaddrinfo(hostname: str, family: IpFamily) -> tuple[str, ...]:
    found = socket.getaddrinfo(hostname, None, SOCKET_FAMILY[family], socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class DnsServerResolver:
    """Asks the DNS servers of this host directly, after its hosts file."""

    def __init__(self, files: HostFiles | None = None) -> None:
        self._files = files or HostFiles()

    async def resolve(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """The addresses in `/etc/hosts`, else those that the servers know.

        Raises:
            CheckFailed: of kind DNS, when the name has no address of this family.
        """
        known = (
            literal_answer(hostname, family)
            or self._files.addresses(hostname, family)
            or _loopback(hostname, family)
        )
        return known or await self._ask(hostname, family)

    async def _ask(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        limit = asyncio.timeout(LOOKUP_TIMEOUT_S)
        try:
            async with limit:
                return await self._search(hostname, family)
        except TimeoutError as problem:
            if not limit.expired():
                raise
            reason = f"no DNS server answered within {LOOKUP_TIMEOUT_S:g} s"
            raise lookup_failed(hostname, family, reason, code="ETIMEOUT") from problem

    async def _search(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """Try the search domains and the name as it stands, whose failure speaks for all."""
        failures: dict[str, CheckFailed] = {}
        for candidate in self._files.resolv_conf().candidates(hostname):
            try:
                return await self._look_up(candidate, hostname, family)
            except CheckFailed as failed:
                failures[candidate] = failed
        raise failures[hostname]

    async def _look_up(self, candidate: str, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """The addresses of one full name; a server that fails is followed by the next."""
        question = ask_for(candidate, RECORD_TYPES[family])
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
        raise lookup_failed(hostname, family, reason, code=code)


def _loopback(hostname: str, family: IpFamily) -> tuple[str, ...]:
    """RFC 6761: localhost and what is below it never leaves the host."""
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
    raise lookup_failed(hostname, family, f"{missing}, says {answer.server}")
