"""Who speaks, and what a first start hands out."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whom a request's API key speaks for."""

    account_id: str
    key_id: str


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
class ApiKeyEnded:
    """Notice: the key opens nothing any more."""

    key_id: str
