"""Keys: 256 random bits behind a prefix that says what they open; stored only as a keyed hash."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final

USER_PREFIX: Final = "cu_"
SERVICE_PREFIX: Final = "sv_"
LOCATION_PREFIX: Final = "pl_"
_MARK_OF: Final = b"picket: the pepper of this database's keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key at the only moment at which it is known."""

    raw: str = field(repr=False)
    """The secret; shown once, never stored."""
    digest: bytes
    """What is stored of it."""
    masked: str
    """Enough to tell keys apart, as in pl_****f3Qx."""


@dataclass(frozen=True, slots=True)
class Pepper:
    """The secret without which nobody can tell which key a stored hash belongs to.

    It lies outside of the database, so that whoever has a copy of that cannot try keys against it.
    """

    secret: bytes = field(repr=False)

    def new_key(self, prefix: str) -> NewKey:
        """A fresh key with this prefix."""
        return self.as_key(make_raw_key(prefix))

    def as_key(self, raw: str) -> NewKey:
        """A key that somebody chose beforehand; its prefix is whatever ends at the first `_`."""
        masked = f"{raw.partition('_')[0]}_****{raw[-4:]}"
        return NewKey(raw=raw, digest=self.keyed(digest_key(raw)), masked=masked)

    def keyed(self, plain: bytes) -> bytes:
        """What is stored of a key with this digest, and looked up by it."""
        return hmac.digest(self.secret, plain, "sha256")

    def mark(self) -> bytes:
        """By what a database knows its pepper, which it does not hold."""
        return self.keyed(_MARK_OF)


def make_raw_key(prefix: str) -> str:
    """The raw form of a new key."""
    return prefix + secrets.token_urlsafe(32)


def digest_key(raw: str) -> bytes:
    """By what a key is known while the service runs; asked for at every request.

    A plain SHA-256: a slow hash guards guessable passwords, and 256 random bits are none.
    """
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).digest()
