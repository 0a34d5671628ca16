"""What a check of each type asks of its target, as people write it, read strictly."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from contract.checks import SECONDS_PER, TimeUnit
from contract.targets import dns_name_problem, header_problem, hostname_problem, url_problem
from service.checks.fields import (
    ApiAssertion,
    BasicAuth,
    BodyKind,
    DnsAssertion,
    Family,
    IcmpAssertion,
    KeyValue,
    Listing,
    MaybeText,
    Method,
    PortNumber,
    TcpAssertion,
    UrlAssertion,
    Version,
)
from service.checks.rules import heartbeat_problem, plain_request_problem
from service.http.strict import (
    JsonNumber,
    Strict,
    Text,
    blank_is_none,
    field_error,
    judged_by,
    spelled,
)

Url = Annotated[Text, Field(min_length=1, max_length=2048), judged_by(url_problem)]
Hostname = Annotated[Text, Field(min_length=1, max_length=2048), judged_by(hostname_problem)]


class HttpWrite(Strict):
    """What URL monitors and API checks ask for."""

    url: Url
    """`*********` for user and password: those that are stored."""
    follow_redirects: bool = True
    """Whether redirects are followed."""
    skip_ssl: bool = Field(default=False, alias="skipSSL")
    """Do not verify the certificate."""
    ip_family: Family = "IPv4"
    """The version of the Internet Protocol."""
    http_version: Version = "AUTO"
    """AUTO offers HTTP/2 over TLS; the others insist."""


class UrlRequest(HttpWrite):
    """The request of a URL monitor: always GET."""

    method: Literal["GET"] = "GET"
    """Always GET."""
    assertions: Listing[UrlAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_dropped_in_silence(cls, request: Any) -> Any:
        if isinstance(request, dict) and (found := plain_request_problem(request)):
            raise field_error(*found)
        return request


class ApiRequest(HttpWrite):
    """The request of an API check; `{{NAME}}` becomes the value of a variable."""

    method: Method = "GET"
    """The HTTP method."""
    body: MaybeText = ""
    """The body of the request."""
    body_type: BodyKind = "NONE"
    """How the body is sent, with a content type to match."""
    headers: Listing[KeyValue] = Field(default_factory=list)
    """Headers of the request."""
    query_parameters: Listing[KeyValue] = Field(default_factory=list)
    """Parameters that are added to the URL."""
    basic_auth: BasicAuth | None = None
    """Null: none is sent."""
    assertions: Listing[ApiAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""

    @model_validator(mode="after")
    def _one_line_headers(self) -> "ApiRequest":
        for order, header in enumerate(self.headers or ()):
            if problem := header_problem(header.key, header.value):
                raise field_error(f"headers[{order}]", problem)
        return self


class TcpRequest(Strict):
    """A TCP connection: data may be sent, and the answer is read."""

    hostname: Hostname
    """A host name or an IP address."""
    port: PortNumber
    """The port to connect to."""
    data: Text | None = None
    """Sent after connecting. Null: nothing is."""
    ip_family: Family = "IPv4"
    """The version of the Internet Protocol."""
    tls: bool = False
    """Do a TLS handshake after connecting."""
    skip_ssl: bool = Field(default=False, alias="skipSSL")
    """Do not verify the certificate."""
    assertions: Listing[TcpAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""


class DnsRequest(Strict):
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
    """The type of the records to ask for."""
    query: Annotated[Text, Field(min_length=1, max_length=253), judged_by(dns_name_problem)]
    """The name to ask for."""
    name_server: Annotated[
        Annotated[Text, Field(max_length=253), judged_by(hostname_problem)] | None,
        BeforeValidator(blank_is_none),
    ] = None
    """Host or address to ask. Null: the agent's default resolvers."""
    port: PortNumber | None = None
    """Of the name server. Null: 53."""
    protocol: Literal["UDP", "TCP"] = "UDP"
    """How the question is sent."""
    assertions: Listing[DnsAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""

    @model_validator(mode="after")
    def _port_has_a_server(self) -> "DnsRequest":
        if self.port is not None and not self.name_server:
            raise field_error("port", "is given without nameServer; give both or neither")
        return self


class IcmpRequest(Strict):
    """ICMP echo requests to a host."""

    hostname: Hostname
    """A host name or an IP address."""
    ip_family: Family = "IPv4"
    """The version of the Internet Protocol."""
    ping_count: Annotated[int, Field(ge=1, le=50), JsonNumber] = 10
    """How many echo requests are sent."""
    assertions: Listing[IcmpAssertion] = Field(default_factory=list)
    """What must hold for the check to pass."""


Unit = Literal["seconds", "minutes", "hours", "days"]


_OF_PINGS = r"^[A-Za-z0-9._~-]*$"
PingToken = Annotated[
    str,
    Field(max_length=200, json_schema_extra={"pattern": _OF_PINGS}),
    spelled(
        _OF_PINGS,
        "must be letters a to z in either case, digits, dots, hyphens, underscores and tildes",
    ),
]


class Heartbeat(Strict):
    """When pings are expected: period 30 seconds to 365 days, grace 0 to 365 days."""

    period: Annotated[float, Field(gt=0), JsonNumber]
    """The time between pings, in `periodUnit`."""
    period_unit: Unit
    """The unit of `period`."""
    grace: Annotated[float, Field(ge=0), JsonNumber]
    """How much later a ping may come, in `graceUnit`."""
    grace_unit: Unit
    """The unit of `grace`."""
    ping_token: PingToken | None = None
    """The last part of the ping address. Null or empty: one is made, and kept on updates."""

    @model_validator(mode="after")
    def _times_fit(self) -> "Heartbeat":
        if found := heartbeat_problem(self.period_s, self.grace_s):
            raise field_error(*found)
        return self

    @property
    def period_s(self) -> float:
        """A ping is due this long after the last one."""
        return self.period * SECONDS_PER[TimeUnit(self.period_unit)]

    @property
    def grace_s(self) -> float:
        """How much longer we wait."""
        return self.grace * SECONDS_PER[TimeUnit(self.grace_unit)]
