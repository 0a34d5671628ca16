"""Who looks at the pages, and how a browser stays signed in."""

from dataclasses import dataclass, field
from typing import Final

from service.accounts.model import Caller

SESSION_MS: Final = 12 * 3_600_000
"""How long a browser stays signed in after its last request."""
LONGEST_SESSION_MS: Final = 7 * 86_400_000
"""How long it stays signed in at most."""
LINK_MS: Final = 24 * 3_600_000
"""How long a sign-in link is good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who signs in: an API key or a user, exactly one of both."""

    key_id: str | None = None
    """None: a user."""
    user_id: str | None = None
    """None: an API key."""

    @classmethod
    def of_caller(cls, caller: Caller) -> "Principal":
        """Who signed in as this caller."""
        return cls(key_id=caller.key_id, user_id=caller.user_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody who is signed in."""

    caller: Caller
    """For whom operations of the API are carried out."""
    account_name: str
    name: str
    """The name of the user, or of the API key, with which the visitor signed in."""
    email: str | None
    """None: it was an API key."""
    session: bytes = field(repr=False)
    """The keyed hash by which the session is stored."""
    csrf: str = field(repr=False)
    """The token without which no form of this session is accepted."""
    is_stale: bool
    """Whether the session should be extended: it was not for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """A session at the only moment at which its secret is known."""

    raw: str = field(repr=False)
    """What the browser keeps."""
