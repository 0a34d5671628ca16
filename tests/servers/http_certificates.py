"""Certificates for test servers: good ones, and each kind of bad one."""

import datetime as dt
import ssl

import trustme

NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


def pem_of(ca: trustme.CA) -> bytes:
    return ca.cert_pem.bytes()


def context_of(leaf: trustme.LeafCert, *, alpn: str = "http/1.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    context.set_alpn_protocols([alpn])
    return context


def good(ca: trustme.CA, *names: str) -> ssl.SSLContext:
    return context_of(ca.issue_cert(*(names or ("127.0.0.1", "localhost"))))


def expired(ca: trustme.CA) -> ssl.SSLContext:
    leaf = ca.issue_cert("127.0.0.1", not_before=NOW - 90 * DAY, not_after=NOW - 3 * DAY)
    return context_of(leaf)


def not_yet_valid(ca: trustme.CA) -> ssl.SSLContext:
    leaf = ca.issue_cert("127.0.0.1", not_before=NOW + 3 * DAY, not_after=NOW + 90 * DAY)
    return context_of(leaf)


def wrong_host(ca: trustme.CA) -> ssl.SSLContext:
    return context_of(ca.issue_cert("shop.example", "*.shop.example"))


def self_signed() -> ssl.SSLContext:
    """The authority's own certificate as the server's."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with ca.private_key_pem.tempfile() as key, ca.cert_pem.tempfile() as cert:
        context.load_cert_chain(cert, key)
    return context


def wants_client(context: ssl.SSLContext, ca: trustme.CA) -> ssl.SSLContext:
    context.verify_mode = ssl.CERT_REQUIRED
    ca.configure_trust(context)
    return context
