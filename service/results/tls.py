"""What a stored result says of a certificate, without the rest of it being read. Pure."""

from typing import Final

import msgspec

from contract.checks import CheckType
from contract.wire import decode

TYPES_WITH_TLS: Final = (CheckType.API.value, CheckType.TCP.value, CheckType.URL.value)
"""Of the checks whose results tell of TLS."""


class _Tls(msgspec.Struct, frozen=True, rename="camel"):
    days_to_expiry: float | None = None


class _Evidence(msgspec.Struct, frozen=True):
    tls: _Tls | None = None


class _Outcome(msgspec.Struct, frozen=True):
    evidence: _Evidence | None = None


class _Result(msgspec.Struct, frozen=True):
    outcome: _Outcome


def days_to_expiry(body: bytes) -> float | None:
    """Until the leaf certificate runs out that the run saw; negative: it has.

    `body`: the contract's Result as JSON. None: the run saw no certificate.

    Raises:
        UnreadableMessageError: it is no Result.
    """
    evidence = decode(body, _Result).outcome.evidence
    return evidence.tls.days_to_expiry if evidence and evidence.tls else None
