"""Encrypts and decrypts what is secret."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from service.http.errors import UnreadableError
from service.locations.regions import NO_REGIONS, RegionLocations
from service.vault.master_keys import KEY_ID_BYTES, key_id

_VERSION: Final = b"\1"
VERSION_BYTE: Final = _VERSION[0]
"""The first byte of an encrypted value; no text of ours begins with it."""
HEAD_BYTES: Final = len(_VERSION) + KEY_ID_BYTES
"""An encrypted value begins with its version and the id of its key."""
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
OVERHEAD_BYTES: Final = HEAD_BYTES + _NONCE_BYTES + _TAG_BYTES
"""How many bytes longer an encrypted value is than its text."""

RowT = TypeVar("RowT")
Place = tuple[str, ...]
"""Where a value belongs: table, account, and what names its row and column there."""


class DecryptionError(Exception):
    """A stored value was changed, moved, or encrypted with an unknown key."""


class Vault:
    """Seals with the first of its keys, and opens with all of them."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        ciphers = {_VERSION + key_id(key): AESGCM(key) for key in keys}
        self._ciphers: Final = ciphers
        self._head: Final = next(iter(ciphers))

    def __repr__(self) -> str:
        return f"Vault({', '.join(head[1:].hex() for head in self._ciphers)})"

    def encrypt(self, text: str, place: Place) -> bytes:
        """The text, readable with this vault and at this place only."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._head].encrypt(
            nonce, text.encode(), _associated_data(self._head, place)
        )
        return self._head + nonce + sealed

    def decrypt(self, sealed: bytes, place: Place) -> str:
        """The text that was encrypted for this place.

        Raises:
            DecryptionError: nothing was, or not with a key of this vault.
        """
        head, nonce = sealed[:HEAD_BYTES], sealed[HEAD_BYTES : HEAD_BYTES + _NONCE_BYTES]
        cipher = self._ciphers.get(head)
        if cipher is None:
            raise DecryptionError("it was encrypted with a key that this vault does not have")
        try:
            text = cipher.decrypt(
                nonce, sealed[HEAD_BYTES + _NONCE_BYTES :], _associated_data(head, place)
            )
        except (InvalidTag, ValueError) as problem:
            raise DecryptionError("it was changed, or belongs somewhere else") from problem
        return text.decode()

    def knows(self, head: bytes) -> bool:
        """Whether what begins like this was encrypted with a key of this vault."""
        return head in self._ciphers

    def is_current(self, head: bytes) -> bool:
        """Whether what begins like this was encrypted with the current key."""
        return head == self._head


def _associated_data(head: bytes, place: Place) -> bytes:
    return head + msgspec.json.encode(place)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose things are changed, when, and by what."""

    account_id: str
    now_ms: int
    vault: Vault
    """Encrypts their secrets."""
    regions: RegionLocations = NO_REGIONS
    """Where checks that name a region run."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who is shown stored values, and the vault that decrypts them."""

    vault: Vault
    may_write: bool
    """Whether locked values are shown."""
    hides_unreadable: bool = False
    """Whether a value that cannot be decrypted is shown as `HIDDEN`, instead of being refused."""

    @classmethod
    def writer(cls, vault: Vault) -> "Viewer":
        """The viewer of an answer to a change."""
        return cls(vault, may_write=True)

    @property
    def hiding(self) -> "Viewer":
        """The viewer of a list, in which one unreadable item must not hide the others."""
        return replace(self, hides_unreadable=True)

    def reveal(self, stored: RowT, decrypt: Callable[[RowT, Vault], RowT]) -> RowT:
        """What is stored, decrypted if this viewer is shown it.

        Raises:
            UnreadableError: it cannot be decrypted.
        """
        if not self.may_write:
            return stored
        try:
            return decrypt(stored, self.vault)
        except UnreadableError:
            if self.hides_unreadable:
                return stored
            raise
