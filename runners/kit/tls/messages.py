"""The certificates that a server showed, as libcurl hands them out. Pure."""

import ssl
from collections.abc import Iterable, Iterator
from typing import Final

_CERTIFICATE: Final = 11
_CERTIFICATE_REQUEST: Final = 13
OF_CERTIFICATES: Final = (bytes([_CERTIFICATE]), bytes([_CERTIFICATE_REQUEST]))
"""How the messages begin that are looked at here."""
_HEAD_BYTES: Final = 4
"""Type and length of a handshake message."""
_LENGTH_BYTES: Final = 3
"""Of a list of certificates, and of a certificate."""


def is_certificate_message(message: bytes) -> bool:
    """Whether this is the server's Certificate message; record headers are shorter."""
    return len(message) > _HEAD_BYTES and message[0] == _CERTIFICATE


def is_certificate_request(message: bytes) -> bool:
    """Whether the server asks for a client certificate by this."""
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
