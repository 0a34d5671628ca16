"""The HTTP request, and what requests of all types are made of: families, protocols, ports.

The requests of the other types stand beside their Specs in `contract.checks`.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from contract.wire import Wire


class IpFamily(StrEnum):
    """The address family that a check uses; it does not fall back to the other one."""

    IPV4 = "IPv4"
    IPV6 = "IPv6"


class HttpMethod(StrEnum):
    """HTTP methods of an API check."""

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
    """The HTTP version; only AUTO falls back, from HTTP/2 over TLS to HTTP/1.1."""

    AUTO = "AUTO"
    HTTP_1_1 = "HTTP_1_1"
    HTTP_2 = "HTTP_2"
    HTTP_3 = "HTTP_3"


class DnsProtocol(StrEnum):
    """The protocol of a DNS query; UDP falls back to TCP when an answer is truncated."""

    UDP = "UDP"
    TCP = "TCP"


class RecordType(StrEnum):
    """DNS record types that a check may query."""

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
    """Whether the value is shown only to people who may edit the check; it is redacted like a
    secret."""


class AuthScheme(StrEnum):
    """How a user and a password are sent."""

    BASIC = "BASIC"
    DIGEST = "DIGEST"


class BasicAuth(Wire, frozen=True, kw_only=True):
    """Credentials of HTTP authentication; the password is redacted like a secret."""

    username: str = ""
    password: str = ""


class HttpRequest(Wire, frozen=True, kw_only=True):
    """An HTTP request; `{{NAME}}` is replaced in URL, headers, query, body and basic auth."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
    method: HttpMethod = HttpMethod.GET
    follow_redirects: bool = True
    skip_ssl: bool = msgspec.field(default=False, name="skipSSL")
    """Whether the certificate is accepted unverified; its facts are still recorded."""
    ip_family: IpFamily = IpFamily.IPV4
    http_version: HttpVersion = HttpVersion.AUTO
    body: str = ""
    body_type: BodyType = BodyType.NONE
    headers: tuple[KeyValue, ...] = ()
    query_parameters: tuple[KeyValue, ...] = ()
    basic_auth: BasicAuth | None = None
    """Credentials for the Authorization header. None: none is added."""
    auth_scheme: AuthScheme = AuthScheme.BASIC
    """How the credentials are sent: BASIC with the first request, DIGEST as the answer to the
    server's challenge."""
    accepted_status_codes: tuple[str | int, ...] = ()
    """Codes, ranges and classes of the statuses that pass, such as 429, 200-299 and 4xx. Empty:
    those below 400."""
    connect_to: str | None = None
    """The IP address to connect to, perhaps with a port; Host header and TLS name stay those of the
    URL. None: the host's own address."""
