"""Certificates: their facts, and the chain that a server presents."""

import hashlib
import os
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from contract.evidence import Certificate

if TYPE_CHECKING:
    from cryptography import x509

CACHED_CERTIFICATES: Final = 2048
SECONDS_PER_DAY: Final = 86_400


def describe(chain: Iterable[bytes]) -> tuple[Certificate, ...]:
    """The facts of each certificate (DER), in the order given; unreadable ones are left out."""
    facts = (read_der(der) for der in chain)
    return tuple(one for one in facts if one is not None)


def days_to_expiry(chain: tuple[Certificate, ...], *, now: datetime) -> float | None:
    """Days until the leaf expires; negative when it has. None: there is no leaf."""
    if not chain:
        return None
    return (chain[0].not_after - now).total_seconds() / SECONDS_PER_DAY


@lru_cache(maxsize=CACHED_CERTIFICATES)
def read_der(der: bytes) -> Certificate | None:
    """The facts of one certificate. None: it cannot be read.

    Cached, because a target presents the same chain in every run and parsing takes 100 µs.
    """
    # Imported here: it costs 10 MB and 50 ms, and an agent may never see a certificate.
    from cryptography import x509  # noqa: PLC0415

    try:
        return _facts(x509.load_der_x509_certificate(der), der)
    except ValueError:
        return None


def _facts(certificate: "x509.Certificate", der: bytes) -> Certificate:
    return Certificate(
        subject=certificate.subject.rfc4514_string(),
        issuer=certificate.issuer.rfc4514_string(),
        serial=f"{certificate.serial_number:x}",
        not_before=certificate.not_valid_before_utc.astimezone(UTC),
        not_after=certificate.not_valid_after_utc.astimezone(UTC),
        names=_names(certificate),
        fingerprint_sha256=hashlib.sha256(der).hexdigest(),
    )


def _names(certificate: "x509.Certificate") -> tuple[str, ...]:
    from cryptography import x509  # noqa: PLC0415 - as above

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return ()
    kinds = (x509.DNSName, x509.IPAddress)
    return tuple(str(name.value) for name in extension.value if isinstance(name, kinds))


def load_identity(context: ssl.SSLContext, pem: bytes, passphrase: str = "") -> None:
    """Make a context present a certificate; certificate and key come from memory, never from disk.

    Raises:
        ssl.SSLError, ValueError: they cannot be read, or do not belong together.
    """
    with _memory_file(pem) as path:
        context.load_cert_chain(path, password=passphrase)


@contextmanager
def _memory_file(content: bytes) -> Iterator[str]:
    descriptor = os.memfd_create("picket-identity")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


_CERTIFICATE: Final = 11
_CERTIFICATE_REQUEST: Final = 13
CERTIFICATE_MESSAGES: Final = (bytes([_CERTIFICATE]), bytes([_CERTIFICATE_REQUEST]))
"""The first byte of the handshake messages that are read here."""
_HEAD_BYTES: Final = 4
"""Type and length of a handshake message."""
_LENGTH_BYTES: Final = 3
"""The size of the length field of a certificate, and of a list of them."""


def is_certificate_message(message: bytes) -> bool:
    """Whether this is the server's Certificate message; record headers are shorter."""
    return len(message) > _HEAD_BYTES and message[0] == _CERTIFICATE


def is_certificate_request(message: bytes) -> bool:
    """Whether this is the server's request for a client certificate."""
    return len(message) > _HEAD_BYTES and message[0] == _CERTIFICATE_REQUEST


def read_chain(message: bytes) -> tuple[bytes, ...]:
    """The certificates (DER) in their order; as many as can be read, none of an empty message.

    TLS 1.3 has a context in front, which servers leave empty, and extensions behind each
    certificate; that the length of the list fits what is left tells it from TLS 1.2.
    """
    for start, has_extensions in ((_HEAD_BYTES, False), (_HEAD_BYTES + 1, True)):
        first = start + _LENGTH_BYTES
        if int.from_bytes(message[start:first], "big") == len(message) - first:
            return tuple(_certificates(message[first:], has_extensions=has_extensions))
    return ()


def chain_of_info(info: Iterable[Iterable[tuple[bytes, bytes]]]) -> tuple[bytes, ...]:
    """The certificates (DER) in their order, of libcurl's CERTINFO: the fields of each."""
    pems = (value for fields in info for name, value in fields if name == b"Cert")
    return tuple(ssl.PEM_cert_to_DER_cert(pem.decode("ascii")) for pem in pems)


def _certificates(entries: bytes, *, has_extensions: bool) -> Iterator[bytes]:
    at = 0
    while at < len(entries):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(entries[at:start], "big")
        if at > len(entries):
            return
        yield entries[start:at]
        if has_extensions:
            at += 2 + int.from_bytes(entries[at : at + 2], "big")
