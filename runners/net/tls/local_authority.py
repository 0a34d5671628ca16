"""The agent's own certificate authority, for hosts that the proxy connects to for a browser.

Its key is in memory only, and only runs that need it trust it.
"""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from runners.net.tls.certificates import load_identity

_NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Agent, on behalf of its runs")])
_EARLIER: Final = timedelta(days=1)
"""How long before now certificates are valid, for clocks that are set back."""
_AUTHORITY_FOR: Final = timedelta(days=3650)
_HOST_FOR: Final = timedelta(days=30)


class LocalAuthority:
    """A certificate authority, made once per process when the first run needs it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = _sign(_authority(self._key), self._key)

    @property
    def pem(self) -> str:
        """The root certificate that runs must trust."""
        return _pem_of(self._certificate).decode()

    def create_context(self, host: str) -> ssl.SSLContext:
        """Create a server's context for this host, a name or an address, with HTTP/1.1 alone."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _sign(_host(host, key, self._key), self._key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        load_identity(context, _pem_of(certificate) + secret)
        context.set_alpn_protocols(["http/1.1"])
        return context


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        _certificate(_NAME, key.public_key(), _AUTHORITY_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _host(
    host: str, key: ec.EllipticCurvePrivateKey, issuer: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    whose = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())
    server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    return (
        _certificate(x509.Name([]), key.public_key(), _HOST_FOR)
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(server, critical=False)
        .add_extension(whose, critical=False)
    )


def _names(host: str) -> list[x509.GeneralName]:
    try:
        address = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return [x509.DNSName(host)]
    # Through a proxy, Playwright's requests take every address for "localhost".
    return [address, x509.DNSName("localhost")]


def _certificate(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, lasts: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_NAME)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + lasts)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256())


def _pem_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
