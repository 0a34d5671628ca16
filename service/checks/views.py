"""Checks as the API shows them: what was written, every default filled in, and what we know."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import Field

from service.checks.bodies import (
    ApiCheckWrite,
    CheckWrite,
    DnsCheckWrite,
    HeartbeatCheckWrite,
    IcmpCheckWrite,
    TcpCheckWrite,
    UrlCheckWrite,
)
from service.checks.model import CheckRow
from service.checks.requests import Heartbeat
from service.checks.script_bodies import (
    AgenticCheckWrite,
    BrowserCheckWrite,
    MultiStepCheckWrite,
    PlaywrightCheckWrite,
)
from service.http.strict import Shown
from service.http.times import spelled
from service.variables.views import Sight, shown_doc
from service.variables.views import compared as variable
from service.vault.sealing import Vault
from service.vault.texts import without_credentials


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
    """GET or POST this address. Empty for keys that only read."""


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


class AgenticCheckShown(CheckShown, AgenticCheckWrite):
    """A goal in plain words."""

    check_type: Literal["AGENTIC"]


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
    | AgenticCheckShown
)
"""For the OpenAPI document; `shown` makes the values, which were validated when written."""
_PAIRS: Final = ("headers", "queryParameters")
_WITH_VARIABLES: Final = frozenset({"API", "URL", "BROWSER", "MULTI_STEP", "PLAYWRIGHT"})


def with_group(row: CheckRow) -> CheckRow:
    """The check with its group's settings in the place of what it left open."""
    return replace(row, doc=row.effective)


def shown(row: CheckRow, *, base_url: str, sight: Sight) -> dict[str, Any]:
    """A stored check, read with its variables, as its answer."""
    doc = row.doc if sight.may_write else _for_readers(row.doc)
    answer: dict[str, Any] = {
        "id": row.id,
        "checkType": row.type,
        **doc,
        "alertChannels": AlertChannels().model_dump(),
        "created_at": spelled(row.created_ms),
        "updated_at": spelled(row.updated_ms),
    }
    if row.type in _WITH_VARIABLES:
        answer["environmentVariables"] = [shown_doc(one, sight) for one in row.variables]
    if row.type == "HEARTBEAT":
        answer.update(_with_ping_url(doc["heartbeat"], base_url))
    return answer


def compared(row: CheckRow, *, base_url: str, vault: Vault) -> dict[str, Any]:
    """All of a check, its secrets too: to tell what a change changed, and never for an answer."""
    variables = [variable(one, vault) for one in row.variables]
    bare = replace(row, variables=())
    whole = shown(bare, base_url=base_url, sight=Sight(vault, may_write=True))
    return {**whole, "environmentVariables": variables}


def _for_readers(doc: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was written, without what opens a door: pings change states, too."""
    found = dict(doc)
    if "request" in doc:
        found["request"] = request_for_readers(doc["request"])
    if "heartbeat" in doc:
        found["heartbeat"] = {**doc["heartbeat"], "pingToken": ""}
    return found


def request_for_readers(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """A check's request, or what a group adds to it, for keys that only read."""
    found: dict[str, Any] = {
        name: [_unlocked(one) for one in request[name]] for name in _PAIRS if name in request
    }
    if credentials := request.get("basicAuth"):
        found["basicAuth"] = {**credentials, "password": ""}
    if url := request.get("url"):
        found["url"] = without_credentials(url)
    return {**request, **found}


def _unlocked(pair: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**pair, "value": ""} if pair.get("locked") else pair


def _with_ping_url(heartbeat: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    token = heartbeat["pingToken"]
    url = f"{base_url}/ping/{token}" if token else ""
    return {"heartbeat": {**heartbeat, "pingUrl": url}, "pingUrl": url}
