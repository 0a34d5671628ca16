"""What is noted of a change: names, never values."""

from dataclasses import dataclass

from service.notices import GatheredNotice


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change; also the notice that it is committed."""

    account_id: str
    key_id: str | None
    """The API key that asked for it. None: a user, a link, or the service's own machine."""
    user_id: str | None = None
    """The user who asked for it. None: an API key, a link, or the service's own machine."""
    operation: str
    """The id of the operation in the OpenAPI document, or the name of a command."""
    resource: str
    """The kind of the thing, spelled as in the path: `checks`."""
    resource_id: str | None
    """None: several, or none."""
    fields: tuple[str, ...]
    """The names of those that were set or changed."""
    address: str | None
    """None: not known."""
    at_ms: int


@dataclass(frozen=True, slots=True)
class AccountsChanged(GatheredNotice):
    """Notice: something of these accounts was changed."""
