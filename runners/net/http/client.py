"""The HTTP client: exchanges share connections, limits and roots."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType
from typing import Final, Self
from zlib import crc32

import msgspec
import pycurl

from contract.job import ClientCertificate
from contract.requests import HttpRequest, HttpVersion
from contract.result import CheckFailed, FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.body_memory import BodyLease, BodyMemoryError
from runners.net.http.curl_multi import CurlMulti, CurlResult
from runners.net.http.exchange import (
    REDIRECTS,
    HttpExchange,
    RedirectChain,
    Route,
)
from runners.net.http.request import HopRequest, Origin, build_first_hop
from runners.net.http.tls import (
    VERIFICATION_FAILED,
    needs_more_groups,
    read_roots,
    verify_error,
)
from runners.net.http.transfer import (
    READ_LIMIT_BYTES,
    HandleConfig,
    Transfer,
    TransferResult,
)
from runners.net.sockets import explain_wrong_family
from runners.net.tls.ca_roots import CaRoots

IDLE_HANDLES: Final = 256
"""How many idle handles are kept per configuration; each holds some 30 kB."""
NAME_SHARDS: Final = 4
"""How many multi handles share the lookups of names; each costs up to 2 MB, for cached roots."""
_CACHED_HOSTS: Final = 4096


class HttpEngine:
    """The process's HTTP client for checks; make one, start it, share it."""

    def __init__(self, egress: EgressRules, *, extra_ca_pem: bytes | None = None) -> None:
        self._egress = egress
        self._extra_ca_pem = extra_ca_pem
        self._roots: CaRoots | None = None
        self._multis: tuple[CurlMulti, ...] = ()
        """The first is for addresses, the others for names; empty: not started, or closed."""
        self._tls_ready: set[CurlMulti] = set()
        """Those that have read the roots."""
        self._preparing_tls = asyncio.Lock()
        self._idle: dict[HandleConfig, list[Transfer]] = {}
        self._refuses_name = lru_cache(maxsize=_CACHED_HOSTS)(egress.refuses_name)

    def __repr__(self) -> str:
        return f"HttpEngine(running={self.running})"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Open the handles on the running event loop.

        Raises:
            NoRootsError: the machine has no certificate authorities.
        """
        self._roots = CaRoots(extra_ca_pem=self._extra_ca_pem)
        self._multis = tuple(CurlMulti() for _ in range(1 + NAME_SHARDS))

    async def close(self) -> None:
        """Drop every connection and handle; exchanges under way are cancelled."""
        multis, self._multis = self._multis, ()
        self._tls_ready.clear()
        await asyncio.gather(*[multi.close() for multi in multis])
        for idle in self._idle.values():
            for transfer in idle:
                transfer.curl.close()
        self._idle.clear()
        if self._roots is not None:
            self._roots.close()
            self._roots = None

    @property
    def running(self) -> int:
        """How many requests are under way."""
        return sum(multi.running for multi in self._multis)

    async def exchange(  # noqa: PLR0913 - of one exchange
        self,
        request: HttpRequest,
        *,
        timeout_s: float,
        client_certificates: Sequence[ClientCertificate] = (),
        proxy_url: str | None = None,
        keep_bytes: int = READ_LIMIT_BYTES,
        lease: BodyLease | None = None,
    ) -> HttpExchange:
        """Send the request, follow redirects if it says so, and return the whole exchange.

        Every hop opens a connection of its own and does a full TLS handshake. `timeout_s` is for
        the whole chain. Each body is read whole, and its first `keep_bytes` or a few more are kept;
        with a `lease` a long one waits until there is memory for it.

        Raises:
            CheckFailed: the request cannot be sent at all (PROTOCOL: a broken URL or header).
            OSError, EngineError, BodyMemoryError: our fault, never the target's.
        """
        route = Route.choose(proxy_url, client_certificates)
        first = build_first_hop(request)
        chain = RedirectChain(
            first,
            timeout_s=timeout_s,
            route=route,
            keep_bytes=keep_bytes,
            roots=self._open_roots(),
            lease=lease,
        )
        try:
            await self._send_hops(chain, follow_redirects=request.follow_redirects)
        except CheckFailed as failed:
            chain.failure = failed.failure
        return chain.to_exchange()

    def _open_roots(self) -> CaRoots:
        if self._roots is None:
            raise RuntimeError("The engine is not started.")
        return self._roots

    async def _send_hops(self, chain: RedirectChain, *, follow_redirects: bool) -> None:
        while True:
            await self._send_hop(chain)
            head = chain.head
            location = None if head is None else head.headers.get("location")
            if chain.failure is not None or head is None or location is None:
                return
            if not follow_redirects or head.status_code not in REDIRECTS:
                return
            chain.follow(head, location)

    async def _send_hop(self, chain: RedirectChain) -> None:
        hop = chain.hop
        self._require_allowed(hop)
        config = self._config_for(hop, chain.route)
        change = msgspec.structs.replace
        seen = await self._transfer(chain, config)
        if needs_more_groups(seen):
            config = change(config, every_group=True)
            seen = await self._repeat(chain, config, seen)
        ignored_error: str | None = None
        if hop.skip_ssl and seen.ended.code == VERIFICATION_FAILED:
            # Verified first all the same, so that the evidence shows what is wrong.
            ignored_error = verify_error(seen, host=hop.origin.host, now=datetime.now(UTC))
            config = change(config, verify=False)
            seen = await self._repeat(chain, config, seen)
        if hop.http_version is HttpVersion.AUTO and seen.requires_http_1:
            config = change(config, http_version=HttpVersion.HTTP_1_1)
            seen = await self._repeat(chain, config, seen)
        chain.record(seen, ignored_error=ignored_error)

    def _require_allowed(self, hop: HopRequest) -> None:
        """Refuse hosts that the egress rules or the address family rule out before any lookup.

        Raises:
            CheckFailed: of kind EGRESS or CONNECT.
        """
        host = hop.origin.host
        if (refusal := self._refuses_name(host)) is not None:
            raise _refused(FailureKind.EGRESS, refusal, "EGRESS_REFUSED", hop)
        if hop.address is not None and (refusal := self._egress.refuses(host, hop.address)):
            raise _refused(FailureKind.EGRESS, refusal, "EGRESS_REFUSED", hop)
        if (mismatch := explain_wrong_family(hop.address or host, hop.family)) is not None:
            raise _refused(FailureKind.CONNECT, mismatch, "ERR_INVALID_IP_ADDRESS", hop)

    async def _repeat(
        self, chain: RedirectChain, config: HandleConfig, before: TransferResult
    ) -> TransferResult:
        """Send the hop's request again, in another way than before."""
        chain.record_repeated(before)
        return await self._transfer(chain, config)

    async def _transfer(self, chain: RedirectChain, config: HandleConfig) -> TransferResult:
        hop, route = chain.hop, chain.route
        multi = self._multi_for(hop.origin)
        if config.tls and multi not in self._tls_ready:
            await self._prepare_tls(multi)
        plain = route.is_plain and hop.is_plain
        transfer = self._take_handle(config, reuse=plain)
        try:
            transfer.prepare(hop, timeout_ms=chain.left_ms(), keep_bytes=chain.keep_bytes)
            if not plain:
                transfer.prepare_method(hop)
                self._prepare_route(transfer, hop, route)
            if chain.lease is None:
                ended = await multi.perform(transfer.curl)
            else:
                ended = await _perform_within_memory(multi, transfer, chain, chain.lease)
        except BaseException:
            transfer.curl.close()
            raise
        seen = transfer.collect(ended)
        self._return_handle(transfer, reuse=plain)
        return seen

    async def _prepare_tls(self, multi: CurlMulti) -> None:
        """Load what the first handshake needs, which takes up to a second on a busy machine.

        The time would count as the target's, and as that of every other run that waits meanwhile.
        Not at the start: it takes 15 MB, and an agent may never see a certificate.
        """
        async with self._preparing_tls:
            if multi in self._tls_ready:
                return
            roots = self._open_roots()
            await asyncio.to_thread(roots.load)
            await read_roots(multi, roots.path)
            self._tls_ready.add(multi)

    def _multi_for(self, origin: Origin) -> CurlMulti:
        """The multi handle that runs the transfers to this origin.

        libcurl looks names up in 20 threads per multi handle. Zones share those threads in
        groups only, so that one whose name servers hang cannot keep every other name waiting.
        """
        if not self._multis:
            raise RuntimeError("The engine is not started.")
        if origin.is_literal:
            return self._multis[0]
        zone = ".".join(origin.host.split(".")[-2:])
        return self._multis[1 + crc32(zone.encode()) % NAME_SHARDS]

    def _config_for(self, hop: HopRequest, route: Route) -> HandleConfig:
        return HandleConfig(
            tls=hop.origin.scheme == "https",
            # A literal address was judged with the URL. A proxy resolves names by itself, and
            # its own address is the operator's business.
            guarded=route.proxy_url is None and not hop.origin.is_literal,
            family=hop.family,
            http_version=hop.http_version,
            verify=True,
        )

    def _take_handle(self, config: HandleConfig, *, reuse: bool) -> Transfer:
        idle = self._idle.get(config)
        if reuse and idle:
            return idle.pop()
        return Transfer(config, self._open_roots().path, self._egress.refuses)

    def _return_handle(self, transfer: Transfer, *, reuse: bool) -> None:
        idle = self._idle.setdefault(transfer.config, [])
        if reuse and len(idle) < IDLE_HANDLES:
            idle.append(transfer)
        else:
            transfer.curl.close()

    def _prepare_route(self, transfer: Transfer, hop: HopRequest, route: Route) -> None:
        certificate = route.certificate_for(hop.origin)
        try:
            for option, value in route.settings(hop):
                transfer.curl.setopt(option, value)
            if certificate is not None and certificate.ca is not None:
                roots = self._open_roots().combine_with(certificate.ca)
                transfer.curl.setopt(pycurl.CAINFO_BLOB, roots)
        except (pycurl.error, ValueError) as problem:
            if certificate is None:
                raise
            message = (
                f"The client certificate for {hop.origin.host} cannot be used: its certificate, "
                "key, passphrase or root cannot be read."
            )
            raise _refused(FailureKind.TLS, message, "ERR_CLIENT_CERTIFICATE", hop) from problem


async def _perform_within_memory(
    multi: CurlMulti, transfer: Transfer, chain: RedirectChain, lease: BodyLease
) -> CurlResult:
    """Run the transfer, which pauses until there is memory for a long body.

    Raises:
        BodyMemoryError: there was none in time, or too late for the rest of the body.
    """

    def ask(size_bytes: int) -> bool:
        has_memory = lease.held_bytes > 0 or lease.take(size_bytes)
        if not has_memory:
            multi.pause(transfer.curl)
        return has_memory

    async def wait() -> float:
        transfer.curl.setopt(pycurl.TIMEOUT_MS, 0)  # it would count the wait
        before_s = lease.waited_s
        await lease.wait()
        transfer.waited_s = lease.waited_s - before_s
        return chain.left_ms() / 1000

    lease.release()  # what an earlier hop has held
    transfer.limit_memory(ask)
    try:
        return await multi.perform(transfer.curl, while_paused=wait)
    except TimeoutError:
        why = f"A body that waited {lease.waited_s:.1f} s for memory did not come in time after it."
        raise BodyMemoryError(why) from None
    finally:
        transfer.ask_for_memory = None


def _refused(kind: FailureKind, message: str, code: str, hop: HopRequest) -> CheckFailed:
    origin = hop.origin
    return CheckFailed(kind, message, {"code": code, "hostname": origin.host, "port": origin.port})
