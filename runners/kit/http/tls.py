"""What was seen of TLS, and why verification failed, in words. Pure."""

import re
from datetime import datetime
from typing import Final

from contract.http_evidence import TlsFacts
from runners.kit.http.transfer import Seen
from runners.kit.tls.certificates import days_to_expiry, describe
from runners.kit.tls.words import WRONG_HOST, certificate_fault

VERIFICATION_FAILED: Final = 60
"""libcurl's code for a certificate that it does not accept."""
_HANDSHAKE_FAILED: Final = 35

_NAME_MISMATCH: Final = re.compile("subject name|common name")
"""In libcurl's words; it has no code of its own for a certificate of another host."""


def tls_facts(
    seen: Seen, *, host: str, accepted_in_spite_of: str | None, now: datetime
) -> TlsFacts | None:
    """What the handshake showed. None: it did not get as far as a certificate or a cipher.

    `accepted_in_spite_of` says what was wrong with a certificate that the check let pass.
    """
    chain = describe(seen.chain)
    version, cipher = _version_and_cipher(seen.tls_line)
    if not chain and version is None:
        return None
    wrong = accepted_in_spite_of or verify_error(seen, host=host, now=now)
    return TlsFacts(
        version=version,
        cipher=cipher,
        verified=wrong is None,
        verify_error=wrong,
        days_to_expiry=days_to_expiry(chain, now=now),
        chain=chain,
    )


def offers_too_little(seen: Seen) -> bool:
    """Whether the server refused all that we offered, so that more should be offered."""
    return seen.ended.code == _HANDSHAKE_FAILED and "handshake failure" in seen.ended.message


def verify_error(seen: Seen, *, host: str, now: datetime) -> str | None:
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
