"""DNS monitors in the API."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from contract.checks import CheckType
from contract.result import DnsEvidence, Outcome
from contract.targets import dns_name_problem, hostname_problem
from service.analytics.measures import TOTAL, Analytics
from service.checks.fields import AnyComparison, AssertionWrite, Listing, PortNumber, ShortThreshold
from service.checks.schemas import MinuteCheckWrite
from service.checks.types.definition import PLACES, TypeDefinition
from service.http.schema import RequestModel, Text, blank_is_none, field_error, judged_by


class DnsAssertion(AssertionWrite):
    """What a DNS monitor can assert."""

    kind = CheckType.DNS
    source: Literal["RESPONSE_TIME", "RESPONSE_CODE", "TEXT_ANSWER", "JSON_ANSWER"]
    comparison: AnyComparison


class DnsRequest(RequestModel):
    """One DNS question."""

    record_type: Literal[
        "A",
        "AAAA",
        "CNAME",
        "MX",
        "TXT",
        "SOA",
        "NS",
        "CAA",
        "DNSKEY",
        "DS",
        "HTTPS",
        "NAPTR",
        "PTR",
        "SRV",
        "SVCB",
        "TLSA",
    ]
    """The type of the queried records."""
    query: Annotated[Text, Field(min_length=1, max_length=253), judged_by(dns_name_problem)]
    """The queried name."""
    name_server: Annotated[
        Annotated[Text, Field(max_length=253), judged_by(hostname_problem)] | None,
        BeforeValidator(blank_is_none),
    ] = None
    """Host or address of the name server. Null: the agent's default resolvers."""
    port: PortNumber | None = None
    """The port of the name server. Null: 53."""
    protocol: Literal["UDP", "TCP"] = "UDP"
    """How the question is sent."""
    assertions: Listing[DnsAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""

    @model_validator(mode="after")
    def _port_has_a_server(self) -> "DnsRequest":
        if self.port is not None and not self.name_server:
            raise field_error("port", "is given without nameServer; give both or neither")
        return self


class DnsCheckWrite(MinuteCheckWrite):
    """A DNS monitor."""

    kind = CheckType.DNS
    request: DnsRequest
    """What is queried and asserted."""
    degraded_response_time: ShortThreshold | None = 500
    """Milliseconds after which a result is degraded. Null: never."""
    max_response_time: ShortThreshold | None = 1000
    """Milliseconds after which a result fails. Null: never."""


def render_answer(outcome: Outcome) -> dict[str, Any]:
    """What was asked, of which name server, and what it answered."""
    seen = outcome.evidence
    if not isinstance(seen, DnsEvidence):
        return {}
    host, _, port = seen.name_server.rpartition(":")
    is_split = bool(host) and port.isdecimal()
    name_server = host.strip("[]") if is_split else seen.name_server
    number = int(port) if is_split else None
    response = {
        "returnCode": seen.response_code,
        "responseTime": round(outcome.response_time_ms or 0),
        "answer": seen.text,
    }
    return {
        "request": {
            "query": seen.query,
            "recordType": seen.record_type,
            "nameServer": name_server,
            "port": number,
            "protocol": seen.protocol,
        },
        "nameServerInfo": {"host": name_server, "port": number},
        "response": response if seen.response_code is not None else None,
    }


DNS = TypeDefinition(
    write=DnsCheckWrite,
    purpose="Asks a name server and judges its answer.",
    start={"request": {"recordType": "A"}},
    example={"name": "Zone", "request": {"recordType": "A", "query": "shop.example"}, **PLACES},
    analytics=Analytics(path="dns", measures=(TOTAL,)),
    render_seen=render_answer,
)
