"""A certificate authority and a server certificate for the demo target, made at each start."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_FOR: Final = timedelta(days=90)
_BACKDATED: Final = timedelta(hours=1)
"""A clock that is a little behind still finds the certificate valid."""


@dataclass(frozen=True, slots=True)
class DemoCertificate:
    """Files in PEM; the authority's goes into the agent's `EXTRA_CA_CERTS`."""

    authority: Path
    chain_and_key: Path

    def server_context(self) -> ssl.SSLContext:
        """What the demo target's HTTPS side serves with."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain_and_key)
        return context


def make_certificate(folder: Path, *, host: str) -> DemoCertificate:
    """Make both anew and write them to the folder; the server's key can be read by us alone."""
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _sign(_named("Picket demo authority", authority_key), authority_key, authority_key)
    request = _named("Picket demo target", server_key, issuer=authority.subject)
    server = _sign(request, server_key, authority_key, host=host)
    made = DemoCertificate(folder / "demo-authority.pem", folder / "demo-server.pem")
    made.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    made.chain_and_key.touch(mode=0o600)
    made.chain_and_key.write_bytes(
        server.public_bytes(serialization.Encoding.PEM) + _private_pem(server_key)
    )
    return made


def _named(
    name: str, key: ec.EllipticCurvePrivateKey, *, issuer: x509.Name | None = None
) -> x509.CertificateBuilder:
    """A certificate without extensions yet. No issuer: it signs itself."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _VALID_FOR)
    )


def _sign(
    builder: x509.CertificateBuilder,
    own_key: ec.EllipticCurvePrivateKey,
    signing_key: ec.EllipticCurvePrivateKey,
    *,
    host: str | None = None,
) -> x509.Certificate:
    """Add the extensions and sign. No host: it is an authority."""
    authority = host is None
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(_usage(authority=authority), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(own_key.public_key()), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    if host is not None:
        builder = _for_server(builder, host)
    return builder.sign(signing_key, hashes.SHA256())


def _for_server(builder: x509.CertificateBuilder, host: str) -> x509.CertificateBuilder:
    names = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ip_address(host))]
    )
    server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    return builder.add_extension(names, critical=False).add_extension(server, critical=False)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
