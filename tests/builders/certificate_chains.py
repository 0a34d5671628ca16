"""Chains of a root, an intermediate and a server's certificate, each with something odd."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from runners.net.tls.certificates import load_identity

NOW = dt.datetime.now(dt.UTC)
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def dns(*names: str) -> tuple[x509.GeneralName, ...]:
    return tuple(x509.DNSName(name) for name in names)


def address(text: str) -> x509.IPAddress:
    return x509.IPAddress(ipaddress.ip_address(text))


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A chain for localhost without a fault, unless a field says otherwise."""

    names: Sequence[x509.GeneralName] = (*dns("localhost"), address("127.0.0.1"))
    common_name: str = "localhost"
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH
    key: Key | None = None
    """The server's key. None: one of P-256."""
    extension: x509.ExtensionType | None = None
    """A further extension of the server's certificate, critical."""
    leaf_days: int = 30
    middle_is_ca: bool = True
    middle_signs: bool = True
    middle_days: int = 60
    middle_constraints: x509.NameConstraints | None = None
    has_key_identifiers: bool = True
    root_is_critical: bool = True
    """Whether the root's basic constraints are critical."""
    root_days: int = 90

    @cached_property
    def _keys(self) -> tuple[ec.EllipticCurvePrivateKey, ec.EllipticCurvePrivateKey, Key]:
        made = [ec.generate_private_key(ec.SECP256R1()) for _ in range(3)]
        return made[0], made[1], self.key or made[2]

    @cached_property
    def root(self) -> bytes:
        """The root in PEM."""
        key = self._keys[0]
        builder = _begin("Odd Root", "Odd Root", key, self.root_days).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=self.root_is_critical
        )
        return _pem(builder.sign(key, hashes.SHA256()))

    @cached_property
    def middle(self) -> bytes:
        """The intermediate in PEM."""
        issuer, key, _ = self._keys
        builder = _begin("Odd Middle", "Odd Root", key, self.middle_days).add_extension(
            x509.BasicConstraints(ca=self.middle_is_ca, path_length=None), critical=True
        )
        builder = builder.add_extension(_signs(certificates=self.middle_signs), critical=True)
        if self.middle_constraints is not None:
            builder = builder.add_extension(self.middle_constraints, critical=True)
        return _pem(self._identify(builder, key, issuer).sign(issuer, hashes.SHA256()))

    @cached_property
    def leaf(self) -> bytes:
        """The server's certificate in PEM."""
        _, issuer, key = self._keys
        builder = _begin(self.common_name, "Odd Middle", key, self.leaf_days).add_extension(
            x509.ExtendedKeyUsage([self.usage]), critical=False
        )
        if self.names:
            builder = builder.add_extension(x509.SubjectAlternativeName(self.names), critical=False)
        if self.extension is not None:
            builder = builder.add_extension(self.extension, critical=True)
        return _pem(self._identify(builder, key, issuer).sign(issuer, hashes.SHA256()))

    def _identify(
        self, builder: x509.CertificateBuilder, key: Key, issuer: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        if not self.has_key_identifiers:
            return builder
        whose = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return builder.add_extension(whose, critical=False).add_extension(own, critical=False)

    def server(self) -> ssl.SSLContext:
        """The context of a server that sends leaf and intermediate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        secret = self._keys[2].private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        load_identity(context, self.leaf + self.middle + secret)
        context.set_alpn_protocols(["http/1.1"])
        return context


def _begin(name: str, issuer: str, key: Key, days: int) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - dt.timedelta(days=100))
        .not_valid_after(NOW + dt.timedelta(days=days))
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _signs(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
