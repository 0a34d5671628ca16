"""Facts of certificates."""

import datetime as dt
import ssl

import pytest
import trustme

from contract.evidence import Certificate
from runners.net.tls.certificates import days_to_expiry, describe, find_first_to_expire


def der(leaf: trustme.LeafCert) -> bytes:
    """The leaf as the wire has it."""
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())


def test_a_certificate_tells_its_hosts_and_its_days() -> None:
    (facts,) = describe([der(trustme.CA().issue_cert("shop.example", "10.0.0.7", "::1"))])
    assert set(facts.names) == {"shop.example", "10.0.0.7", "::1"}
    assert int(facts.serial, 16) > 0
    assert facts.not_before < facts.not_after


def test_what_is_no_certificate_is_left_out() -> None:
    assert describe([b"", b"\x30\x03abc"]) == ()


def test_days_are_counted_to_the_end_of_a_certificate() -> None:
    now = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    leaf = trustme.CA().issue_cert("a.example", not_after=now + dt.timedelta(days=9, hours=12))
    (facts,) = describe([der(leaf)])
    assert days_to_expiry(facts, now=now) == 9.5


def a_certificate(subject: str, issuer: str, days: int) -> Certificate:
    begins = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    return Certificate(
        subject=subject,
        issuer=issuer,
        serial="1",
        not_before=begins,
        not_after=begins + dt.timedelta(days=days),
        fingerprint_sha256="ab" * 32,
    )


LEAF = a_certificate("leaf", "middle", 90)
MIDDLE = a_certificate("middle", "root", 60)
SELF_SIGNED = a_certificate("root", "root", 5)
CROSS_SIGNED = a_certificate("root", "old root", 1)
STRANGER = a_certificate("stranger", "elsewhere", 2)


@pytest.mark.parametrize(
    ("chain", "roots", "first"),
    [
        ((), {"root"}, None),
        ((LEAF,), {"root"}, LEAF),
        ((LEAF, MIDDLE), {"root"}, MIDDLE),
        ((MIDDLE, LEAF), {"root"}, MIDDLE),
        ((LEAF, STRANGER, MIDDLE), {"root"}, MIDDLE),
        ((LEAF, MIDDLE, SELF_SIGNED), {"root"}, MIDDLE),
        ((LEAF, MIDDLE, SELF_SIGNED), set(), MIDDLE),
        ((LEAF, MIDDLE, CROSS_SIGNED), {"root", "old root"}, MIDDLE),
        ((LEAF, MIDDLE, CROSS_SIGNED), {"old root"}, CROSS_SIGNED),
        ((LEAF, MIDDLE), {"middle"}, LEAF),
        ((SELF_SIGNED,), set(), SELF_SIGNED),
    ],
)
def test_what_expires_first_is_among_those_that_lead_to_a_root(
    chain: tuple[Certificate, ...], roots: set[str], first: Certificate | None
) -> None:
    assert find_first_to_expire(chain, root_subjects=roots) == first
