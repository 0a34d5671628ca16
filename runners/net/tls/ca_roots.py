"""The roots that checks trust: the system's, and the operator's own."""

import os
import re
import shutil
import ssl
import warnings
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

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
    def subjects(self) -> frozenset[str]:
        """The names of the roots, as they stand in certificates that they issued."""
        return read_subjects(Path(self.path).read_bytes())

    def load(self) -> frozenset[str]:
        """Read the subjects now, with the library that reads certificates; it blocks."""
        return self.subjects

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


_CERTIFICATE: Final = re.compile(
    b"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL
)


def read_subjects(pem: bytes) -> frozenset[str]:
    """The subjects of all certificates; unreadable ones are left out."""
    # Imported here: it costs 10 MB and 50 ms, and an agent may never see a certificate.
    from cryptography import x509  # noqa: PLC0415

    found: set[str] = set()
    with warnings.catch_warnings():
        # Some trusted roots are older than today's rules, for a serial number say.
        warnings.simplefilter("ignore")
        for one in _CERTIFICATE.findall(pem):
            with suppress(ValueError):
                found.add(x509.load_pem_x509_certificate(one).subject.rfc4514_string())
    return frozenset(found)


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
