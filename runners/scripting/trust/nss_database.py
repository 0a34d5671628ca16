"""Makes the NSS database in which Chromium on Linux looks for roots: `nss_database.py FOLDER`.

It is a program that reads PEM from stdin, because NSS allows one database per process. Chromium is
linked with NSS as well, so nothing else has to be installed.
"""

import base64
import ctypes
import re
import sys
from typing import Final

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_TRUSTED: Final = 0x1B
"""The trust flags `CP` of certutil: a root, and a server certificate trusted by itself."""


UNUSABLE: Final = 3
"""The exit code of an error that a retry cannot fix; all others may be temporary."""


class NssError(Exception):
    """A call of NSS failed, perhaps for lack of disk or memory."""


class UnusableError(Exception):
    """NSS is not installed, or cannot read a certificate."""


class _Item(ctypes.Structure):
    """SECItem."""

    _fields_ = (("type", ctypes.c_int), ("data", ctypes.c_char_p), ("length", ctypes.c_uint))


class _Trust(ctypes.Structure):
    """CERTCertTrust."""

    _fields_ = (("tls", ctypes.c_uint), ("mail", ctypes.c_uint), ("code", ctypes.c_uint))


class Database:
    """A new database in an existing folder; call `close` at the end."""

    def __init__(self, folder: str) -> None:
        self._nss = _library()
        self._require(self._nss.NSS_InitReadWrite(f"sql:{folder}".encode()), "be opened")
        self._slot = ctypes.c_void_p(self._nss.PK11_GetInternalKeySlot())
        self._certificates = ctypes.c_void_p(self._nss.CERT_GetDefaultCertDB())
        self._require(self._nss.PK11_InitPin(self._slot, None, b""), "be made")

    def trust(self, der: bytes, name: str) -> None:
        """Add a certificate as trusted.

        Raises:
            UnusableError: it cannot be read.
            NssError: it cannot be stored.
        """
        item = ctypes.byref(_Item(0, der, len(der)))
        found = self._nss.CERT_NewTempCertificate(self._certificates, item, None, 0, 1)
        if not found:
            raise UnusableError(f"{name} is not a certificate that NSS can read")
        one = ctypes.c_void_p(found)
        stored = self._nss.PK11_ImportCert(self._slot, one, ctypes.c_ulong(0), name.encode(), 0)
        self._require(stored, "take a certificate")
        trust = ctypes.byref(_Trust(_TRUSTED, 0, 0))
        self._require(self._nss.CERT_ChangeCertTrust(self._certificates, one, trust), "trust it")
        self._nss.CERT_DestroyCertificate(one)

    def close(self) -> None:
        """Close the database, whose certificates are already on disk."""
        self._nss.PK11_FreeSlot(self._slot)
        self._nss.NSS_Shutdown()

    def _require(self, status: int, what: str) -> None:
        if status != 0:
            raise NssError(f"the database could not {what} (NSS error {self._nss.PR_GetError()})")


def _library() -> ctypes.CDLL:
    try:
        nss = ctypes.CDLL("libnss3.so")
    except OSError as problem:
        if "No such file" in str(problem):
            raise UnusableError(str(problem)) from problem
        raise
    for name in ("PK11_GetInternalKeySlot", "CERT_GetDefaultCertDB", "CERT_NewTempCertificate"):
        getattr(nss, name).restype = ctypes.c_void_p
    return nss


def _make(folder: str, pems: list[str]) -> None:
    database = Database(folder)
    for number, pem in enumerate(pems, 1):
        name = f"root {number}"
        try:
            der = base64.b64decode(pem)
        except ValueError as problem:
            raise UnusableError(f"{name} is not PEM: {problem}") from problem
        database.trust(der, name)
    database.close()


def main() -> None:
    """Make the database from stdin; the last line of stderr says what went wrong."""
    try:
        _make(sys.argv[1], _PEM.findall(sys.stdin.read()))
    except UnusableError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(UNUSABLE)
    except (NssError, OSError) as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
