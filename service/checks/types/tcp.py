"""TCP monitors in the API."""

from typing import Any, Final, Literal

from pydantic import Field

from contract.checks import CheckType
from contract.result import Outcome, TcpEvidence
from service.analytics.measures import SOCKET, Analytics
from service.checks.fields import (
    AssertionWrite,
    Family,
    Hostname,
    Listing,
    PortNumber,
    ShortThreshold,
    TextComparison,
)
from service.checks.schemas import CheckWrite
from service.checks.types.definition import PLACES, TypeDefinition
from service.http.schema import RequestModel, Text


class TcpAssertion(AssertionWrite):
    """What a TCP monitor can assert."""

    kind = CheckType.TCP
    source: Literal[
        "RESPONSE_DATA", "RESPONSE_TIME", "DAYS_TO_EXPIRY", "REMOTE_ADDRESS", "TLS_VERSION"
    ]
    comparison: TextComparison


class TcpRequest(RequestModel):
    """A TCP connection: data may be sent, and the answer is read."""

    hostname: Hostname
    """A host name or an IP address."""
    port: PortNumber
    """The port to connect to."""
    data: Text | None = None
    """Sent after connecting. Null: nothing."""
    ip_family: Family = "IPv4"
    """The version of the Internet Protocol."""
    tls: bool = False
    """Do a TLS handshake after connecting."""
    skip_ssl: bool = Field(default=False, alias="skipSSL")
    """Do not verify the certificate."""
    assertions: Listing[TcpAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""


class TcpCheckWrite(CheckWrite):
    """A TCP monitor."""

    kind = CheckType.TCP
    request: TcpRequest
    """What is connected to and asserted."""
    degraded_response_time: ShortThreshold | None = 3000
    """Milliseconds after which a result is degraded. Null: never."""
    max_response_time: ShortThreshold | None = 5000
    """Milliseconds after which a result fails. Null: never."""


_DETAILS: Final = ("code", "syscall", "address", "port", "errno", "hostname")


def render_connection(outcome: Outcome) -> dict[str, Any]:
    """What the peer sent, or why there was no connection in the system's words."""
    seen = outcome.evidence
    if not isinstance(seen, TcpEvidence):
        return {}
    detail = outcome.failure.detail if outcome.failure else {}
    error = {name: detail[name] for name in _DETAILS if name in detail}
    return {"response": {"data": seen.response, "error": error if "code" in error else None}}


TCP = TypeDefinition(
    write=TcpCheckWrite,
    purpose="Connects to a port, and reads what the server says.",
    example={"name": "Mail", "request": {"hostname": "mail.example", "port": 25}, **PLACES},
    analytics=Analytics(path="tcp-checks", measures=SOCKET),
    render_seen=render_connection,
)
