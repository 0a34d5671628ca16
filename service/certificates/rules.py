"""Which certificates are accepted, and for which hosts."""

import base64
import binascii
import math
import re
from collections.abc import Iterator
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import Certificate, load_pem_x509_certificates

from service.http.errors import InvalidError

HOST_PATTERN: Final = r"^[A-Za-z0-9.*?:_\[\]!-]+$"
_HOST_LETTERS: Final = re.compile(HOST_PATTERN)
MAX_TOGETHER_BYTES: Final = 512 * 1024
"""The limit for all certificates of an account: each job that can use them carries them."""
_MOST_ROUNDS: Final = 1_000_000
_MOST_BLOCKS: Final = 1 << 20
"""The limit of scrypt's blocks, 128 bytes each. Decrypting a key may take half a second and
128 MiB at most: meanwhile nobody else is served."""
_SCRYPT_NUMBERS: Final = 3
"""How often, blocks, lanes; a length may follow, as it may follow the rounds of other hashes."""
_ENCRYPTED_BEGINS: Final = "-----BEGIN ENCRYPTED PRIVATE KEY-----"
_ENCRYPTED: Final = re.compile(f"{_ENCRYPTED_BEGINS}([A-Za-z0-9+/=\\s]+)-----END")
_SEQUENCE: Final = 0x30
_INTEGER: Final = 0x02


def host_problem(host: str) -> str | None:
    """Why a text is no host or glob. None: it is one."""
    if "//" in host:
        return "is a URL; use only its host, as in api.shop.example or *.shop.example"
    if not _HOST_LETTERS.fullmatch(host):
        return "must be a host or a glob, as in api.shop.example, *.shop.example or *:8443"
    return None


def together_problem(size_bytes: int) -> str | None:
    """Why certificates are too many for one account. None: they are not."""
    if size_bytes <= MAX_TOGETHER_BYTES:
        return None
    return f"{size_bytes} bytes together; use at most {MAX_TOGETHER_BYTES}"


def cost_problem(key_pem: str) -> str | None:
    """Why opening an encrypted key would take too long. None: it would not.

    Whoever made it chose how often its passphrase is hashed.
    """
    found = _ENCRYPTED.findall(key_pem)
    if len(found) < key_pem.count(_ENCRYPTED_BEGINS):
        # What opens it might read on past lines that we do not know.
        return "contains more than base64 between its first and last line; remove the rest"
    if all(map(_decrypts_soon, found)):
        return None
    return "hashes its passphrase too often; encrypt it again with: openssl pkcs8 -topk8"


def _decrypts_soon(key_base64: str) -> bool:
    try:
        numbers = tuple(_read_integers(base64.b64decode("".join(key_base64.split()))))
    except (binascii.Error, IndexError):
        return True  # it cannot be decrypted at all
    if len(numbers) < _SCRYPT_NUMBERS:
        return max(numbers[:1], default=0) <= _MOST_ROUNDS
    return math.prod(numbers[:_SCRYPT_NUMBERS]) <= _MOST_BLOCKS


def _read_integers(der: bytes) -> Iterator[int]:
    """The integers of a DER text's sequences, at any depth: rounds, block sizes, lengths."""
    position = 0
    while position < len(der):
        tag, length, position = der[position], der[position + 1], position + 2
        if length > 0x80:
            size = length - 0x80
            length = int.from_bytes(der[position : position + size])
            position += size
        if tag == _SEQUENCE:
            continue  # what it holds comes next
        content, position = der[position : position + length], position + length
        if tag == _INTEGER:
            yield int.from_bytes(content, signed=True)


_BEGINS: Final = "it begins with -----BEGIN CERTIFICATE-----"


def check_certificate(*, cert: str, key: str, passphrase: str | None, ca: str | None) -> int:
    """When the certificate ends, once all of it fits together.

    One that has ended fits too: whether it may be shown is for the host to say.

    Raises:
        InvalidError: names the field to mend.
    """
    certificate = _load_certificates(cert, "cert")[0]
    if ca is not None:
        _load_certificates(ca, "ca")
    private = _load_private_key(key, passphrase)
    if _encode(_load_public_key(certificate)) != _encode(private.public_key()):
        raise _field_error("key", "is not the key of the first certificate in cert")
    return int(certificate.not_valid_after_utc.timestamp() * 1000)


def _load_certificates(pem: str, field: str) -> list[Certificate]:
    if "PRIVATE KEY-----" in pem:
        raise _field_error(field, "contains a private key, which would be shown; send it as key")
    try:
        return load_pem_x509_certificates(pem.encode())
    except ValueError as problem:
        raise _field_error(field, f"is not a certificate in PEM; {_BEGINS}") from problem


def _load_public_key(certificate: Certificate) -> PublicKeyTypes:
    try:
        return certificate.public_key()
    except (ValueError, UnsupportedAlgorithm) as problem:
        raise _field_error("cert", "has a key of an unsupported kind") from problem


def _load_private_key(pem: str, passphrase: str | None) -> PrivateKeyTypes:
    if too_costly := cost_problem(pem):
        raise _field_error("key", too_costly)
    secret = None if passphrase is None else passphrase.encode()
    try:
        # Whether its primes are primes takes four seconds of a long key, in which nobody else is
        # served; we do not use it, and where it is used it shows.
        return load_pem_private_key(pem.encode(), secret, unsafe_skip_rsa_key_validation=True)
    except TypeError as problem:
        raise _passphrase_error(passphrase) from problem
    except UnsupportedAlgorithm as problem:
        raise _field_error("key", "is of an unsupported kind") from problem
    except ValueError as problem:
        raise _key_error(pem, passphrase) from problem


def _passphrase_error(passphrase: str | None) -> InvalidError:
    if passphrase is None:
        return _field_error("passphrase", "is missing, and the key is encrypted")
    return _field_error("passphrase", "is given, but the key is not encrypted; omit it")


def _key_error(pem: str, passphrase: str | None) -> InvalidError:
    if passphrase is not None and "ENCRYPTED" in pem:
        return _field_error("passphrase", "does not decrypt the key")
    return _field_error(
        "key", "is not a private key in PEM; it begins with -----BEGIN PRIVATE KEY-----"
    )


def _encode(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _field_error(field: str, sentence: str) -> InvalidError:
    return InvalidError(f'"{field}" {sentence}.', keys=(field,))
