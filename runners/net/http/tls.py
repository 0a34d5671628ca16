"""TLS of an exchange: the facts of its certificates, why one was not accepted, and the roots."""

import re
import socket
from datetime import datetime
from typing import Final

import pycurl

from contract.evidence import TlsFacts
from runners.net.http.curl_multi import CurlMulti
from runners.net.http.transfer import TransferResult
from runners.net.tls.ca_roots import CaRoots
from runners.net.tls.certificates import days_to_expiry, describe, find_first_to_expire
from runners.net.tls.words import WRONG_HOST, certificate_fault

VERIFICATION_FAILED: Final = 60
"""libcurl's code for a certificate that it does not accept."""
_HANDSHAKE_FAILED: Final = 35

_NAME_MISMATCH: Final = re.compile("subject name|common name")
"""libcurl's message for a certificate of another host, for which it has no code."""


def tls_facts(
    seen: TransferResult,
    *,
    host: str,
    ignored_error: str | None,
    roots: CaRoots,
    now: datetime,
) -> TlsFacts | None:
    """What the handshake showed. None: it did not get as far as a certificate or a cipher.

    `ignored_error` is why a certificate was not valid that the check accepted all the same.
    """
    chain = describe(seen.chain)
    version, cipher = _version_and_cipher(seen.tls_line)
    if not chain and version is None:
        return None
    wrong = ignored_error or verify_error(seen, host=host, now=now)
    first = find_first_to_expire(chain, root_subjects=roots.subjects) if chain else None
    return TlsFacts(
        version=version,
        cipher=cipher,
        verified=wrong is None,
        verify_error=wrong,
        days_to_expiry=None if first is None else days_to_expiry(first, now=now),
        expires_first=None if first is None else first.subject,
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


_ROOTS_LIMIT_MS: Final = 5000


async def read_roots(multi: CurlMulti, roots_path: str) -> None:
    """Make libcurl read the roots, which a multi handle keeps, by a handshake with nobody."""
    ours, theirs = socket.socketpair()
    curl = pycurl.Curl()
    try:
        theirs.shutdown(socket.SHUT_WR)
        for option, value in (
            (pycurl.URL, "https://127.0.0.1/"),
            (pycurl.CAINFO, roots_path),
            (pycurl.NOSIGNAL, 1),
            (pycurl.PROXY, ""),  # or libcurl would read one from the environment
            (pycurl.NOPROXY, ""),
            (pycurl.OPENSOCKETFUNCTION, lambda _purpose, _address: ours),
            (pycurl.SOCKOPTFUNCTION, lambda _fd, _purpose: pycurl.SOCKOPT_ALREADY_CONNECTED),
            (pycurl.TIMEOUT_MS, _ROOTS_LIMIT_MS),
        ):
            curl.setopt(option, value)
        await multi.perform(curl)  # it fails, after the roots were read
    finally:
        curl.close()
        ours.close()
        theirs.close()
