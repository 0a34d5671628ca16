"""A request as libcurl sends it: URL, headers, body."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from contract.evidence import SentRequest
from contract.release import RELEASE
from contract.requests import (
    AuthScheme,
    BasicAuth,
    BodyType,
    HttpMethod,
    HttpRequest,
    HttpVersion,
    IpFamily,
    KeyValue,
)
from contract.result import CheckFailed, FailureKind
from contract.targets import (
    ascii_host,
    connect_to_problem,
    split_address,
    start_of_no_header_name,
)
from redaction.policy import HIDDEN, SENSITIVE_HEADERS
from runners.net.sockets import literal_family

_WITHOUT_BODY: Final = frozenset({HttpMethod.HEAD})


def encode_body(request: HttpRequest) -> bytes | None:
    """The body to send, in UTF-8. None: there is none."""
    if request.body_type is BodyType.NONE or not request.body or request.method in _WITHOUT_BODY:
        return None
    if request.body_type is BodyType.GRAPHQL:
        return _encode_graphql(request.body).encode()
    return request.body.encode()


def _encode_graphql(body: str) -> str:
    """Wrap a bare query as `{"query": …}`; a JSON object stays as it is."""
    try:
        ready = isinstance(json.loads(body), Mapping)
    except (ValueError, RecursionError):
        ready = False
    return body if ready else json.dumps({"query": body})


USER_AGENT: Final = f"Picket/{RELEASE}"
ACCEPT_ENCODING: Final = "gzip, deflate, br"
MAX_SENT_BODY_CHARS: Final = 65_536
"""How much of the request's body is kept as evidence."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_CONTENT_TYPES: Final = {
    BodyType.JSON: "application/json",
    BodyType.GRAPHQL: "application/json",
    BodyType.FORM: "application/x-www-form-urlencoded",
}
_DERIVED_HEADERS: Final = frozenset({"content-length"})
"""Headers that libcurl derives from the body; the user's own value would break the request."""
_URL_SAFE: Final = "".join(chr(code) for code in range(0x21, 0x7F))
_NOT_IN_A_HOST: Final = re.compile(r"[\x00-\x20\x7f%/\\?#@:\[\]]")
_CACHED_BODY_CHARS: Final = 2048
SENDS_EMPTY_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
"""Methods that are sent with an empty body when the check has none."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port (RFC 6454): credentials are sent to their own origin only."""

    scheme: str
    host: str
    """Lower case, without brackets."""
    port: int

    def __str__(self) -> str:
        """Host and port, such as 127.0.0.1:80."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_literal(self) -> bool:
        """Whether the host is an address in its plain form, so that nothing has to be resolved.

        Other forms (127.1, 0x7f000001) are understood by libcurl too; they count as names here, so
        that the egress rules judge the address that they resolve to.
        """
        return literal_family(self.host) is not None


@dataclass(frozen=True, slots=True)
class Header:
    """One header as it is sent."""

    name: str
    value: str
    personal: bool = False
    """Whether it holds credentials or is locked, and so is never sent to another origin."""


@dataclass(frozen=True, slots=True)
class Detour:
    """The address that a check connects to instead of the host's own."""

    host: str
    """The host of the check's URL; redirects to other hosts go there themselves."""
    host_port: int | None
    """The port of the check's URL. None: the detour is for all ports of the host."""
    address: str
    port: int | None
    """None: the same port."""

    def leads(self, origin: Origin) -> bool:
        """Whether requests to this origin take it."""
        return origin.host == self.host and self.host_port in {None, origin.port}

    @property
    def option(self) -> str:
        """The detour as libcurl takes it: host and port, address and port."""
        parts = (_bracket(self.host), self.host_port, _bracket(self.address), self.port)
        return ":".join("" if part is None else str(part) for part in parts)


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _build_detour(connect_to: str | None, origin: Origin) -> Detour | None:
    if connect_to is None:
        return None
    parts = split_address(connect_to)
    if parts is None:
        raise CheckFailed(
            FailureKind.PROTOCOL,
            f"connectTo is {connect_to}; it {connect_to_problem(connect_to)}.",
            {"code": "ERR_INVALID_IP_ADDRESS"},
        )
    address, port = parts
    return Detour(origin.host, None if port is None else origin.port, address, port)


@dataclass(frozen=True, kw_only=True)
class HopRequest:
    """One request of a chain, ready to be sent.

    It has no slots, so that properties can be cached.
    """

    url: str
    """The URL without user, password and fragment."""
    origin: Origin
    method: str
    headers: tuple[Header, ...]
    body: bytes | None
    """None: no body."""
    family: IpFamily
    http_version: HttpVersion
    skip_ssl: bool
    detour: Detour | None = None
    """None: the host's own address is connected to."""
    login: BasicAuth | None = None
    """Credentials for the server's challenge. None: none, or they are in the headers."""

    @cached_property
    def address(self) -> str | None:
        """The address that the check names for this hop. None: the host's own is looked up."""
        leads = self.detour is not None and self.detour.leads(self.origin)
        return self.detour.address if self.detour is not None and leads else None

    @cached_property
    def header_lines(self) -> list[str | bytes]:
        """The headers as libcurl takes them."""
        lines: list[str | bytes] = []
        for header in self.headers:
            # A line without a value would tell libcurl to leave the header out.
            line = f"{header.name}: {header.value}" if header.value else f"{header.name};"
            lines.append(line if line.isascii() else line.encode())
        if self.body is not None or self.method in SENDS_EMPTY_BODY:
            lines.append("Expect:")
            if not any(header.name.lower() == "content-type" for header in self.headers):
                lines.append("Content-Type:")
        return lines

    @cached_property
    def evidence(self) -> SentRequest:
        """The request as the result shows it."""
        headers: dict[str, str] = {}
        for header in self.headers:
            known = headers.get(header.name)
            headers[header.name] = header.value if known is None else f"{known}, {header.value}"
        body = (self.body or b"").decode("utf-8", "replace")[:MAX_SENT_BODY_CHARS]
        return SentRequest(method=self.method, url=self.url, headers=headers, body=body)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is a GET without a body and without options of its own, for HTTP alone."""
        has_options = self.detour is not None or self.login is not None or self.asks_to_upgrade
        return self.body is None and self.method == "GET" and not has_options

    @cached_property
    def asks_to_upgrade(self) -> bool:
        """Whether it asks the server to switch to another protocol, such as WebSocket."""
        return any(header.name.lower() == "upgrade" for header in self.headers)


_PERSONAL: Final = SENSITIVE_HEADERS | {"host"}


def build_first_hop(request: HttpRequest) -> HopRequest:
    """Build the first request of the chain.

    Requests without a large body are cached: a check sends the same one again and again.

    Raises:
        CheckFailed: of kind PROTOCOL, when the URL or a header cannot be sent.
    """
    if len(request.body) > _CACHED_BODY_CHARS:
        return _build_first_hop(request)
    return _cached_first_hop(request)


def _build_first_hop(request: HttpRequest) -> HopRequest:
    parts = _split_url(request.url)
    body = encode_body(request)
    origin = _read_origin(parts, request.url)
    return HopRequest(
        url=_assemble_url(parts, request.query_parameters),
        origin=origin,
        method=request.method.value,
        headers=_build_headers(request, parts),
        body=body,
        family=request.ip_family,
        http_version=request.http_version,
        skip_ssl=request.skip_ssl,
        detour=_build_detour(request.connect_to, origin),
        login=_read_login(request, parts) if request.auth_scheme is AuthScheme.DIGEST else None,
    )


def _read_login(request: HttpRequest, parts: SplitResult) -> BasicAuth | None:
    """The credentials of basic auth, else user and password in the URL. None: there are none."""
    if request.basic_auth is not None or parts.username is None:
        return request.basic_auth
    return BasicAuth(username=unquote(parts.username), password=unquote(parts.password or ""))


_cached_first_hop: Final = lru_cache(maxsize=1024)(_build_first_hop)


class InvalidUrlError(CheckFailed):
    """A URL that cannot be asked, of kind PROTOCOL."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            FailureKind.PROTOCOL,
            f"{_hide_credentials(url)} is not a URL that can be requested: {why}.",
            {"code": "ERR_INVALID_URL"},
        )
        self.why = why
        """What is wrong with it, without a full stop."""


def parse_url(url: str) -> tuple[str, Origin]:
    """Split a URL into the URL to send and its origin.

    Raises:
        InvalidUrlError: it is no http or https URL.
    """
    parts = _split_url(url)
    return _assemble_url(parts, ()), _read_origin(parts, url)


def _split_url(url: str) -> SplitResult:
    # The messages of these errors quote the URL, passwords included.
    try:
        parts = urlsplit(url.strip())
    except ValueError as problem:
        raise _url_error(url, "its host cannot be read") from problem
    try:
        port = parts.port
    except ValueError as problem:
        raise _url_error(url, "its port is not a number from 1 to 65535") from problem
    if parts.scheme not in _DEFAULT_PORTS:
        raise _url_error(url, "it must start with http:// or https://")
    if not parts.hostname:
        raise _url_error(url, "it has no host")
    if port == 0:
        raise _url_error(url, "port 0 cannot be reached")
    return parts


def _url_error(url: str, why: str) -> CheckFailed:
    return InvalidUrlError(url, why)


def _hide_credentials(url: str) -> str:
    """Hide all before the last @, where the password of a URL that cannot be read may be."""
    before, at, rest = url.rpartition("@")
    scheme, slashes, _ = before.partition("//")
    return f"{scheme if slashes else ''}{slashes}{HIDDEN}@{rest}" if at else url


def _read_origin(parts: SplitResult, url: str) -> Origin:
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    return Origin(parts.scheme, _ascii_host(_host_of(parts), url), port)


def _host_of(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if host.isascii():
        return host
    # Python writes a capital sigma at the end as a final one, UTS 46 never: another name.
    return parts.netloc.rpartition("@")[2].partition(":")[0]


def _ascii_host(host: str, url: str) -> str:
    """The host in the form that is looked up; egress rules and credentials use the same form."""
    if "%" in host and ":" not in host:  # with colons it is an IPv6 address and its zone
        host = unquote(host)
        if _NOT_IN_A_HOST.search(host):
            raise _url_error(url, "its host holds a character that no name has")
    try:
        return ascii_host(host).lower()
    except UnicodeError as problem:
        raise _url_error(url, f"the host {host} has no IDNA form") from problem


def _assemble_url(parts: SplitResult, parameters: Sequence[KeyValue]) -> str:
    query = "&".join(
        (
            *([_quote(parts.query)] if parts.query else ()),
            *(f"{quote(one.key, safe='')}={quote(one.value, safe='')}" for one in parameters),
        )
    )
    netloc = parts.netloc.rpartition("@")[2]
    if "%" in netloc or not netloc.isascii():
        port = "" if parts.port is None else f":{parts.port}"
        host = _ascii_host(_host_of(parts), parts.geturl())
        netloc = (f"[{host}]" if ":" in host else host) + port
    path = _quote(parts.path) or "/"
    return f"{parts.scheme}://{netloc}{path}{'?' if query else ''}{query}"


def _quote(text: str) -> str:
    """Percent-encode spaces and non-ASCII characters; what is encoded already stays."""
    return quote(text, safe=_URL_SAFE)


def _build_headers(request: HttpRequest, parts: SplitResult) -> tuple[Header, ...]:
    own = tuple(
        Header(
            one.key.strip(), one.value.strip(), one.locked or one.key.strip().lower() in _PERSONAL
        )
        for one in request.headers
        if one.key.strip() and one.key.strip().lower() not in _DERIVED_HEADERS
    )
    for header in own:
        _refuse_unsendable(header)
    names = {header.name.lower() for header in own}
    defaults = _build_default_headers(request, _build_authorization(request, parts))
    return (*(one for one in defaults if one.name.lower() not in names), *own)


def _build_default_headers(request: HttpRequest, authorization: str | None) -> tuple[Header, ...]:
    chosen = [
        Header("User-Agent", USER_AGENT),
        Header("Accept", "*/*"),
        Header("Accept-Encoding", ACCEPT_ENCODING),
    ]
    if (content_type := _CONTENT_TYPES.get(request.body_type)) is not None:
        chosen.append(Header("Content-Type", content_type))
    if authorization is not None:
        chosen.append(Header("Authorization", authorization, personal=True))
    return tuple(chosen)


def _refuse_unsendable(header: Header) -> None:
    for text in (header.name, header.value):
        if "\r" in text or "\n" in text or "\0" in text:
            raise CheckFailed(
                FailureKind.PROTOCOL,
                f"The header {header.name.split()[0]} holds a line break and cannot be sent.",
                {"code": "ERR_INVALID_CHAR"},
            )
    if (start := start_of_no_header_name(header.name)) is not None:
        raise CheckFailed(
            FailureKind.PROTOCOL,
            f"{start}… is not a valid header name."
            if start
            else "The name of a header contains white space or a colon; neither is allowed.",
            {"code": "ERR_INVALID_HTTP_TOKEN"},
        )


def _build_authorization(request: HttpRequest, parts: SplitResult) -> str | None:
    """The Authorization header of the first request. None: there are no credentials for it."""
    login = _read_login(request, parts)
    if login is None or request.auth_scheme is not AuthScheme.BASIC:
        return None
    pair = f"{login.username}:{login.password}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
