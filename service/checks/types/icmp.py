"""ICMP monitors in the API."""

from typing import Annotated, Any, Literal

from pydantic import Field

from contract.checks import CheckType
from contract.result import IcmpEvidence, Outcome
from service.analytics.measures import PINGS, Analytics
from service.checks.fields import (
    AnyComparison,
    AssertionWrite,
    Family,
    Hostname,
    Listing,
    Percentage,
)
from service.checks.schemas import MinuteCheckWrite
from service.checks.types.definition import PLACES, TypeDefinition
from service.http.schema import JsonNumber, RequestModel


class IcmpAssertion(AssertionWrite):
    """What an ICMP monitor can assert."""

    kind = CheckType.ICMP
    source: Literal["LATENCY", "JSON_RESPONSE"]
    comparison: AnyComparison


class IcmpRequest(RequestModel):
    """ICMP echo requests to a host."""

    hostname: Hostname
    """A host name or an IP address."""
    ip_family: Family = "IPv4"
    """The version of the Internet Protocol."""
    ping_count: Annotated[int, Field(ge=1, le=50), JsonNumber] = 10
    """How many echo requests are sent."""
    assertions: Listing[IcmpAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""


class IcmpCheckWrite(MinuteCheckWrite):
    """An ICMP monitor, judged by packet loss in percent."""

    kind = CheckType.ICMP
    request: IcmpRequest
    """What is pinged and asserted."""
    degraded_packet_loss_threshold: Percentage = 10
    """With this percentage of lost packets or more, a result is degraded."""
    max_packet_loss_threshold: Percentage = 20
    """With this percentage of lost packets or more, a result fails."""


def render_echoes(outcome: Outcome) -> dict[str, Any]:
    """What was pinged, and what came back; without a reply there are no latencies to print."""
    seen = outcome.evidence
    if not isinstance(seen, IcmpEvidence):
        return {}
    response = {
        "resolvedIp": seen.resolved_ip,
        "packetsSent": seen.packets_sent,
        "packetsReceived": seen.packets_received,
        "latency": {name: seen.latency.get(name, 0) for name in ("min", "max", "avg", "stdDev")},
        "pingResults": [
            {"sequence": one.sequence, "success": one.success, "ttl": one.ttl, "rtt": one.rtt_ms}
            for one in seen.echoes
        ],
    }
    return {
        "request": {
            "hostname": seen.hostname,
            "targetIp": seen.resolved_ip,
            "ipFamily": seen.ip_family,
            "pingCount": seen.packets_sent,
        },
        "response": response if seen.latency else None,
    }


ICMP = TypeDefinition(
    write=IcmpCheckWrite,
    purpose="Pings a host and judges lost packets and latency.",
    example={"name": "Router", "request": {"hostname": "10.0.0.1", "pingCount": 10}, **PLACES},
    analytics=Analytics(path="icmp", measures=PINGS),
    render_seen=render_echoes,
)
