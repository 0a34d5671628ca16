"""Who speaks, what a first start hands out, and what people see of accounts and keys."""

from dataclasses import dataclass, field
from enum import StrEnum

from service.notices import SharedNotice


class Role(StrEnum):
    """What a key may do."""

    READ_ONLY = "READ_ONLY"
    """Read."""
    READ_WRITE = "READ_WRITE"
    """Read, change, and run checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whom a request speaks for: an API key, or a user who is signed in."""

    account_id: str
    key_id: str | None = None
    """None: a user."""
    user_id: str | None = None
    """None: an API key."""
    role: Role = Role.READ_WRITE

    @property
    def id(self) -> str:
        """Under which requests are counted."""
        return self.user_id or self.key_id or self.account_id

    @property
    def may_write(self) -> bool:
        """Whether the caller changes things, and sees what is locked."""
        return self.role is Role.READ_WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """An account as it is stored."""

    id: str
    name: str
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """An API key as people see it."""

    id: str
    account_id: str
    name: str
    role: Role
    masked: str
    created_ms: int
    revoked_ms: int | None
    """None: it is good."""
    used_ms: int | None
    """When it was last used, to a minute. None: not since this is noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSecrets:
    """What a first start made; the secrets are shown once and are stored nowhere."""

    account_id: str
    api_key: str = field(repr=False)
    location_id: str
    location_slug: str
    location_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenKeys:
    """Keys that automation chose beforehand for a first start."""

    api_key: str | None = field(default=None, repr=False)
    """None: one is made."""
    location_key: str | None = field(default=None, repr=False)
    """None: as above."""


@dataclass(frozen=True, slots=True)
class ApiKeyEnded(SharedNotice):
    """Notice: the key opens nothing any more."""

    key_id: str


class WrongPepperError(Exception):
    """The database's keys were stored with another pepper: none of them would open anything."""
