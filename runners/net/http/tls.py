"""TLS of an exchange: the roots to trust, and the facts of certificates."""

import os
import re
import shutil
import ssl
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from contract.evidence import TlsFacts
from runners.net.http.transfer import TransferResult
from runners.net.tls.certificates import days_to_expiry, describe
from runners.net.tls.words import WRONG_HOST, certificate_fault

VERIFICATION_FAILED: Final = 60
"""libcurl's code for a certificate that it does not accept."""
_HANDSHAKE_FAILED: Final = 35

_NAME_MISMATCH: Final = re.compile("subject name|common name")
"""libcurl's message for a certificate of another host, for which it has no code."""


def tls_facts(
    seen: TransferResult, *, host: str, ignored_error: str | None, now: datetime
) -> TlsFacts | None:
    """What the handshake showed. None: it did not get as far as a certificate or a cipher.

    `ignored_error` is why a certificate was not valid that the check accepted all the same.
    """
    chain = describe(seen.chain)
    version, cipher = _version_and_cipher(seen.tls_line)
    if not chain and version is None:
        return None
    wrong = ignored_error or verify_error(seen, host=host, now=now)
    return TlsFacts(
        version=version,
        cipher=cipher,
        verified=wrong is None,
        verify_error=wrong,
        days_to_expiry=days_to_expiry(chain, now=now),
        chain=chain,
    )


def needs_more_groups(seen: TransferResult) -> bool:
    """Whether the server refused all key exchanges offered, so that the rest should be offered."""
    return seen.ended.code == _HANDSHAKE_FAILED and "handshake failure" in seen.ended.message


def verify_error(seen: TransferResult, *, host: str, now: datetime) -> str | None:
    """Why the certificate was not accepted, without a full stop. None: it was."""
    if seen.ended.code != VERIFICATION_FAILED:
        return None
    mismatch = _NAME_MISMATCH.search(seen.ended.message) is not None
    code = WRONG_HOST if mismatch else seen.verify_result
    words = seen.ended.message
    return certificate_fault(code, describe(seen.chain), host=host, now=now, words=words)


def _version_and_cipher(line: str) -> tuple[str | None, str | None]:
    """From `SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384 / x25519 / …`."""
    parts = line.removeprefix("SSL connection using ").strip().split(" / ")
    return (parts[0], parts[1]) if len(parts) > 1 else (None, None)


_USUAL_PLACES: Final = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/ca-bundle.pem"),
    Path("/etc/ssl/cert.pem"),
)


class NoRootsError(RuntimeError):
    """The machine has no bundle of certificate authorities; every HTTPS check would lie."""


class CaRoots:
    """The system's roots and the operator's own ones, as one file.

    One file for the life of the process: libcurl then reads it once and not per connection. It lies
    in memory, so that nothing is left of it however the process ends.
    """

    def __init__(self, *, extra_ca_pem: bytes | None = None) -> None:
        self._system = system_bundle()
        self._joined: int | None = None
        """The descriptor of the joined file. None: the system's file is used."""
        if extra_ca_pem:
            self._joined = _join(self._system, extra_ca_pem)

    @property
    def path(self) -> str:
        """The path from which libcurl reads them; it is valid in this process alone."""
        return str(self._system) if self._joined is None else f"/proc/self/fd/{self._joined}"

    @cached_property
    def _pem(self) -> bytes:
        return Path(self.path).read_bytes()

    def combine_with(self, ca: str) -> bytes:
        """Add one root to these, for a single exchange.

        Raises:
            ValueError: it cannot be read; libcurl would blame the roots, or report nothing.
        """
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=ca)
        except ssl.SSLError as problem:
            raise ValueError("This is not a certificate in PEM.") from problem
        return self._pem + b"\n" + ca.encode()

    def close(self) -> None:
        """Close the joined file, if there is one."""
        if self._joined is not None:
            os.close(self._joined)
            self._joined = None


def system_bundle() -> Path:
    """The file with the system's roots; SSL_CERT_FILE wins.

    Raises:
        NoRootsError: there is none.
    """
    named = os.environ.get("SSL_CERT_FILE")
    if named:
        if not Path(named).is_file():
            raise NoRootsError(f"SSL_CERT_FILE is {named}, which is not a file.")
        return Path(named)
    built_in = ssl.get_default_verify_paths().cafile
    places = (*_USUAL_PLACES, Path(built_in)) if built_in else _USUAL_PLACES
    for place in places:
        if place.is_file():
            return place
    raise NoRootsError(
        "No certificate authorities were found; install ca-certificates or set SSL_CERT_FILE."
    )


def _join(system: Path, extra_pem: bytes) -> int:
    descriptor = os.memfd_create("picket-roots")
    with os.fdopen(descriptor, "wb", closefd=False) as file, system.open("rb") as roots:
        # Piece by piece: what is read at once leaves half a MB of the heap behind, empty.
        shutil.copyfileobj(roots, file)
        file.write(b"\n" + extra_pem)
    return descriptor
