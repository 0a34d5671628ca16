"""Links that let somebody store one file, by AWS Signature Version 4 in the query.

The signature covers headers as well, which obstore's links do not: size, digest and type of the
file are fixed, and a store that knows checksums refuses another file.
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Signs with a key of a store."""

    key_id: str
    secret_key: str
    region: str

    def presign(
        self, method: str, address: str, *, valid_s: int, headers: Mapping[str, str], now: datetime
    ) -> str:
        """A link for a request with exactly these headers, whose names are in lower case.

        `address`: of the object, percent-encoded, without a query.
        """
        parts = urlsplit(address)
        time = f"{now:%Y%m%dT%H%M%SZ}"
        scope = f"{time[:8]}/{self.region}/s3/aws4_request"
        signed = {**headers, "host": parts.netloc}
        names = ";".join(sorted(signed))
        given = {
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{self.key_id}/{scope}",
            "X-Amz-Date": time,
            "X-Amz-Expires": str(valid_s),
            "X-Amz-SignedHeaders": names,
        }
        query = urlencode(given, quote_via=quote, safe="")
        lines = "".join(f"{name}:{signed[name].strip()}\n" for name in sorted(signed))
        request = f"{method}\n{parts.path}\n{query}\n{lines}\n{names}\nUNSIGNED-PAYLOAD"
        digest = hashlib.sha256(request.encode()).hexdigest()
        secret = f"AWS4{self.secret_key}".encode()
        for part in scope.split("/"):
            secret = _hmac(secret, part)
        signature = _hmac(secret, f"{_ALGORITHM}\n{time}\n{scope}\n{digest}").hex()
        return f"{address}?{query}&X-Amz-Signature={signature}"


def checksum_header(sha256: str) -> dict[str, str]:
    """The header by which a store checks what it gets; the digest is hexadecimal."""
    return {"x-amz-checksum-sha256": b64encode(bytes.fromhex(sha256)).decode()}


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
