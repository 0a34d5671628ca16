"""How the identity provider is used, and what it says of somebody."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.accounts.model import Role
from service.http.errors import ApiError, ForbiddenError


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """What the operator has set."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    """None: a public client, which is known by its redirect URL alone."""
    domains: tuple[str, ...] = ()
    """Domains of mail addresses whose people may sign in. Empty: of all."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """By group of the provider. Empty: groups say nothing."""
    groups_claim: str = "groups"
    """In which claim groups are."""

    @property
    def adds_users(self) -> bool:
        """Whether somebody whom nobody added becomes a user by signing in."""
        return bool(self.domains or self.roles)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcIdentity:
    """What the provider says of somebody."""

    issuer: str
    subject: str
    email: str | None
    """None: it says none, or has not verified it."""
    name: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginAttempt:
    """What is remembered between the way to the provider and the way back."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    """The secret of PKCE (RFC 7636)."""
    path: str
    """Where to go once signed in."""
    expires_ms: int


class OidcFailedError(ApiError):
    """502: the provider could not be asked, or what it said cannot be trusted."""

    status = 502


class OidcRefusedError(ForbiddenError):
    """403: the provider knows who it is, and they may not sign in here."""
