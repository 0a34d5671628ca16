"""Checks as the API shows them: what was written, every default filled in, and what we know."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from service.checks.bodies import (
    ApiCheckWrite,
    BrowserCheckWrite,
    CheckWrite,
    DnsCheckWrite,
    HeartbeatCheckWrite,
    IcmpCheckWrite,
    MultiStepCheckWrite,
    PlaywrightCheckWrite,
    TcpCheckWrite,
    UrlCheckWrite,
)
from service.checks.model import CheckRow
from service.checks.requests import Heartbeat
from service.http.strict import Shown
from service.http.times import spelled


class AlertChannels(Shown):
    """The channels that hear of the check, by kind; empty as long as there are no channels."""

    email: list[dict[str, str]] = Field(default_factory=list)
    webhook: list[dict[str, Any]] = Field(default_factory=list)
    slack: list[dict[str, str]] = Field(default_factory=list)
    sms: list[dict[str, str]] = Field(default_factory=list)


class CheckShown(CheckWrite):
    """What every check has beside what was written."""

    id: str
    created_at: datetime = Field(alias="created_at")
    updated_at: datetime | None = Field(alias="updated_at")
    alert_channels: AlertChannels


class ApiCheckShown(CheckShown, ApiCheckWrite):
    """An API check."""

    check_type: Literal["API"]


class UrlCheckShown(CheckShown, UrlCheckWrite):
    """A URL monitor."""

    check_type: Literal["URL"]


class TcpCheckShown(CheckShown, TcpCheckWrite):
    """A TCP monitor."""

    check_type: Literal["TCP"]


class DnsCheckShown(CheckShown, DnsCheckWrite):
    """A DNS monitor."""

    check_type: Literal["DNS"]


class IcmpCheckShown(CheckShown, IcmpCheckWrite):
    """An ICMP monitor."""

    check_type: Literal["ICMP"]


class HeartbeatShown(Heartbeat):
    """When pings are expected, and where."""

    ping_url: str
    """GET or POST this address."""


class HeartbeatCheckShown(CheckShown, HeartbeatCheckWrite):
    """A heartbeat monitor."""

    check_type: Literal["HEARTBEAT"]
    heartbeat: HeartbeatShown
    ping_url: str
    """The same as in `heartbeat`, where clients of either habit find it."""


class BrowserCheckShown(CheckShown, BrowserCheckWrite):
    """A browser check."""

    check_type: Literal["BROWSER"]


class MultiStepCheckShown(CheckShown, MultiStepCheckWrite):
    """A multi-step check."""

    check_type: Literal["MULTI_STEP"]


class PlaywrightCheckShown(CheckShown, PlaywrightCheckWrite):
    """A Playwright suite."""

    check_type: Literal["PLAYWRIGHT"]


AnyCheckShown = (
    ApiCheckShown
    | UrlCheckShown
    | TcpCheckShown
    | DnsCheckShown
    | IcmpCheckShown
    | HeartbeatCheckShown
    | BrowserCheckShown
    | MultiStepCheckShown
    | PlaywrightCheckShown
)
"""For the OpenAPI document; `shown` makes the values, which were validated when written."""


def shown(row: CheckRow, *, base_url: str) -> dict[str, Any]:
    """A stored check as its answer."""
    answer: dict[str, Any] = {
        "id": row.id,
        "checkType": row.type,
        **row.doc,
        "alertChannels": AlertChannels().model_dump(),
        "created_at": spelled(row.created_ms),
        "updated_at": spelled(row.updated_ms),
    }
    if row.type == "HEARTBEAT":
        answer.update(_with_ping_url(row.doc["heartbeat"], base_url))
    return answer


def _with_ping_url(heartbeat: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    url = f"{base_url}/ping/{heartbeat['pingToken']}"
    return {"heartbeat": {**heartbeat, "pingUrl": url}, "pingUrl": url}
