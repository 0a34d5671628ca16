"""What is noted of a change: names, never values."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

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


class Kind(StrEnum):
    """What an entry can be about that has a name."""

    CHECK = "check"
    GROUP = "group"
    LOCATION = "location"
    CHANNEL = "channel"
    WINDOW = "window"
    SNIPPET = "snippet"
    CERTIFICATE = "certificate"
    STATUS_PAGE = "status page"
    SERVICE = "service"
    INCIDENT = "incident"
    UPDATE = "update"
    """What visitors are told of an incident; it has no name but that one's."""


class Thing(NamedTuple):
    """Something that an entry is about, and that is still there."""

    kind: Kind
    id: str
    name: str
    """Empty for a channel: its settings say what people call it."""
    page_id: str
    """The id of what has a page: an update is shown by its incident."""
