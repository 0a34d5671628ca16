"""Subscriptions and waiting mails as they are stored, and subscriptions as people see them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from service.http.schema import RequestModel, ResponseModel, Text, judged_by
from service.http.times import Moment, moment
from service.mail.rules import find_address_problem

MOST_AT_ONCE = 100


class SubscriptionStatus(StrEnum):
    """Whether somebody has confirmed the address."""

    PENDING = "PENDING"
    VERIFIED = "VERIFIED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """An address that gets mails of a page."""

    id: str
    page_id: str
    address: str
    status: SubscriptionStatus
    token_until_ms: int | None
    """Until when its link confirms it. None: no link is open."""
    created_ms: int
    updated_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingMail:
    """A mail that is to be sent."""

    id: int
    subscription: Subscription
    update_id: str | None
    """The update that it tells of. None: it asks for confirmation."""
    salt: bytes = field(repr=False)
    """What its link is made from; empty with an update."""
    attempts: int
    """How often it was tried, this time included."""
    created_ms: int


class NewSubscription(RequestModel):
    """A subscription in a request."""

    type: Literal["EMAIL"]
    """How the subscriber is notified."""
    config: Annotated[Text, Field(min_length=1), judged_by(find_address_problem)]
    """The mail address."""


class SubscriptionsWrite(RequestModel):
    """Subscriptions in a request."""

    subscriptions: Annotated[list[NewSubscription], Field(min_length=1, max_length=MOST_AT_ONCE)]
    """Each gets a mail with a link that confirms it."""


class SubscriptionShown(ResponseModel):
    """A subscription to a status page."""

    id: str
    type: Literal["EMAIL"]
    address: str
    status: SubscriptionStatus
    """PENDING: nobody has confirmed it yet, and it gets no mails of incidents."""
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment = Field(alias="updated_at")


class SubscriptionsCreated(ResponseModel):
    """What came of new subscriptions."""

    created: int
    skipped: int
    """Addresses that were subscribed before or came twice."""
    status: SubscriptionStatus
    """The status of those that were created."""


def render(row: Subscription) -> dict[str, Any]:
    """A subscription as its answer."""
    return SubscriptionShown(
        id=row.id,
        type="EMAIL",
        address=row.address,
        status=row.status,
        created_at=moment(row.created_ms),
        updated_at=moment(row.updated_ms),
    ).model_dump(mode="json")
