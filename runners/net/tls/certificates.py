"""Certificates: their facts, and the chain that a server presents."""

import hashlib
import ipaddress
import os
import socket
import ssl
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from contract.evidence import Certificate
from runners.net.tls.words import matches_name

if TYPE_CHECKING:
    from cryptography import x509

CACHED_CERTIFICATES: Final = 2048
SECONDS_PER_DAY: Final = 86_400


def describe(chain: Iterable[bytes]) -> tuple[Certificate, ...]:
    """The facts of each certificate (DER), in the order given; unreadable ones are left out."""
    facts = (read_der(der) for der in chain)
    return tuple(one for one in facts if one is not None)


def find_first_to_expire(
    chain: Sequence[Certificate], *, root_subjects: Collection[str]
) -> Certificate | None:
    """The certificate that ends the chain's validity. None: the chain is empty.

    Only those count that lead from the leaf to a trusted root: servers also send roots, and
    certificates for clients that do not have the root yet, which may expire without harm.
    """
    needed = list(chain[:1])
    while needed and needed[-1].issuer not in root_subjects:
        issuer = next((one for one in chain if one.subject == needed[-1].issuer), None)
        if issuer is None or issuer in needed or issuer.subject == issuer.issuer:
            break
        needed.append(issuer)
    return min(needed, key=lambda one: one.not_after, default=None)


def days_to_expiry(certificate: Certificate, *, now: datetime) -> float:
    """Days until the certificate expires; negative when it has."""
    return (certificate.not_after - now).total_seconds() / SECONDS_PER_DAY


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


def names_host(alternative_names: Iterable[tuple[str, str]], host: str) -> bool:
    """Whether a certificate with these subject alternative names is the host's.

    It decides for both TLS libraries, because they differ: libcurl takes a common name where there
    is no other, and OpenSSL no wildcard for a label with an underscore. Kinds of names are those
    of Python's `getpeercert`.
    """
    address = _read_address(host)
    if address is None:
        return matches_name({name for kind, name in alternative_names if kind == "DNS"}, host)
    known = (_read_address(name) for kind, name in alternative_names if kind == "IP Address")
    return address in known


@lru_cache(maxsize=CACHED_CERTIFICATES)
def read_alternative_names(der: bytes) -> tuple[tuple[str, str], ...] | None:
    """The subject alternative names of a certificate, as for `names_host`. None: it is unreadable.

    Cached for the reason of `read_der`.
    """
    from cryptography import x509  # noqa: PLC0415 - as above

    try:
        names = (
            x509.load_der_x509_certificate(der)
            .extensions.get_extension_for_class(x509.SubjectAlternativeName)
            .value
        )
    except x509.ExtensionNotFound:
        return ()
    except (x509.DuplicateExtension, ValueError):
        return None
    return (
        *(("DNS", name) for name in names.get_values_for_type(x509.DNSName)),
        *(("IP Address", str(one)) for one in names.get_values_for_type(x509.IPAddress)),
    )


def _read_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(host.partition("%")[0])
    with suppress(OSError):  # 127.1 and 0x7f000001 are addresses to libcurl and browsers
        return ipaddress.IPv4Address(socket.inet_aton(host))
    return None


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


_RECORD_HEAD_BYTES: Final = 5
_ENCRYPTED_RECORD: Final = 23
_SEAL_BYTES: Final = 17
"""By how much encryption lengthens a record: the content type and the tag."""


def answers_certificate_request(sent: bytes, *, cipher: str) -> bool:
    """Whether the records that a TLS 1.3 client sent answer a request for a certificate.

    The request itself comes encrypted; its answer is a Certificate message before Finished, even
    without a certificate (RFC 8446, 4.4.2).
    """
    finished_bytes = _HEAD_BYTES + (48 if cipher.endswith("SHA384") else 32)
    at = encrypted_bytes = 0
    while at < len(sent):
        length = int.from_bytes(sent[at + 3 : at + _RECORD_HEAD_BYTES], "big")
        if sent[at] == _ENCRYPTED_RECORD:
            encrypted_bytes += length - _SEAL_BYTES
        at += _RECORD_HEAD_BYTES + length
    return encrypted_bytes > finished_bytes


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
