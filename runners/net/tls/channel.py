"""TLS over a connected socket, and its facts."""

import asyncio
import socket
import ssl
from _ssl import ENCODING_DER  # public from Python 3.13 on only; see `_presented_chain`
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, TypeVar

from contract.evidence import TlsFacts
from contract.result import CheckFailed, FailureKind
from runners.net.sockets import map_connect_errors, render
from runners.net.tls import certificates
from runners.net.tls.words import certificate_fault, handshake_fault

READ_BYTES: Final = 65536

StepT = TypeVar("StepT")


class TlsContexts:
    """The process's TLS settings; reading the roots takes 10 ms and more, so it happens once."""

    def __init__(self, *, extra_ca_pem: str | None = None) -> None:
        self._extra_ca_pem = extra_ca_pem

    def context(self, *, verify: bool) -> ssl.SSLContext:
        """The context that requires a valid certificate, or the one that accepts any."""
        return self._verifying if verify else self._unverified

    @cached_property
    def _verifying(self) -> ssl.SSLContext:
        return self.create_verifying()

    def create_verifying(self) -> ssl.SSLContext:
        """Create a context for the caller alone that requires a valid certificate."""
        context = _require_tls_1_2(ssl.create_default_context())
        if self._extra_ca_pem is not None:
            context.load_verify_locations(cadata=self._extra_ca_pem)
        return context

    @cached_property
    def _unverified(self) -> ssl.SSLContext:
        context = _require_tls_1_2(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


def _require_tls_1_2(context: ssl.SSLContext) -> ssl.SSLContext:
    """Offer what libcurl offers, TLS 1.2 and newer: distributions build Python to offer more."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class TlsChannel:
    """A TLS client on a socket that the caller opened and closes.

    Not asyncio's transport: the chain can be read after a failed handshake here, and closing
    leaves no task behind.
    """

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        hostname: str,
        peer: tuple[str, int],
        ignored_error: str | None = None,
    ) -> None:
        """`ignored_error`: why a certificate was not valid that the check accepts all the same."""
        self._sock = sock
        self._peer = peer
        self._host = hostname
        self._verifies = context.verify_mode is ssl.CERT_REQUIRED
        self._verify_error = ignored_error
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname)
        self._is_established = False

    async def handshake(self) -> None:
        """Agree on keys and look at the certificate.

        Raises:
            CheckFailed: of kind TLS, with the reason in words.
        """
        try:
            await self._drive(self._tls.do_handshake)
        except ssl.SSLCertVerificationError as problem:
            raise self._certificate_failure(problem) from problem
        except (ssl.SSLError, CheckFailed) as problem:
            raise self._protocol_failure("did not agree on TLS", problem) from problem
        self._is_established = True

    async def send(self, payload: bytes) -> None:
        """Send all of it."""
        await self._drive(lambda: self._tls.write(payload))

    async def receive(self) -> bytes:
        """What came next; empty when the peer has closed."""
        try:
            return await self._drive(lambda: self._tls.read(READ_BYTES))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except ssl.SSLError as problem:
            raise self._protocol_failure("broke off TLS", problem) from problem

    @property
    def verify_error(self) -> str | None:
        """Why the certificate is not trusted, without a full stop. None: no reason is known."""
        return self._verify_error

    def _certificate_failure(self, problem: ssl.SSLCertVerificationError) -> CheckFailed:
        self._verify_error = certificate_fault(
            problem.verify_code,
            certificates.describe(self._presented_chain()),
            host=self._host,
            now=datetime.now(UTC),
            words=problem.verify_message.rstrip("."),
        )
        return CheckFailed(
            FailureKind.TLS,
            f"The certificate of {self._peer_name} cannot be trusted: {self._verify_error}.",
            self._detail("CERT_INVALID", verifyCode=problem.verify_code),
        )

    def _protocol_failure(self, what: str, problem: ssl.SSLError | CheckFailed) -> CheckFailed:
        if isinstance(problem, CheckFailed):
            phrase = problem.failure.message.removeprefix(render(*self._peer)).strip(" .")
            fault = f"it {phrase}"
        elif isinstance(problem, ssl.SSLEOFError):
            fault = "it closed the connection"
        else:
            fault = handshake_fault(problem.reason or str(problem))
        sentence = f"{self._peer_name} {what}: {fault}."
        return CheckFailed(FailureKind.TLS, sentence, self._detail("EPROTO"))

    def _detail(self, code: str, **more: int) -> dict[str, str | int]:
        address, port = self._peer
        return {"code": code, "hostname": self._host, "address": address, "port": port, **more}

    @property
    def _peer_name(self) -> str:
        """The peer as people name it: host and port, the address beside a name."""
        address, port = self._peer
        beside = "" if address == self._host else f" ({address})"
        return f"{render(self._host, port)}{beside}"

    def send_close(self) -> None:
        """Send close_notify, if the socket takes it at once."""
        with suppress(ssl.SSLError):  # it waits for the peer's close_notify, and we do not
            self._tls.unwrap()
        with suppress(OSError):  # the peer has closed the connection already
            self._sock.send(self._outgoing.read())

    async def _drive(self, step: Callable[[], StepT]) -> StepT:
        while True:
            try:
                answer = step()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except ssl.SSLError:
                await self._flush()  # the alert that tells the peer why
                raise
            else:
                await self._flush()
                return answer

    async def _flush(self) -> None:
        if self._outgoing.pending:
            with map_connect_errors(*self._peer, syscall="write"):
                await asyncio.get_running_loop().sock_sendall(self._sock, self._outgoing.read())

    async def _fill(self) -> None:
        with map_connect_errors(*self._peer, syscall="read"):
            piece = await asyncio.get_running_loop().sock_recv(self._sock, READ_BYTES)
        if piece:
            self._incoming.write(piece)
        else:
            self._incoming.write_eof()

    def facts(self) -> TlsFacts:
        """The facts of the session so far, even after a failed handshake."""
        cipher = self._tls.cipher()
        chain = certificates.describe(self._presented_chain())
        return TlsFacts(
            version=self._tls.version(),
            cipher=None if cipher is None else cipher[0],
            verified=self._verifies and self._is_established,
            verify_error=self._verify_error,
            days_to_expiry=certificates.days_to_expiry(chain, now=datetime.now(UTC)),
            chain=chain,
        )

    def _presented_chain(self) -> tuple[bytes, ...]:
        # Python 3.13 makes this public and returns bytes; before, only the inner object has it.
        if hasattr(self._tls, "get_unverified_chain"):
            return tuple(self._tls.get_unverified_chain())
        inner = self._tls._sslobj  # type: ignore[attr-defined]  # noqa: SLF001 - see above
        return tuple(one.public_bytes(ENCODING_DER) for one in inner.get_unverified_chain() or ())
