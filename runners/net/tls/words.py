"""Explains TLS errors in words that checks of all types share. Pure."""

import ipaddress
import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from contract.evidence import Certificate

WRONG_HOST: Final = 62
"""OpenSSL's code for a certificate of another host."""
SHOWN_NAMES: Final = 10
"""How many of a certificate's names a sentence lists."""
SHOWN_CHARS: Final = 200
"""How much of an issuer's name, or of OpenSSL's words, a sentence shows."""

_NAME_CODES: Final = frozenset({WRONG_HOST, 63, 64})
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
_SELF_SIGNED_ROOT: Final = 19
_UNKNOWN_ISSUER: Final = frozenset({2, 20, 21, 27})
_REASONS: Final = {
    7: "its signature is wrong",
    _NOT_YET_VALID: "a certificate of its chain is not valid yet",
    _EXPIRED: "a certificate of its chain has expired",
    18: "it is self-signed",
    22: "its chain is too long",
    23: "it has been revoked",
    24: "a certificate of its chain is no certificate authority",
    25: "its chain is longer than a certificate authority allows",
    26: "it is not meant for servers",
    28: "its root rejects it",
    32: "a certificate of its chain may not sign others",
    34: "a certificate of its chain has a critical extension that is not known",
    47: "a certificate authority of its chain may not sign for one of its names",
    48: "a certificate authority of its chain is forbidden to sign for one of its names",
    66: "its key is too weak",
    67: "a certificate authority's key of its chain is too weak",
    68: "a signature of its chain is made by a weak algorithm",
    79: "a certificate of its chain is no certificate authority",
}
"""OpenSSL's verify results, as the end of `the certificate of X cannot be trusted: …`."""

_NO_TLS: Final = "it does not speak TLS on this port"
_CLOSED: Final = "it closed the connection"
_VERSION: Final = "it accepts neither TLS 1.2 nor TLS 1.3, and older versions are not offered"
WANTS_CERTIFICATE: Final = "it wants a client certificate, and none was shown"
CLOSED_FOR_CERTIFICATE: Final = (
    "it asked for a client certificate, and closed the connection instead of an answer"
)
_BAD_CERTIFICATE: Final = "it does not accept the client certificate"
_HANDSHAKE: Final[Sequence[tuple[str, str]]] = (
    ("wrong version number", _NO_TLS),
    ("packet length too long", _NO_TLS),
    ("http request", _NO_TLS),
    ("reset by peer", "it reset the connection"),
    ("unexpected eof", _CLOSED),
    ("eof occurred", _CLOSED),
    ("syscall", _CLOSED),
    ("no application protocol", "it offers none of the protocols asked for"),
    ("alert protocol version", _VERSION),
    ("unsupported protocol", _VERSION),
    ("version too low", _VERSION),
    ("certificate required", WANTS_CERTIFICATE),
    ("alert bad certificate", _BAD_CERTIFICATE),
    ("alert unsupported certificate", _BAD_CERTIFICATE),
    ("alert certificate", _BAD_CERTIFICATE),
    ("alert unknown ca", _BAD_CERTIFICATE),
    ("alert access denied", "it denies access"),
    ("unrecognized name", "it does not know the host that was asked for"),
    (
        "alert handshake failure",
        "it accepts none of the ciphers and keys offered, or it wants a client certificate",
    ),
    ("alert insufficient security", "it finds the ciphers offered too weak"),
    ("alert internal error", "it reports an internal error"),
    ("alert decode error", "it could not read what it was sent"),
    ("alert decrypt error", "it could not verify what it was sent"),
    ("dh key too small", "its Diffie-Hellman key is too small"),
    ("legacy renegotiation", "it only knows the unsafe way of renegotiating"),
)
"""A part of OpenSSL's message, and its meaning as the end of `X did not agree on TLS: …`."""

_NOISE: Final = re.compile(
    r"^.*error:[0-9A-F]+:[^:]*:[^:]*:|^SSL certificate problem: |, errno \d+$| \(_ssl\.c:\d+\)$"
)
"""What libcurl and Python put around OpenSSL's words."""


def handshake_fault(words: str) -> str:
    """Explain why TLS ended, from OpenSSL's message; without a full stop."""
    plain = words.replace("_", " ").lower()
    for piece, meaning in _HANDSHAKE:
        if piece in plain:
            return meaning
    rest = _strip_noise(words).replace("_", " ").strip(" .")[:SHOWN_CHARS]
    return (rest.lower() if rest.isupper() else rest) or "no reason given"


def _strip_noise(words: str) -> str:
    return _NOISE.sub("", words)


def certificate_fault(
    code: int, chain: Sequence[Certificate], *, host: str, now: datetime, words: str
) -> str:
    """Explain why a certificate is not trusted, from OpenSSL's verify result; without a full stop.

    `words` are the message for codes that are not listed here.
    """
    rest = _REASONS.get(code) or _strip_noise(words) or f"OpenSSL reports {code}"
    if not chain:
        return rest
    leaf = chain[0]
    # A certificate of another host often has an unknown issuer too: the name says more, and libcurl
    # checks it first.
    if code in _NAME_CODES or not _is_valid_for(leaf, host):
        return _describe_wrong_host(leaf, host)
    if code == _EXPIRED and leaf.not_after < now:
        return f"it expired on {leaf.not_after:%Y-%m-%d %H:%M} UTC"
    if code == _NOT_YET_VALID and leaf.not_before > now:
        return f"it is valid from {leaf.not_before:%Y-%m-%d %H:%M} UTC only"
    return _explain_issuer(code, chain) or rest


def _explain_issuer(code: int, chain: Sequence[Certificate]) -> str | None:
    """Describe a chain that leads to no trusted root. None: the code means something else."""
    top = chain[-1]
    if code == _SELF_SIGNED_ROOT:
        name = top.subject[:SHOWN_CHARS]
        return f"its chain ends in the self-signed {name}, which is not among the trusted roots"
    if code not in _UNKNOWN_ISSUER:
        return None
    whose = "its issuer" if len(chain) == 1 else "its chain's issuer"
    return (
        f"{whose} {top.issuer[:SHOWN_CHARS]} is unknown: it is no trusted root, or the server "
        "leaves out an intermediate certificate"
    )


def _describe_wrong_host(leaf: Certificate, host: str) -> str:
    own = "is self-signed and " if leaf.subject == leaf.issuer else ""
    if not leaf.names:
        return (
            f"it {own}names no host as a subject alternative name; its subject "
            f"{leaf.subject[:SHOWN_CHARS]} does not count, as in browsers"
        )
    names = ", ".join(leaf.names[:SHOWN_NAMES])
    more = len(leaf.names) - SHOWN_NAMES
    rest = f" and {more} more" if more > 0 else ""
    return f"it {own}does not speak for {_render(host)} but for {names}{rest}"


def _is_valid_for(leaf: Certificate, host: str) -> bool:
    address = _address(host)
    return matches_name(leaf.names, host) if address is None else str(address) in leaf.names


def matches_name(names: Collection[str], host: str) -> bool:
    """Whether one of the DNS names is the host's; `*` is a whole first label (RFC 9525, 6.3)."""
    known = {name.lower() for name in names}
    wanted = host.lower().rstrip(".")
    parent = wanted.partition(".")[2]
    return wanted in known or ("." in parent and f"*.{parent}" in known)


def _render(host: str) -> str:
    address = _address(host)
    return host.rstrip(".") if address is None else f"the address {address}"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
