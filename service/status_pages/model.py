"""Status pages, their cards, keys and services as they are stored; services as people see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from service.http.schema import RequestModel, ResponseModel, Text
from service.http.times import Moment, moment, optional_moment

KEY_PREFIX = "sp_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRow:
    """A service as it is stored."""

    id: str
    account_id: str
    name: str
    created_ms: int
    updated_ms: int | None
    """None: never changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A group of services on a page."""

    id: str
    name: str
    created_ms: int
    updated_ms: int | None
    """None: never changed."""
    services: tuple[ServiceRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageKey:
    """A key of a private page; the key itself is not stored."""

    id: str
    masked: str
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPage:
    """A status page as it is stored."""

    id: str
    account_id: str
    name: str
    url: str
    """The last part of its address; unique in the whole installation."""
    custom_domain: str | None
    """None: it has none."""
    is_private: bool
    look: Mapping[str, Any]
    """Description, logo, theme and the like, as they are shown."""
    created_ms: int
    updated_ms: int | None
    """None: never changed."""
    cards: tuple[Card, ...]
    keys: tuple[PageKey, ...]

    def list_services(self) -> list[ServiceRow]:
        """The services of all cards, each once."""
        return list({one.id: one for card in self.cards for one in card.services}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Maintenance that a status page announces."""

    name: str
    service_ids: tuple[str, ...]
    """The services of the page that it concerns."""
    begins_ms: int
    ends_ms: int


class ServiceWrite(RequestModel):
    """A service of status pages in a request."""

    name: Annotated[Text, Field(min_length=1, max_length=255)]
    """The name that visitors read."""


class ServiceShown(ResponseModel):
    """A service of status pages."""

    name: str
    id: str
    account_id: str
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment | None = Field(alias="updated_at")
    """Null: never changed."""


class ServiceList(ResponseModel):
    """A part of the list of services."""

    length: int
    """How many entries this part has."""
    entries: list[ServiceShown]
    next_id: str | None
    """What to send as `nextId` for the next part. Null: this is the last one."""


def render_service(row: ServiceRow) -> ServiceShown:
    """A stored service as its answer."""
    return ServiceShown(
        name=row.name,
        id=row.id,
        account_id=row.account_id,
        created_at=moment(row.created_ms),
        updated_at=optional_moment(row.updated_ms),
    )
