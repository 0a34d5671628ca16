"""Reading what people send as a client certificate: one clear sentence for what does not fit."""

from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import Certificate, load_pem_x509_certificates

from service.certificates.rules import cost_problem
from service.http.errors import InvalidError

_BEGINS: Final = "it begins with -----BEGIN CERTIFICATE-----"


def expires_ms_of(*, cert: str, key: str, passphrase: str | None, ca: str | None) -> int:
    """When the certificate ends, once all of it fits together.

    One that has ended fits too: whether it may be shown is for the host to say.

    Raises:
        InvalidError: names the field to mend.
    """
    certificate = _certificates(cert, "cert")[0]
    if ca is not None:
        _certificates(ca, "ca")
    private = _private_key(key, passphrase)
    if _bytes_of(_public_key(certificate)) != _bytes_of(private.public_key()):
        raise _wrong("key", "is not the key of the first certificate in cert")
    return int(certificate.not_valid_after_utc.timestamp() * 1000)


def _certificates(pem: str, field: str) -> list[Certificate]:
    if "PRIVATE KEY-----" in pem:
        raise _wrong(field, "holds a private key, which would be shown; send that as key")
    try:
        return load_pem_x509_certificates(pem.encode())
    except ValueError as problem:
        raise _wrong(field, f"is no certificate in PEM; {_BEGINS}") from problem


def _public_key(certificate: Certificate) -> PublicKeyTypes:
    try:
        return certificate.public_key()
    except (ValueError, UnsupportedAlgorithm) as problem:
        raise _wrong("cert", "has a key of a kind that is not known here") from problem


def _private_key(pem: str, passphrase: str | None) -> PrivateKeyTypes:
    if too_costly := cost_problem(pem):
        raise _wrong("key", too_costly)
    secret = None if passphrase is None else passphrase.encode()
    try:
        # Whether its primes are primes takes four seconds of a long key, in which nobody else is
        # served; we do not use it, and where it is used it shows.
        return load_pem_private_key(pem.encode(), secret, unsafe_skip_rsa_key_validation=True)
    except TypeError as problem:
        raise _passphrase_matters(passphrase) from problem
    except UnsupportedAlgorithm as problem:
        raise _wrong("key", "is of a kind that is not known here") from problem
    except ValueError as problem:
        raise _unreadable(pem, passphrase) from problem


def _passphrase_matters(passphrase: str | None) -> InvalidError:
    if passphrase is None:
        return _wrong("passphrase", "is missing, and the key is encrypted")
    return _wrong("passphrase", "is given, and the key is not encrypted; leave it out")


def _unreadable(pem: str, passphrase: str | None) -> InvalidError:
    if passphrase is not None and "ENCRYPTED" in pem:
        return _wrong("passphrase", "does not open the key")
    return _wrong("key", "is no private key in PEM; it begins with -----BEGIN PRIVATE KEY-----")


def _bytes_of(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _wrong(field: str, sentence: str) -> InvalidError:
    return InvalidError(f'"{field}" {sentence}.', keys=(field,))
