"""An exchange from first request to last response: redirects, cookies, phases."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.message import Message
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit
from urllib.request import Request

import msgspec
import pycurl

from contract.evidence import Hop, SentRequest, TlsFacts
from contract.job import ClientCertificate
from contract.result import CheckFailed, Failure, FailureKind, Timings
from runners.net.http.body_memory import BodyLease
from runners.net.http.curl_multi import make_printable
from runners.net.http.errors import (
    PROXY_AUTH_REQUIRED,
    FailedHop,
    find_response_failure,
    is_sound,
    no_response_failure,
    proxy_auth_failure,
    to_failure,
)
from runners.net.http.phases import HopTimings, hop_timings, sum_timings
from runners.net.http.request import Header, HopRequest, InvalidUrlError, Origin, parse_url
from runners.net.http.response import STORED_BYTES, Head
from runners.net.http.tls import tls_facts
from runners.net.http.transfer import TransferResult
from runners.net.tls.ca_roots import CaRoots

if TYPE_CHECKING:
    from http.cookiejar import CookieJar


@dataclass(frozen=True, slots=True)
class Route:
    """The proxy between agent and target, and the client certificates to present."""

    proxy_url: str | None = None
    """None: direct."""
    certificates: tuple[ClientCertificate, ...] = ()
    """Newest first."""

    @classmethod
    def choose(cls, proxy_url: str | None, certificates: Sequence[ClientCertificate]) -> "Route":
        """Make the route of one exchange."""
        if proxy_url is None and not certificates:
            return DIRECT
        return cls(proxy_url or None, tuple(certificates))

    @property
    def is_plain(self) -> bool:
        """Whether there is neither a proxy nor a certificate."""
        return self.proxy_url is None and not self.certificates

    @property
    def proxy_label(self) -> str | None:
        """Host and port of the proxy, without credentials. None: direct."""
        if self.proxy_url is None:
            return None
        try:
            parts = urlsplit(add_scheme(self.proxy_url))
            port = parts.port
        except ValueError:  # a password with a slash in it would pass for a port
            return "(its address cannot be read)"
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return host if port is None else f"{host}:{port}"

    @property
    def is_http_proxy(self) -> bool:
        """Whether the proxy speaks HTTP, and so may itself respond to requests for http URLs."""
        proxy_url = add_scheme(self.proxy_url or "socks5://").lower()
        return proxy_url.startswith(("http://", "https://"))

    def certificate_for(self, origin: Origin) -> ClientCertificate | None:
        """The certificate to present: an exact host, else the newest glob. None: none matches."""
        places = (origin.host, f"{origin.host}:{origin.port}")
        for one in self.certificates:
            if one.host.lower() in places:
                return one
        for one in self.certificates:
            if any(fnmatchcase(place, one.host.lower()) for place in places):
                return one
        return None

    def settings(self, hop: HopRequest) -> list[tuple[int, Any]]:
        """Options of libcurl for this hop."""
        settings: list[tuple[int, Any]] = []
        if self.proxy_url is not None:
            settings.append((pycurl.PROXY, add_scheme(self.proxy_url).encode()))
        if hop.detour is not None:
            settings.append((pycurl.CONNECT_TO, [hop.detour.option]))
        if hop.login is not None:
            settings += [
                (pycurl.HTTPAUTH, pycurl.HTTPAUTH_DIGEST),
                (pycurl.USERNAME, hop.login.username.encode()),
                (pycurl.PASSWORD, hop.login.password.encode()),
            ]
        certificate = self.certificate_for(hop.origin) if hop.origin.scheme == "https" else None
        if certificate is not None:
            settings.append((pycurl.SSLCERT_BLOB, certificate.cert.encode()))
            settings.append((pycurl.SSLKEY_BLOB, certificate.key.encode()))
            if certificate.passphrase is not None:
                settings.append((pycurl.KEYPASSWD, certificate.passphrase.encode()))
        return settings


DIRECT = Route()


def add_scheme(proxy_url: str) -> str:
    """Complete a proxy's address to a URL; without a scheme the proxy speaks HTTP."""
    return proxy_url if "://" in proxy_url else f"http://{proxy_url}"


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The last response of a redirect chain."""

    head: Head
    body: bytes
    """The beginning of the decoded body, at least as much as was asked to be kept."""
    body_bytes: int
    """How many bytes of the decoded body were read."""
    body_cut: bool
    """Whether reading stopped at the limit."""
    charset: str | None = None
    """The encoding of the body, whatever its header says. None: the header's."""


class HttpExchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request, its redirects and the final response; after a failure, as far as it got."""

    sent: SentRequest
    timings: Timings
    hops: tuple[Hop, ...]
    answer: HttpResponse | None
    """The final response. None: none began."""
    tls: TlsFacts | None
    """The TLS facts of the last hop that used TLS. None: no hop did."""
    remote_address: str | None
    """The target's address. None: there was no connection, or a proxy hides it."""
    failure: Failure | None
    """None: the final response was read to its end, or to the limit."""
    redirected_by: str | None = None
    """The URL whose redirect led to the last request. None: the last request was the first."""
    waited_s: float = 0.0
    """How long the agent had no memory for a body, which is no time of the target."""


class RedirectChain:
    """The hops of one exchange so far: the next request, and what earlier ones showed."""

    def __init__(  # noqa: PLR0913 - of one exchange
        self,
        hop: HopRequest,
        *,
        timeout_s: float,
        route: Route,
        keep_bytes: int,
        roots: CaRoots,
        lease: BodyLease | None,
    ) -> None:
        self._roots = roots
        self.hop = hop
        self.lease = lease
        """Where long bodies take their memory. None: they are kept without asking."""
        self.route = route
        self.keep_bytes = keep_bytes
        self.failure: Failure | None = None
        self.head: Head | None = None
        self._redirected_by: str | None = None
        self._timeout_s = timeout_s
        self._ends_at = time.monotonic() + timeout_s
        self._without_cookies = self._sent = hop
        self._cookies = ChainCookies()
        self._hops: list[Hop] = []
        self._hop_timings: list[HopTimings] = []
        self._earlier_timings: list[HopTimings] = []
        """Those of requests that had to be repeated."""
        self._seen: TransferResult | None = None
        self._tls: TlsFacts | None = None

    def left_ms(self) -> int:
        """What is left of the time limit; at least 1, because 0 means no limit to libcurl."""
        waited_s = 0.0 if self.lease is None else self.lease.waited_s
        return max(1, int((self._ends_at + waited_s - time.monotonic()) * 1000))

    def record_repeated(self, seen: TransferResult) -> None:
        """Record a request of the current hop that is repeated in another way.

        It counts when time runs out, because the limit is for all. Otherwise the last request is
        what was measured.
        """
        proxied = self.route.proxy_url is not None
        self._earlier_timings.append(hop_timings(self.hop, seen, proxied=proxied))

    def record(self, seen: TransferResult, *, ignored_error: str | None) -> None:
        """Record the result of the current hop."""
        hop, direct = self.hop, self.route.proxy_url is None
        self._seen, self.head = seen, seen.head
        timings = hop_timings(hop, seen, proxied=not direct)
        if timings.timed_out:
            self._hop_timings += self._earlier_timings
        self._hop_timings.append(timings)
        self._earlier_timings.clear()
        if hop.origin.scheme == "https":
            self._take_tls(seen, ignored_error)
        if seen.head is not None:
            self._hops.append(
                Hop(
                    url=hop.url,
                    status_code=seen.head.status_code,
                    location=seen.head.headers.get("location"),
                    remote_address=seen.address if direct else None,
                    total_ms=seen.times.total / 1000,
                )
            )
        if not is_sound(seen):
            self.failure = self._find_failure(self._attempt(seen))
        elif seen.head is not None and self._is_from_proxy(seen.head):
            self.failure = proxy_auth_failure(self._attempt(seen))

    def _find_failure(self, attempt: FailedHop) -> Failure | None:
        failure = find_response_failure(attempt)
        if failure is None and attempt.seen.ended.code:
            return to_failure(attempt)
        if failure is None and attempt.seen.head is None:
            return no_response_failure(attempt)
        return failure

    def _is_from_proxy(self, head: Head) -> bool:
        """Whether the proxy sent it: 407 is a proxy's by definition, except through a tunnel."""
        in_clear = self.hop.origin.scheme == "http"
        return head.status_code == PROXY_AUTH_REQUIRED and in_clear and self.route.is_http_proxy

    def _take_tls(self, seen: TransferResult, ignored_error: str | None) -> None:
        facts = tls_facts(
            seen,
            host=self.hop.origin.host,
            ignored_error=ignored_error,
            roots=self._roots,
            now=datetime.now(UTC),
        )
        self._tls = facts or self._tls

    def _attempt(self, seen: TransferResult) -> FailedHop:
        return FailedHop(
            hop=self.hop,
            seen=seen,
            timeout_s=self._timeout_s,
            now=datetime.now(UTC),
            proxy=self.route.proxy_label,
        )

    def follow(self, head: Head, location: str) -> None:
        """Make the redirect the next hop.

        Raises:
            CheckFailed: of kind REDIRECT.
        """
        # From the request without the chain's cookies: the jar has the newest.
        following = build_next_hop(self._without_cookies, head.status_code, location)
        if len(self._hops) > MAX_REDIRECTS:
            raise too_many_redirects([one.url for one in self._hops], following.url)
        self._redirected_by = self.hop.url
        self._cookies.store(self.hop, head.set_cookies)
        self._cut_body()
        self._without_cookies = following
        self.hop = add_cookies(following, self._cookies.header_for(following))

    def _cut_body(self) -> None:
        """Drop what no result carries of a redirect's body; its memory is for the next one."""
        if self._seen is not None and len(self._seen.body) > STORED_BYTES:
            body = self._seen.body[: STORED_BYTES + 1]
            self._seen = msgspec.structs.replace(self._seen, body=body)

    def to_exchange(self) -> HttpExchange:
        """Return all that was observed."""
        seen = self._seen
        direct = self.route.proxy_url is None
        answer = None
        if seen is not None and seen.head is not None:
            answer = HttpResponse(
                head=seen.head,
                body=seen.body,
                body_bytes=seen.body_bytes,
                body_cut=seen.body_cut,
            )
        return HttpExchange(
            sent=self._sent.evidence,
            timings=sum_timings(self._hop_timings),
            hops=tuple(self._hops),
            answer=answer,
            tls=self._tls,
            remote_address=(seen.address or None) if seen is not None and direct else None,
            failure=self.failure,
            redirected_by=self._redirected_by,
            waited_s=0.0 if self.lease is None else self.lease.waited_s,
        )


MAX_REDIRECTS: Final = 10
MAX_LOCATION_CHARS: Final = 8192
"""The longest address that is followed: servers accept no longer ones, and results stay small."""
SHOWN_LOCATION_CHARS: Final = 500
"""How much of an address a sentence shows."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_BODY_HEADERS: Final = frozenset(
    {"content-type", "content-encoding", "content-language", "content-location"}
)


def build_next_hop(hop: HopRequest, status_code: int, location: str) -> HopRequest:
    """The request that follows a redirect.

    303 turns everything but HEAD into GET, 301 and 302 only POST, as browsers and curl do; the
    rest repeats method and body. Personal headers (credentials, cookies, locked headers, a custom
    Host) are never sent to another origin, nor when a later redirect returns to the first one.

    Raises:
        CheckFailed: of kind REDIRECT, when the location is no http or https URL.
    """
    url, origin = _resolve_location(hop, location)
    headers, login = hop.headers, hop.login
    if origin != hop.origin:
        headers = tuple(one for one in headers if not one.personal)
        login = None
    method, body = _choose_method(status_code, hop.method), hop.body
    if method != hop.method:
        body = None
        headers = tuple(one for one in headers if one.name.lower() not in _BODY_HEADERS)
    return replace(
        hop, url=url, origin=origin, method=method, body=body, headers=headers, login=login
    )


def _resolve_location(hop: HopRequest, location: str) -> tuple[str, Origin]:
    shown = _shorten(location)
    detail = {"code": "ERR_BAD_REDIRECT", "location": shown}
    if len(location) > MAX_LOCATION_CHARS:
        raise CheckFailed(
            FailureKind.REDIRECT,
            f"{_shorten(hop.url)} redirects to an address of {len(location)} characters; "
            f"{MAX_LOCATION_CHARS} is the longest that is followed.",
            detail,
        )
    try:
        _require_host(location)
        return parse_url(urljoin(hop.url, location))
    except (CheckFailed, ValueError) as problem:
        why = problem.why if isinstance(problem, InvalidUrlError) else "its host cannot be read"
        raise CheckFailed(
            FailureKind.REDIRECT,
            f"{_shorten(hop.url)} redirects to {shown}, which is not a URL that can be followed: "
            f"{why}.",
            detail,
        ) from problem


def _require_host(location: str) -> None:
    """Refuse an address that has a place for a host and names none, as in `https:///login`.

    RFC 9110, section 4.2.1: a recipient must reject it; joined, it would name the old host.

    Raises:
        InvalidUrlError: the host is missing.
        ValueError: the address cannot be read.
    """
    parts = urlsplit(location.strip())
    if (
        parts.scheme in {"http", "https"} or location.strip().startswith("//")
    ) and not parts.hostname:
        raise InvalidUrlError(location, "it has no host")


def _shorten(url: str) -> str:
    shown = url if len(url) <= SHOWN_LOCATION_CHARS else f"{url[:SHOWN_LOCATION_CHARS]}…"
    return make_printable(shown)


def add_cookies(hop: HopRequest, cookies: str | None) -> HopRequest:
    """Add the cookies that the chain has set so far, after the user's own."""
    if cookies is None:
        return hop
    own = [one.value for one in hop.headers if one.name.lower() == "cookie"]
    rest = tuple(one for one in hop.headers if one.name.lower() != "cookie")
    return replace(
        hop, headers=(*rest, Header("Cookie", "; ".join((*own, cookies)), personal=True))
    )


def too_many_redirects(visited: Sequence[str], location: str) -> CheckFailed:
    """The failure of a chain that does not end; it shows a loop if there is one."""
    return CheckFailed(
        FailureKind.REDIRECT,
        f"Gave up after {MAX_REDIRECTS} redirects; the last one pointed to "
        f"{_shorten(location)}{_describe_loop(visited, location)}.",
        {"code": "ERR_TOO_MANY_REDIRECTS", "location": _shorten(location)},
    )


def mention_redirect(failure: Failure, redirected_by: str | None) -> Failure:
    """Say which redirect led to what failed; a failure of the redirect itself says it already."""
    if redirected_by is None or failure.kind is FailureKind.REDIRECT:
        return failure
    message = f"{failure.message} A redirect of {_shorten(redirected_by)} led there."
    return msgspec.structs.replace(failure, message=message)


def _describe_loop(visited: Sequence[str], location: str) -> str:
    if location not in visited:
        return ""
    since = len(visited) - 1 - visited[::-1].index(location)
    circle = [_shorten(_path(url)) for url in (*visited[since:], location)]
    return f", which goes round in a circle: {' → '.join(circle)}"


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _choose_method(status_code: int, method: str) -> str:
    if status_code == 303:
        return method if method == "HEAD" else "GET"
    if status_code in {301, 302} and method == "POST":
        return "GET"
    return method


_MAX_COOKIES: Final = 100
"""More than any login needs; further cookies are dropped."""


class ChainCookies:
    """The cookies that earlier hops have set, sent back as a browser would."""

    def __init__(self) -> None:
        self._jar: CookieJar | None = None
        """None: no cookie has been set yet, the usual case; a jar costs more than an exchange."""

    def store(self, hop: HopRequest, lines: tuple[str, ...]) -> None:
        """Store the cookies of the response to this hop."""
        if not lines:
            return
        if self._jar is None:
            # Imported here: few targets set cookies on the way, and it holds 200 kB.
            from http.cookiejar import CookieJar  # noqa: PLC0415

            self._jar = CookieJar()
        if len(self._jar) < _MAX_COOKIES:
            asked = Request(hop.url)  # noqa: S310 - never opened, only matched
            # The jar calls nothing but `info()`.
            self._jar.extract_cookies(_SetCookies(lines), asked)  # type: ignore[arg-type]

    def header_for(self, hop: HopRequest) -> str | None:
        """The Cookie header for this hop. None: none."""
        if self._jar is None:
            return None
        request = Request(hop.url)  # noqa: S310 - never opened, only matched
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie")


class _SetCookies:
    """A response as far as the jar reads it: its Set-Cookie headers."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        self._headers = Message()
        for line in lines:
            self._headers.add_header("Set-Cookie", line)

    def info(self) -> Message:
        return self._headers
