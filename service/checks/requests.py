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
    skip_ssl: bool = Field(default=False, alias="skipSSL")
    """Do not verify the certificate."""
    ip_family: Family = "IPv4"
    http_version: Version = "AUTO"
    """AUTO offers HTTP/2 over TLS; the others insist."""


class UrlRequest(HttpWrite):
    """The request of a URL monitor: always GET."""

    method: Literal["GET"] = "GET"
    assertions: Listing[UrlAssertion] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_dropped_in_silence(cls, request: Any) -> Any:
        if isinstance(request, dict) and (found := plain_request_problem(request)):
            raise field_error(*found)
        return request


class ApiRequest(HttpWrite):
    """The request of an API check; `{{NAME}}` is filled in."""

    method: Method = "GET"
    body: MaybeText = ""
    body_type: BodyKind = "NONE"
    headers: Listing[KeyValue] = Field(default_factory=list)
    query_parameters: Listing[KeyValue] = Field(default_factory=list)
    basic_auth: BasicAuth | None = None
    """Null: none is sent."""
    assertions: Listing[ApiAssertion] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_line_headers(self) -> "ApiRequest":
        for order, header in enumerate(self.headers or ()):
            if problem := header_problem(header.key, header.value):
                raise field_error(f"headers[{order}]", problem)
        return self


class TcpRequest(Strict):
    """Connect, perhaps say something, perhaps listen."""

    hostname: Hostname
    port: PortNumber
    data: Text | None = None
    """Sent after connecting. Null: nothing is."""
    ip_family: Family = "IPv4"
    tls: bool = False
    """Do a TLS handshake after connecting."""
    skip_ssl: bool = Field(default=False, alias="skipSSL")
    """Do not verify the certificate."""
    assertions: Listing[TcpAssertion] = Field(default_factory=list)


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
    query: Annotated[Text, Field(min_length=1, max_length=253), judged_by(dns_name_problem)]
    name_server: Annotated[
        Annotated[Text, Field(max_length=253), judged_by(hostname_problem)] | None,
        BeforeValidator(blank_is_none),
    ] = None
    """Host or address to ask. Null: the agent's default resolvers."""
    port: PortNumber | None = None
    """Of the name server. Null: 53."""
    protocol: Literal["UDP", "TCP"] = "UDP"
    assertions: Listing[DnsAssertion] = Field(default_factory=list)

    @model_validator(mode="after")
    def _port_has_a_server(self) -> "DnsRequest":
        if self.port is not None and not self.name_server:
            raise field_error("port", "is given without nameServer; give both or neither")
        return self


class IcmpRequest(Strict):
    """Echo requests."""

    hostname: Hostname
    ip_family: Family = "IPv4"
    ping_count: Annotated[int, Field(ge=1, le=50), JsonNumber] = 10
    assertions: Listing[IcmpAssertion] = Field(default_factory=list)


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
    period_unit: Unit
    grace: Annotated[float, Field(ge=0), JsonNumber]
    grace_unit: Unit
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
