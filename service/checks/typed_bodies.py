"""All bodies together, and those that say their type themselves, for the path that takes any."""

from typing import Annotated, Literal

from pydantic import Field

from service.checks.bodies import (
    ApiCheckWrite,
    DnsCheckWrite,
    HeartbeatCheckWrite,
    IcmpCheckWrite,
    TcpCheckWrite,
    UrlCheckWrite,
)
from service.checks.script_bodies import (
    AgenticCheckWrite,
    BrowserCheckWrite,
    MultiStepCheckWrite,
    PlaywrightCheckWrite,
)

AnyCheckWrite = (
    UrlCheckWrite
    | ApiCheckWrite
    | TcpCheckWrite
    | DnsCheckWrite
    | IcmpCheckWrite
    | HeartbeatCheckWrite
    | BrowserCheckWrite
    | MultiStepCheckWrite
    | PlaywrightCheckWrite
    | AgenticCheckWrite
)


class TypedApiCheck(ApiCheckWrite):
    """An API check."""

    check_type: Literal["API"]


class TypedUrlCheck(UrlCheckWrite):
    """A URL monitor."""

    check_type: Literal["URL"]


class TypedTcpCheck(TcpCheckWrite):
    """A TCP monitor."""

    check_type: Literal["TCP"]


class TypedDnsCheck(DnsCheckWrite):
    """A DNS monitor."""

    check_type: Literal["DNS"]


class TypedIcmpCheck(IcmpCheckWrite):
    """An ICMP monitor."""

    check_type: Literal["ICMP"]


class TypedHeartbeatCheck(HeartbeatCheckWrite):
    """A heartbeat monitor."""

    check_type: Literal["HEARTBEAT"]


class TypedBrowserCheck(BrowserCheckWrite):
    """A browser check."""

    check_type: Literal["BROWSER"]


class TypedMultiStepCheck(MultiStepCheckWrite):
    """A multi-step check."""

    check_type: Literal["MULTI_STEP"]


class TypedPlaywrightCheck(PlaywrightCheckWrite):
    """A Playwright suite."""

    check_type: Literal["PLAYWRIGHT"]


class TypedAgenticCheck(AgenticCheckWrite):
    """A goal in plain words."""

    check_type: Literal["AGENTIC"]


TypedCheck = Annotated[
    TypedApiCheck
    | TypedUrlCheck
    | TypedTcpCheck
    | TypedDnsCheck
    | TypedIcmpCheck
    | TypedHeartbeatCheck
    | TypedBrowserCheck
    | TypedMultiStepCheck
    | TypedPlaywrightCheck
    | TypedAgenticCheck,
    Field(discriminator="check_type"),
]
