"""Facts of a certificate chain."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from contract.http_evidence import Certificate

if TYPE_CHECKING:
    from cryptography import x509

REMEMBERED_CERTIFICATES: Final = 2048
SECONDS_PER_DAY: Final = 86_400


def describe(chain: Iterable[bytes]) -> tuple[Certificate, ...]:
    """The facts of each certificate (DER), in the order given; unreadable ones are left out."""
    facts = (read_der(der) for der in chain)
    return tuple(one for one in facts if one is not None)


def days_to_expiry(chain: tuple[Certificate, ...], *, now: datetime) -> float | None:
    """Days that the leaf has left; negative when it has run out. None: there is no leaf."""
    if not chain:
        return None
    return (chain[0].not_after - now).total_seconds() / SECONDS_PER_DAY


@lru_cache(maxsize=REMEMBERED_CERTIFICATES)
def read_der(der: bytes) -> Certificate | None:
    """The facts of one certificate. None: it cannot be read.

    Remembered, because a target shows the same chain at every look and parsing costs 100 µs.
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
        spoken_for = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return ()
    kinds = (x509.DNSName, x509.IPAddress)
    return tuple(str(name.value) for name in spoken_for.value if isinstance(name, kinds))
