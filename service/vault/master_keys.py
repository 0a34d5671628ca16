"""Master keys: 32 bytes each, in hex or base64, the current one first."""

import base64
import hashlib
import hmac
import re
import secrets
from typing import Final

KEY_BYTES: Final = 32
KEY_ID_BYTES: Final = 8
_NAME_OF: Final = b"picket: the id of this master key"
_BETWEEN: Final = re.compile(r"[\s,]+")
_URL_SAFE: Final = str.maketrans("-_", "+/")


def new_key() -> str:
    """A fresh key in hex."""
    return secrets.token_hex(KEY_BYTES)


def parse_keys(text: str) -> tuple[bytes, ...]:
    """The keys in a text, in order, each once.

    Raises:
        ValueError: with the rest of a sentence that holds no key.
    """
    words = [word for word in _BETWEEN.split(text) if word]
    if not words:
        raise ValueError("holds no key; create one with: openssl rand -hex 32")
    return tuple(dict.fromkeys(map(_parse_key, words)))


def key_id(key: bytes) -> bytes:
    """What tells a key from others, and nothing of it."""
    return hmac.digest(key, _NAME_OF, hashlib.sha256)[:KEY_ID_BYTES]


def _parse_key(word: str) -> bytes:
    for read in (bytes.fromhex, _from_base64):
        try:
            key = read(word)
        except ValueError:
            continue
        if len(key) == KEY_BYTES:
            return key
    raise ValueError(
        f"holds {len(word)} characters that are not 32 bytes in hex or base64; create a key with:"
        " openssl rand -hex 32"
    )


def _from_base64(word: str) -> bytes:
    whole = word.rstrip("=").translate(_URL_SAFE)
    return base64.b64decode(whole + "=" * (-len(whole) % 4), validate=True)
