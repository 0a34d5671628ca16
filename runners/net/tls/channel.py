"""TLS over a connected socket, and its facts."""

import asyncio
import socket
import ssl
from _ssl import ENCODING_DER  # public from Python 3.13 on only; see `_presented_chain`
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, TypeVar, cast

from contract.evidence import TlsFacts
from contract.result import CheckFailed, FailureKind
from runners.net.sockets import map_connect_errors, render
from runners.net.tls.ca_roots import read_subjects, system_bundle
from runners.net.tls.certificates import (
    answers_certificate_request,
    days_to_expiry,
    describe,
    find_first_to_expire,
    names_host,
)
from runners.net.tls.words import (
    CLOSED_FOR_CERTIFICATE,
    WANTS_CERTIFICATE,
    WRONG_HOST,
    certificate_fault,
    handshake_fault,
)

READ_BYTES: Final = 65536

StepT = TypeVar("StepT")


class TlsContexts:
    """The process's TLS settings; reading the roots takes 10 ms and more, so it happens once."""

    def __init__(self, *, extra_ca_pem: str | None = None) -> None:
        self._extra_ca_pem = extra_ca_pem

    def context(self, *, verify: bool) -> ssl.SSLContext:
        """The context that requires a valid certificate, or the one that accepts any."""
        return self._verifying if verify else self._unverified

    async def load(self) -> None:
        """Read the roots, if that was not done yet: no target's time may count it."""
        if "root_subjects" not in self.__dict__:
            await asyncio.to_thread(lambda: (self._verifying, self.root_subjects))

    @cached_property
    def _verifying(self) -> ssl.SSLContext:
        context = self.create_verifying()
        context.check_hostname = False  # `names_host` decides, as it does for libcurl
        return context

    def create_verifying(self) -> ssl.SSLContext:
        """Create a context for the caller alone that requires a valid certificate."""
        context = _offer_as_libcurl(ssl.create_default_context(cafile=str(system_bundle())))
        # As libcurl: a root may be an intermediate, and RFC 5280's rules that Python adds from 3.13
        # on (VERIFY_X509_STRICT) do not apply.
        context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
        context.hostname_checks_common_name = False
        if self._extra_ca_pem is not None:
            context.load_verify_locations(cadata=self._extra_ca_pem)
        return context

    @cached_property
    def root_subjects(self) -> frozenset[str]:
        """The names of the roots, as they stand in certificates that they issued."""
        own = b"" if self._extra_ca_pem is None else self._extra_ca_pem.encode()
        return read_subjects(system_bundle().read_bytes() + own)

    @cached_property
    def _unverified(self) -> ssl.SSLContext:
        context = _offer_as_libcurl(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


def _offer_as_libcurl(context: ssl.SSLContext) -> ssl.SSLContext:
    """Offer what libcurl offers: distributions build Python to offer older or fewer ways."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("DEFAULT:@SECLEVEL=2")
    return context


class TlsChannel:
    """A TLS client on a socket that the caller opened and closes.

    Not asyncio's transport: the chain can be read after a failed handshake here, and closing
    leaves no task behind.
    """

    def __init__(
        self,
        sock: socket.socket,
        contexts: TlsContexts,
        *,
        hostname: str,
        peer: tuple[str, int],
        ignored_error: str | None = None,
    ) -> None:
        """`ignored_error`: why a certificate was not valid that the check accepts all the same.

        Without one the certificate is verified.
        """
        self._sock = sock
        self._peer = peer
        self._host = hostname
        self._contexts = contexts
        self._verifies = ignored_error is None
        self._verify_error = ignored_error
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = contexts.context(verify=self._verifies)
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname)
        self._is_established = False
        self._sent = b""
        """What was sent during the handshake."""
        self._awaits_acceptance = False
        """Whether a client certificate was requested, and no data has come since."""

    async def handshake(self) -> None:
        """Agree on keys and look at the certificate.

        Raises:
            CheckFailed: of kind TLS, with the reason in words.
        """
        try:
            await self._drive(self._tls.do_handshake)
        except ssl.SSLCertVerificationError as problem:
            words = problem.verify_message.rstrip(".")
            raise self._certificate_failure(problem.verify_code, words) from problem
        except (ssl.SSLError, CheckFailed) as problem:
            raise self._protocol_failure("did not agree on TLS", problem) from problem
        if self._verifies and not names_host(self._alternative_names(), self._host):
            raise self._certificate_failure(WRONG_HOST, "")
        self._is_established = True
        cipher = self._tls.cipher()
        if self._tls.version() == "TLSv1.3" and cipher is not None:
            self._awaits_acceptance = answers_certificate_request(self._sent, cipher=cipher[0])

    @property
    def may_be_refused(self) -> bool:
        """Whether the server requested a client certificate and has not gone on without one yet.

        With TLS 1.3 its refusal comes after the handshake; data or a session ticket shows that
        there is none.
        """
        session = self._tls.session
        return self._awaits_acceptance and (session is None or not session.has_ticket)

    async def send(self, payload: bytes) -> None:
        """Send all of it.

        Raises:
            CheckFailed: of kind TLS or CONNECT.
        """
        with self._map_errors():
            await self._drive(lambda: self._tls.write(payload))

    async def receive(self) -> bytes:
        """What came next; empty when the peer has closed.

        Raises:
            CheckFailed: of kind TLS or CONNECT.
        """
        with self._map_errors():
            piece = await self._drive(self._read)
        if not piece and self.may_be_refused:
            raise self._refused_failure(CLOSED_FOR_CERTIFICATE)
        self._awaits_acceptance = False
        return piece

    def _read(self) -> bytes:
        with suppress(ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return self._tls.read(READ_BYTES)
        return b""

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        try:
            yield
        except CheckFailed as failed:
            if self.may_be_refused:
                raise self._refused_failure(CLOSED_FOR_CERTIFICATE) from failed
            raise
        except ssl.SSLError as problem:
            if self.may_be_refused:
                raise self._refused_failure(WANTS_CERTIFICATE) from problem
            raise self._protocol_failure("broke off TLS", problem) from problem

    def _refused_failure(self, why: str) -> CheckFailed:
        sentence = f"{self._peer_name} broke off TLS: {why}."
        return CheckFailed(FailureKind.TLS, sentence, self._detail("EPROTO"))

    @property
    def verify_error(self) -> str | None:
        """Why the certificate is not trusted, without a full stop. None: no reason is known."""
        return self._verify_error

    def _certificate_failure(self, code: int, words: str) -> CheckFailed:
        self._verify_error = certificate_fault(
            code,
            describe(self._presented_chain()),
            host=self._host,
            now=datetime.now(UTC),
            words=words,
        )
        return CheckFailed(
            FailureKind.TLS,
            f"The certificate of {self._peer_name} cannot be trusted: {self._verify_error}.",
            self._detail("CERT_INVALID", verifyCode=code),
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
            piece = self._outgoing.read()
            if not self._is_established:
                self._sent += piece
            with map_connect_errors(*self._peer, syscall="write"):
                await asyncio.get_running_loop().sock_sendall(self._sock, piece)

    async def _fill(self) -> None:
        with map_connect_errors(*self._peer, syscall="read"):
            piece = await asyncio.get_running_loop().sock_recv(self._sock, READ_BYTES)
        if piece:
            self._incoming.write(piece)
        else:
            self._incoming.write_eof()

    def facts(self) -> TlsFacts | None:
        """The facts of the session so far, even after a failed handshake.

        None: the peer sent neither a certificate nor a cipher.
        """
        cipher = self._tls.cipher()
        chain = describe(self._presented_chain())
        if cipher is None and not chain:
            return None
        subjects = self._contexts.root_subjects if chain else frozenset[str]()
        first = find_first_to_expire(chain, root_subjects=subjects)
        return TlsFacts(
            version=self._tls.version() or _read_version(cipher),
            cipher=None if cipher is None else cipher[0],
            verified=self._verifies and self._is_established,
            verify_error=self._verify_error,
            days_to_expiry=None if first is None else days_to_expiry(first, now=datetime.now(UTC)),
            expires_first=None if first is None else first.subject,
            chain=chain,
        )

    def _alternative_names(self) -> Iterable[tuple[str, str]]:
        certificate = cast("dict[str, Any]", self._tls.getpeercert() or {})
        return cast("Iterable[tuple[str, str]]", certificate.get("subjectAltName", ()))

    def _presented_chain(self) -> tuple[bytes, ...]:
        # Python 3.13 makes this public and returns bytes; before, only the inner object has it.
        if hasattr(self._tls, "get_unverified_chain"):
            return tuple(self._tls.get_unverified_chain())
        inner = self._tls._sslobj  # type: ignore[attr-defined]  # noqa: SLF001 - see above
        return tuple(one.public_bytes(ENCODING_DER) for one in inner.get_unverified_chain() or ())


_OWN_SUITES: Final = frozenset({"TLSv1.2", "TLSv1.3"})
"""The versions whose cipher suites no other version uses."""


def _read_version(cipher: tuple[str, str, int] | None) -> str | None:
    """The version by its cipher suite: OpenSSL does not name it when the handshake failed."""
    return cipher[1] if cipher is not None and cipher[1] in _OWN_SUITES else None
