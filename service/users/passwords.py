"""Passwords: hashed with argon2id (RFC 9106), off the event loop."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from service.http.errors import TooManyError
from service.users.model import MOST_PASSWORD_LETTERS
from service.users.rules import normalize_password

if TYPE_CHECKING:
    from argon2 import PasswordHasher

_AT_ONCE: Final = 2
"""A hash takes 64 MiB and a quarter of a second of a core: that is its purpose."""
_MOST_WAITING: Final = 40
_MOST_STRANGERS: Final = 30
"""The rest is kept for browsers that are known: a flood of guesses does not keep them out."""
_WAIT_S: Final = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a password is right."""

    is_right: bool
    renewed: str | None = None
    """The hash to store instead, by today's parameters. None: the stored one is good."""


class Passwords:
    """Hashes and checks passwords, a few at a time."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """What is stored of a password.

        Raises:
            TooManyError: too many others wait.
        """
        async with self._turn():
            return await asyncio.to_thread(hash_password, password)

    async def verify(
        self, stored: str | None, password: str, *, by_stranger: bool = False
    ) -> Verdict:
        """Check a password. None is right for nobody, and takes as long as a wrong one.

        Raises:
            TooManyError: too many others wait.
        """
        async with self._turn(_MOST_STRANGERS if by_stranger else _MOST_WAITING):
            return await asyncio.to_thread(verify_password, stored, password)

    @asynccontextmanager
    async def _turn(self, most: int = _MOST_WAITING) -> AsyncIterator[None]:
        if self._waiting >= most:
            raise TooManyError(
                f"Many people are signing in; try again in {_WAIT_S} s.",
                headers={"retry-after": str(_WAIT_S)},
            )
        self._waiting += 1
        try:
            async with self._free:
                yield
        finally:
            self._waiting -= 1


def hash_password(password: str) -> str:
    """What is stored of a password; it takes a quarter of a second."""
    return _hasher().hash(normalize_password(password))


def verify_password(stored: str | None, password: str) -> Verdict:
    """Check a password against what is stored of it; None is right for nobody."""
    from argon2.exceptions import InvalidHashError, VerificationError  # noqa: PLC0415 - see _hasher

    hasher = _hasher()
    if len(password) > MOST_PASSWORD_LETTERS:
        stored, password = None, ""  # nobody has chosen it, and to normalize it may take long
    try:
        hasher.verify(stored or _decoy(), normalize_password(password))
    except (VerificationError, InvalidHashError):
        return Verdict(is_right=False)
    if stored is None:
        return Verdict(is_right=False)
    renewed = hash_password(password) if hasher.check_needs_rehash(stored) else None
    return Verdict(is_right=True, renewed=renewed)


@cache
def _hasher() -> "PasswordHasher":
    """Made when somebody first signs in with a password: the service starts without it."""
    from argon2 import PasswordHasher  # noqa: PLC0415 - the reason stands above

    return PasswordHasher()


@cache
def _decoy() -> str:
    """A hash that no password has, checked where there is none, so that a refusal tells nothing."""
    hasher = _hasher()
    salt, digest = (
        b64encode(bytes(length)).decode().rstrip("=")
        for length in (hasher.salt_len, hasher.hash_len)
    )
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${costs}${salt}${digest}"
