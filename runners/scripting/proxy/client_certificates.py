"""Shows client certificates for a run's browser and requests, which never get to see the keys.

To a host that a certificate is for, we speak TLS ourselves, and check its certificate as an API
check does; towards the run an authority of our own vouches for it.
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
from runners.scripting.proxy.egress_proxy import Streams, join, reason_of
from runners.scripting.proxy.egress_routes import Way, Wish

if TYPE_CHECKING:  # it costs 10 MB, and few runs have client certificates
    from runners.net.tls.local_authority import LocalAuthority

_TLS_BEGINS: Final = b"\x16"
"""A record of the handshake."""
_MOST_TROUBLES: Final = 100
_MOST_HOSTS: Final = 256
"""Remembered at once: a glob and a script can name as many as they like."""


class Presenting:
    """A way on which matching hosts are shown a certificate; all others are left alone."""

    def __init__(
        self, way: Way, route: Route, *, authority: "LocalAuthority", contexts: TlsContexts
    ) -> None:
        """`route`: the certificates of the run."""
        self._way = way
        self._route = route
        self._authority = authority
        self._contexts = contexts
        self._towards_targets: dict[ClientCertificate, ssl.SSLContext] = {}
        self._towards_run: dict[str, ssl.SSLContext] = {}
        self._talks: set[asyncio.Task[None]] = set()
        self._troubles: dict[str, None] = {}

    @property
    def troubles(self) -> tuple[str, ...]:
        """Why hosts were not content with a certificate; each sentence once."""
        return tuple(self._troubles)

    def listens_first(self, wish: Wish) -> bool:
        """With a host that a certificate is for: a tunnel may be for something else than TLS."""
        return wish.is_tunnel and self._certificate_for(wish) is not None

    async def judge(self, wish: Wish) -> None:
        """As the way behind does."""
        await self._way.judge(wish)

    def request(self, wish: Wish) -> bytes:
        """As the way behind says."""
        return self._way.request(wish)

    async def connect(self, wish: Wish) -> socket.socket:
        """As the way behind does; with a certificate, what comes out is our own end."""
        certificate = self._certificate_for(wish)
        if certificate is None or not wish.first.startswith(_TLS_BEGINS):
            return await self._way.connect(wish)
        try:
            towards_run = self._context_for(wish.host)
            context = await self._towards_target(certificate, wish)
            far = await _speak_tls(await self._way.connect(wish), context, wish)
        except CheckFailed as failure:
            if failure.failure.kind is FailureKind.TLS:
                self._note(str(failure))
            raise
        return self._begin_talk(far, towards_run, render(wish.host, wish.port))

    def _begin_talk(self, far: Streams, context: ssl.SSLContext, where: str) -> socket.socket:
        """The end of it that is the run's; whatever becomes of it, the far connection ends."""
        try:
            ours, theirs = socket.socketpair(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError:
            far[1].transport.abort()
            raise
        talk = asyncio.create_task(self._talk(ours, context, far, where), name="presenting")
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)
        talk.add_done_callback(lambda _: far[1].transport.abort())
        return theirs

    async def close(self) -> None:
        """Cut what is still open."""
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _certificate_for(self, wish: Wish) -> ClientCertificate | None:
        if wish.brings_own:
            return None
        return self._route.certificate_for(Origin("https", wish.host.lower(), wish.port))

    async def _towards_target(self, certificate: ClientCertificate, wish: Wish) -> ssl.SSLContext:
        known = self._towards_targets.get(certificate)
        if known is not None:
            return known
        context = await asyncio.to_thread(self._contexts.fresh)
        try:
            _show(certificate, context)
        except (ssl.SSLError, ValueError) as problem:
            message = (
                f"The client certificate for {wish.host} cannot be used: its certificate, key, "
                "passphrase or root cannot be read."
            )
            raise CheckFailed(FailureKind.TLS, message) from problem
        self._towards_targets[certificate] = context
        return context

    async def _talk(
        self, ours: socket.socket, context: ssl.SSLContext, far: Streams, where: str
    ) -> None:
        """Carry between the run's TLS and the target's, until either is through."""
        # Whoever does not like us, or has gone, ends its own talk alone.
        with suppress(OSError):
            near = await _answer_tls(ours, context)
            try:
                await self._pass_on(near, far, where)
            finally:
                near[1].close()

    async def _pass_on(self, near: Streams, far: Streams, where: str) -> None:
        try:
            why = "it said nothing" if await join(near, far) == 0 else None
        except OSError as problem:
            # With TLS 1.3 a server says after the handshake that it wants another certificate.
            why = handshake_fault(reason_of(problem))
        if why is not None:
            self._note(f"{where} was shown a certificate and ended the connection: {why}.")

    def _note(self, trouble: str) -> None:
        if len(self._troubles) < _MOST_TROUBLES:
            self._troubles[trouble] = None

    def _context_for(self, host: str) -> ssl.SSLContext:
        if host not in self._towards_run:
            if len(self._towards_run) >= _MOST_HOSTS:
                self._towards_run.clear()
            self._towards_run[host] = self._new_context(host)
        return self._towards_run[host]

    def _new_context(self, host: str) -> ssl.SSLContext:
        try:
            return self._authority.context_for(host)
        except ValueError as problem:
            message = f"{host} is no name that a certificate can be shown to: {problem}."
            raise CheckFailed(FailureKind.TLS, message) from problem


def _show(certificate: ClientCertificate, context: ssl.SSLContext) -> None:
    pem = f"{certificate.cert}\n{certificate.key}\n".encode()
    load_identity(context, pem, certificate.passphrase or "")
    if certificate.ca is not None:
        context.load_verify_locations(cadata=certificate.ca)
    context.set_alpn_protocols(["http/1.1"])


async def _speak_tls(sock: socket.socket, context: ssl.SSLContext, wish: Wish) -> Streams:
    where = render(wish.host, wish.port)
    try:
        return await asyncio.open_connection(sock=sock, ssl=context, server_hostname=wish.host)
    except ssl.SSLCertVerificationError as problem:
        words = problem.verify_message.rstrip(".")
        now = datetime.now(UTC)
        why = certificate_fault(problem.verify_code, (), host=wish.host, now=now, words=words)
        message = f"The certificate of {where} cannot be trusted: {why}."
        raise CheckFailed(FailureKind.TLS, message, {"code": "CERT_INVALID"}) from problem
    except (ssl.SSLError, ConnectionError) as problem:
        why = handshake_fault(reason_of(problem))
        message = f"{where} did not agree on TLS: {why}."
        raise CheckFailed(FailureKind.TLS, message, {"code": "EPROTO"}) from problem


async def _answer_tls(sock: socket.socket, context: ssl.SSLContext) -> Streams:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock, ssl=context)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
