"""Keys: 256 random bits behind a prefix that says what they open; stored only as a digest."""

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Final

USER_PREFIX: Final = "cu_"
SERVICE_PREFIX: Final = "sv_"
LOCATION_PREFIX: Final = "pl_"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key at the only moment at which it is known."""

    raw: str = field(repr=False)
    """The secret; shown once, never stored."""
    digest: bytes
    masked: str
    """Enough to tell keys apart, as in pl_****f3Qx."""


def new_key(prefix: str) -> NewKey:
    """A fresh key with this prefix."""
    return as_key(prefix + secrets.token_urlsafe(32))


def as_key(raw: str) -> NewKey:
    """A key that somebody chose beforehand; its prefix is whatever ends at the first `_`."""
    return NewKey(raw=raw, digest=digest(raw), masked=f"{raw.partition('_')[0]}_****{raw[-4:]}")


def digest(raw: str) -> bytes:
    """What is stored of a key and looked up by it.

    A plain SHA-256: a slow hash guards guessable passwords, and 256 random bits are none.
    """
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).digest()
