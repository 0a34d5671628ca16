"""What a browser keeps between the way to the provider and the way back.

It is authenticated by the service's pepper, and the secret of PKCE in it is of use to nobody who
has not also the code that the provider sends to this browser alone.
"""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Final

import msgspec

from service.accounts.keys import Pepper
from service.oidc.model import LoginAttempt

ATTEMPT_MS: Final = 600_000
"""How long somebody may take at the provider."""
_SEAL: Final = b"picket: on the way to an OpenID provider "
_SECRET_BYTES: Final = 32


def new_attempt(path: str, *, now_ms: int) -> LoginAttempt:
    """A sign-in that begins now and leads to this path."""
    return LoginAttempt(
        state=secrets.token_urlsafe(_SECRET_BYTES),
        nonce=secrets.token_urlsafe(_SECRET_BYTES),
        verifier=secrets.token_urlsafe(_SECRET_BYTES),
        path=path,
        expires_ms=now_ms + ATTEMPT_MS,
    )


def challenge_of(attempt: LoginAttempt) -> str:
    """What the provider is told of the secret of PKCE: its SHA-256 (RFC 7636, 4.2)."""
    digest = sha256(attempt.verifier.encode()).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def write_attempt(pepper: Pepper, attempt: LoginAttempt) -> str:
    """An attempt as a cookie's value."""
    payload = urlsafe_b64encode(msgspec.json.encode(attempt)).decode()
    return f"{payload}.{_seal(pepper, payload)}"


def read_attempt(pepper: Pepper, text: str, *, now_ms: int) -> LoginAttempt | None:
    """The attempt of a cookie. None: it is none of ours, or too old."""
    payload, _, seal = text.rpartition(".")
    if not hmac.compare_digest(seal.encode(), _seal(pepper, payload).encode()):
        return None
    attempt = msgspec.json.decode(urlsafe_b64decode(payload), type=LoginAttempt)
    return attempt if attempt.expires_ms > now_ms else None


def _seal(pepper: Pepper, payload: str) -> str:
    return pepper.keyed(_SEAL + payload.encode()).hex()
