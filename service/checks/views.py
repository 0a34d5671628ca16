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
from service.checks.fields import ApiAssertion, Joined, KeyValue, TagText
from service.checks.model import CheckRow
from service.checks.requests import ApiRequest, Heartbeat
from service.checks.script_bodies import (
    AgenticCheckWrite,
    BrowserCheckWrite,
    MultiStepCheckWrite,
    PlaywrightCheckWrite,
)
from service.checks.sealing import opened, readable
from service.http.errors import UnreadableError
from service.http.strict import Shown
from service.http.times import spelled
from service.variables.views import Sight, shown_doc
from service.variables.views import compared as variable
from service.vault.sealing import UnsealableError, Vault


class AlertChannels(Shown):
    """The channels that get alerts of the check, by kind; empty while there are none."""

    email: list[dict[str, str]] = Field(default_factory=list)
    webhook: list[dict[str, Any]] = Field(default_factory=list)
    slack: list[dict[str, str]] = Field(default_factory=list)
    sms: list[dict[str, str]] = Field(default_factory=list)


class CheckShown(CheckWrite):
    """What every check has beside what was written."""

    tags: Joined[TagText] = Field(default_factory=list)
    id: str
    """The id of the check."""
    created_at: datetime = Field(alias="created_at")
    """When it was created."""
    updated_at: datetime | None = Field(alias="updated_at")
    """When it was last replaced. Null: never."""
    alert_channels: AlertChannels
    """The channels that get its alerts."""


class ApiRequestShown(ApiRequest):
    """The request of an API check, perhaps with what its group adds."""

    headers: Joined[KeyValue] = Field(default_factory=list)
    query_parameters: Joined[KeyValue] = Field(default_factory=list)
    assertions: Joined[ApiAssertion] = Field(default_factory=list)


class ApiCheckShown(CheckShown, ApiCheckWrite):
    """An API check."""

    request: ApiRequestShown
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
_WITH_VARIABLES: Final = frozenset({"API", "URL", "BROWSER", "MULTI_STEP", "PLAYWRIGHT"})


def shown(
    row: CheckRow, *, base_url: str, sight: Sight, as_it_runs: bool = False
) -> dict[str, Any]:
    """A stored check, read with its variables, as its answer; what is not shown is not opened.

    `as_it_runs`: with its group's settings in the place of what it left open.

    Raises:
        UnreadableError: a secret is to be shown, and does not open.
    """
    seen = _seen(row, sight)
    doc = seen.effective if as_it_runs else seen.doc
    if not sight.may_write:
        doc = _for_readers(doc)
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
    """All of a check, its secrets too: to tell what a change changed, and never for an answer.

    Secrets that do not open are like no other, so that whatever takes their place is a change.
    """
    variables = [variable(one, vault) for one in row.variables]
    bare = replace(_opened(row, vault), variables=())
    whole = shown(bare, base_url=base_url, sight=Sight(vault, may_write=True))
    return {**whole, "environmentVariables": variables}


def _seen(row: CheckRow, sight: Sight) -> CheckRow:
    if not sight.may_write:
        return row
    try:
        return readable(row, sight.vault)
    except UnreadableError:
        if sight.hides_unreadable:
            return row
        raise


def _for_readers(doc: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is stored in clear, without what else opens a door: pings change states."""
    if "heartbeat" not in doc:
        return doc
    return {**doc, "heartbeat": {**doc["heartbeat"], "pingToken": ""}}


def _opened(row: CheckRow, vault: Vault) -> CheckRow:
    try:
        return opened(row, vault)
    except UnsealableError:
        return replace(row, doc={**row.doc, "request": None}, secrets=None)


def _with_ping_url(heartbeat: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    token = heartbeat["pingToken"]
    url = f"{base_url}/ping/{token}" if token else ""
    return {"heartbeat": {**heartbeat, "pingUrl": url}, "pingUrl": url}
