"""Presents client certificates for a run's browser and requests, which never see the keys.

For a host with a client certificate, the proxy speaks TLS itself and verifies the host as an API
check does; towards the run, a local authority signs a certificate for that host.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from contract.job import ClientCertificate
from contract.result import CheckFailed, FailureKind
from runners.net.http.exchange import Route
from runners.net.http.request import Origin
from runners.net.sockets import render
from runners.net.tls.certificates import load_identity
from runners.net.tls.channel import TlsContexts
from runners.net.tls.words import certificate_fault, handshake_fault
from runners.scripting.proxy.egress_proxy import Streams, read_tls_reason, relay
from runners.scripting.proxy.egress_routes import EgressRoute, ProxyRequest

if TYPE_CHECKING:  # it costs 10 MB, and few runs have client certificates
    from runners.net.tls.local_authority import LocalAuthority

_TLS_BEGINS: Final = b"\x16"
"""The first byte of a TLS handshake record."""
_MOST_TROUBLES: Final = 100
_MOST_HOSTS: Final = 256
"""The most hosts whose contexts are cached: a wildcard can match any number of them."""


class CertificateRoute:
    """A route that presents certificates to matching hosts, and tunnels to all others."""

    def __init__(
        self,
        next_route: EgressRoute,
        certificates: Route,
        *,
        authority: "LocalAuthority",
        contexts: TlsContexts,
    ) -> None:
        """`certificates`: the client certificates of the run."""
        self._next_route = next_route
        self._certificates = certificates
        self._authority = authority
        self._contexts = contexts
        self._target_contexts: dict[ClientCertificate, ssl.SSLContext] = {}
        self._run_contexts: dict[str, ssl.SSLContext] = {}
        self._relays: set[asyncio.Task[None]] = set()
        self._problems: dict[str, None] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """Why hosts did not accept a certificate; each sentence once."""
        return tuple(self._problems)

    def reads_first_bytes(self, request: ProxyRequest) -> bool:
        """Whether a certificate is for the host; a tunnel may carry something else than TLS."""
        return request.is_tunnel and self._find_certificate(request) is not None

    async def require_allowed(self, request: ProxyRequest) -> None:
        """Require that the next route allows the target."""
        await self._next_route.require_allowed(request)

    def build_request_head(self, request: ProxyRequest) -> bytes:
        """Build the request's head as the next route does."""
        return self._next_route.build_request_head(request)

    async def connect(self, request: ProxyRequest) -> socket.socket:
        """Connect by the next route; with a certificate, the socket leads to the proxy itself."""
        certificate = self._find_certificate(request)
        if certificate is None or not request.first_bytes.startswith(_TLS_BEGINS):
            return await self._next_route.connect(request)
        try:
            run_context = self._get_run_context(request.host)
            context = await self._get_target_context(certificate, request)
            far = await _connect_tls(await self._next_route.connect(request), context, request)
        except CheckFailed as failure:
            if failure.failure.kind is FailureKind.TLS:
                self._note(str(failure))
            raise
        return self._begin_relay(far, run_context, render(request.host, request.port))

    def _begin_relay(self, far: Streams, context: ssl.SSLContext, where: str) -> socket.socket:
        """Start to relay, and return the run's end; the far connection ends with the relay."""
        try:
            ours, theirs = socket.socketpair(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError:
            far[1].transport.abort()
            raise
        relaying = asyncio.create_task(
            self._relay_tls(ours, context, far, where), name="presenting"
        )
        self._relays.add(relaying)
        relaying.add_done_callback(self._relays.discard)
        relaying.add_done_callback(lambda _: far[1].transport.abort())
        return theirs

    async def close(self) -> None:
        """Close all relays."""
        for relaying in self._relays:
            relaying.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    def _find_certificate(self, request: ProxyRequest) -> ClientCertificate | None:
        if request.brings_own:
            return None
        return self._certificates.certificate_for(
            Origin("https", request.host.lower(), request.port)
        )

    async def _get_target_context(
        self, certificate: ClientCertificate, request: ProxyRequest
    ) -> ssl.SSLContext:
        known = self._target_contexts.get(certificate)
        if known is not None:
            return known
        context = await asyncio.to_thread(self._contexts.create_verifying)
        try:
            _load_certificate(certificate, context)
        except (ssl.SSLError, ValueError) as problem:
            message = (
                f"The client certificate for {request.host} cannot be used: its certificate, key, "
                "passphrase or root cannot be read."
            )
            raise CheckFailed(FailureKind.TLS, message) from problem
        self._target_contexts[certificate] = context
        return context

    async def _relay_tls(
        self, ours: socket.socket, context: ssl.SSLContext, far: Streams, where: str
    ) -> None:
        """Relay between the run's TLS connection and the target's until either ends."""
        # A side that refuses us, or has gone, ends only its own relay.
        with suppress(OSError):
            near = await _accept_tls(ours, context)
            try:
                await self._relay_until_end(near, far, where)
            finally:
                near[1].close()

    async def _relay_until_end(self, near: Streams, far: Streams, where: str) -> None:
        try:
            why = "it said nothing" if await relay(near, far) == 0 else None
        except OSError as problem:
            # With TLS 1.3 a server refuses a client certificate after the handshake.
            why = handshake_fault(read_tls_reason(problem))
        if why is not None:
            self._note(f"{where} was shown a certificate and ended the connection: {why}.")

    def _note(self, problem_text: str) -> None:
        if len(self._problems) < _MOST_TROUBLES:
            self._problems[problem_text] = None

    def _get_run_context(self, host: str) -> ssl.SSLContext:
        if host not in self._run_contexts:
            if len(self._run_contexts) >= _MOST_HOSTS:
                self._run_contexts.clear()
            self._run_contexts[host] = self._make_run_context(host)
        return self._run_contexts[host]

    def _make_run_context(self, host: str) -> ssl.SSLContext:
        try:
            return self._authority.create_context(host)
        except ValueError as problem:
            message = f"{host} is no name that a certificate can be shown to: {problem}."
            raise CheckFailed(FailureKind.TLS, message) from problem


def _load_certificate(certificate: ClientCertificate, context: ssl.SSLContext) -> None:
    pem = f"{certificate.cert}\n{certificate.key}\n".encode()
    load_identity(context, pem, certificate.passphrase or "")
    if certificate.ca is not None:
        context.load_verify_locations(cadata=certificate.ca)
    context.set_alpn_protocols(["http/1.1"])


async def _connect_tls(
    sock: socket.socket, context: ssl.SSLContext, request: ProxyRequest
) -> Streams:
    where = render(request.host, request.port)
    try:
        return await asyncio.open_connection(sock=sock, ssl=context, server_hostname=request.host)
    except ssl.SSLCertVerificationError as problem:
        words = problem.verify_message.rstrip(".")
        now = datetime.now(UTC)
        why = certificate_fault(problem.verify_code, (), host=request.host, now=now, words=words)
        message = f"The certificate of {where} cannot be trusted: {why}."
        raise CheckFailed(FailureKind.TLS, message, {"code": "CERT_INVALID"}) from problem
    except (ssl.SSLError, ConnectionError) as problem:
        why = handshake_fault(read_tls_reason(problem))
        message = f"{where} did not agree on TLS: {why}."
        raise CheckFailed(FailureKind.TLS, message, {"code": "EPROTO"}) from problem


async def _accept_tls(sock: socket.socket, context: ssl.SSLContext) -> Streams:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock, ssl=context)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
