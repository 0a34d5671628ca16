"""Facts of certificates."""

import datetime as dt
import ssl

import trustme

from runners.net.tls.certificates import days_to_expiry, describe


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


def test_days_are_counted_to_the_end_of_the_leaf() -> None:
    now = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    leaf = trustme.CA().issue_cert("a.example", not_after=now + dt.timedelta(days=9, hours=12))
    chain = describe([der(leaf)])
    assert days_to_expiry(chain, now=now) == 9.5
    assert days_to_expiry((), now=now) is None
