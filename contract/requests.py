"""What a check of each type asks for: one Request per type.

Limits and defaults are the specification's and, where it is silent, the field notes' (1.5).
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from contract.wire import Wire


class IpFamily(StrEnum):
    """The address family that a check must use; there is no silent fall-back to the other."""

    IPV4 = "IPv4"
    IPV6 = "IPv6"


class HttpMethod(StrEnum):
    """Methods of an API check."""

    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    HEAD = "HEAD"
    DELETE = "DELETE"
    PATCH = "PATCH"


class BodyType(StrEnum):
    """How a request body is sent.

    JSON and GRAPHQL set application/json, FORM sets application/x-www-form-urlencoded,
    RAW and NONE set no content type.
    """

    NONE = "NONE"
    JSON = "JSON"
    FORM = "FORM"
    RAW = "RAW"
    GRAPHQL = "GRAPHQL"


class HttpVersion(StrEnum):
    """AUTO offers HTTP/2 over TLS and falls back to HTTP/1.1; the others insist."""

    AUTO = "AUTO"
    HTTP_1_1 = "HTTP_1_1"
    HTTP_2 = "HTTP_2"
    HTTP_3 = "HTTP_3"


class DnsProtocol(StrEnum):
    """UDP falls back to TCP when an answer is truncated."""

    UDP = "UDP"
    TCP = "TCP"


class RecordType(StrEnum):
    """DNS record types that a check may ask for."""

    A = "A"
    AAAA = "AAAA"
    CNAME = "CNAME"
    MX = "MX"
    TXT = "TXT"
    SOA = "SOA"
    NS = "NS"
    CAA = "CAA"
    DNSKEY = "DNSKEY"
    DS = "DS"
    HTTPS = "HTTPS"
    NAPTR = "NAPTR"
    PTR = "PTR"
    SRV = "SRV"
    SVCB = "SVCB"
    TLSA = "TLSA"


Hostname = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class KeyValue(Wire, frozen=True, kw_only=True):
    """A header or a query parameter."""

    key: str
    value: str = ""
    locked: bool = False
    """The value is shown only to those who may write the check; scrubbed like a secret."""


class BasicAuth(Wire, frozen=True, kw_only=True):
    """Credentials of HTTP basic authentication; the password is scrubbed like a secret."""

    username: str = ""
    password: str = ""


class HttpRequest(Wire, frozen=True, kw_only=True):
    """One HTTP request. `{{NAME}}` is filled in URL, headers, query, body and basic auth."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
    method: HttpMethod = HttpMethod.GET
    follow_redirects: bool = True
    skip_ssl: bool = msgspec.field(default=False, name="skipSSL")
    """Do not verify the certificate; its facts are still recorded."""
    ip_family: IpFamily = IpFamily.IPV4
    http_version: HttpVersion = HttpVersion.AUTO
    body: str = ""
    body_type: BodyType = BodyType.NONE
    headers: tuple[KeyValue, ...] = ()
    query_parameters: tuple[KeyValue, ...] = ()
    basic_auth: BasicAuth | None = None
    """None: no Authorization header is made."""


class HostRequest(Wire, frozen=True, kw_only=True):
    """A request to a host that is named without an address of the web."""

    hostname: Hostname


class TcpRequest(HostRequest, frozen=True, kw_only=True):
    """Connect, perhaps say something, perhaps listen."""

    port: Port
    data: str | None = None
    """Sent after connecting, UTF-8. None: nothing is sent."""
    ip_family: IpFamily = IpFamily.IPV4
    tls: bool = False
    """Do a TLS handshake after connecting."""
    skip_ssl: bool = msgspec.field(default=False, name="skipSSL")


class DnsRequest(Wire, frozen=True, kw_only=True):
    """One DNS question."""

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    record_type: RecordType = RecordType.A
    name_server: Annotated[str, msgspec.Meta(max_length=253)] | None = None
    """Host or address to ask. None: the agent's default chain of resolvers."""
    port: Port | None = None
    """None: 53."""
    protocol: DnsProtocol = DnsProtocol.UDP


class IcmpRequest(HostRequest, frozen=True, kw_only=True):
    """Echo requests, 500 ms apart."""

    ip_family: IpFamily = IpFamily.IPV4
    ping_count: Annotated[int, msgspec.Meta(ge=1, le=50)] = 10
