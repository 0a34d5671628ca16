"""Users as others see them."""

from dataclasses import dataclass, field
from typing import Final

from service.accounts.model import Role

LEAST_PASSWORD_LETTERS: Final = 12
"""NIST SP 800-63B asks for a length, and for no kinds of letters."""
MOST_PASSWORD_LETTERS: Final = 256
MOST_NAME_LETTERS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRow:
    """A user as people see them."""

    id: str
    account_id: str
    email: str
    name: str
    """Empty: none was given."""
    role: Role
    has_password: bool
    is_connected: bool
    """Whether they have signed in by OpenID Connect, and are known by their name there."""
    created_ms: int
    disabled_ms: int | None
    """None: may sign in."""
    signed_in_ms: int | None
    """None: never did."""

    @property
    def shown_name(self) -> str:
        """The name, or the address where there is none."""
        return self.name or self.email


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUser:
    """Who is to be added."""

    email: str
    name: str = ""
    role: Role = Role.READ_WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a sign-in with a password is checked against."""

    user: UserRow
    password_hash: str | None = field(repr=False)
    """None: no password was chosen."""
