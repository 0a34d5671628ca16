"""What URL and API checks see: the request, the answer, the way to it, and TLS."""

from datetime import datetime
from typing import Literal

from contract.wire import Milliseconds, Wire


class Certificate(Wire, frozen=True, kw_only=True):
    """One certificate of a chain."""

    subject: str
    issuer: str
    serial: str
    """Hexadecimal."""
    not_before: datetime
    not_after: datetime
    names: tuple[str, ...] = ()
    """DNS names and addresses that it speaks for."""
    fingerprint_sha256: str


class TlsFacts(Wire, frozen=True, kw_only=True):
    """What was seen of TLS."""

    version: str | None = None
    """As in TLSv1.3. None: the handshake did not get so far."""
    cipher: str | None = None
    """None: the handshake did not get so far."""
    verified: bool
    verify_error: str | None = None
    """Why the certificate is not trusted, with skipSSL too. None: it is, or none was seen."""
    days_to_expiry: float | None = None
    """Of the leaf certificate; negative when it has run out. None: no certificate was seen."""
    chain: tuple[Certificate, ...] = ()
    """Leaf first."""


class Hop(Wire, frozen=True, kw_only=True):
    """One answer on the way through redirects, the last one included."""

    url: str
    status_code: int
    location: str | None = None
    """Where it pointed. None: it did not."""
    remote_address: str | None = None
    """None: a proxy hid it."""
    total_ms: Milliseconds | None = None


class SentRequest(Wire, frozen=True, kw_only=True):
    """The first request as it was sent, after variables were filled in."""

    method: str
    url: str
    headers: dict[str, str] = {}
    body: str = ""


class SeenResponse(Wire, frozen=True, kw_only=True):
    """The last answer, body cut to what is stored."""

    status_code: int
    status_text: str = ""
    http_version: str = ""
    """As in 1.1, 2 or 3."""
    headers: dict[str, str] = {}
    """Lower case; repeats joined by ", ", of Content-Type and Location the first; no trailers."""
    body: str = ""
    body_encoding: Literal["utf-8", "base64"] = "utf-8"
    body_bytes: int = 0
    """Size as read, decoded."""
    truncated: bool = False
    """The stored body is a beginning of the one that was read, or reading stopped at the limit."""
    note: str | None = None
    """Why the body is not stored. None: it is."""


class HttpEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="http"):
    """What a URL or API check saw."""

    request: SentRequest
    response: SeenResponse | None = None
    """None: there was no answer."""
    hops: tuple[Hop, ...] = ()
    tls: TlsFacts | None = None
    """None: no TLS."""
    remote_address: str | None = None
    """None: no connection, or a proxy hid it."""
